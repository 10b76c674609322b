"""What a site and one of its worker processes say to each other. Values travel beside the messages."""

from __future__ import annotations

import msgspec

from dfmesh.engine.message_parts import Failure, JobLine


class Word(msgspec.Struct, array_like=True, frozen=True, tag_field="word"):
    """Base of all of it."""


class WorkerArguments(msgspec.Struct, frozen=True):
    """What a worker process is started with.

    Attributes:
        federation: Path of the federation file.
        site: Name of the site.
        starter: Process id of the site, without which the worker is not to live.
        connection: Descriptor of its end of the connection.
        lifeline: Read end of a pipe that closes when the site dies.
        path: The site's `sys.path`.
        log_level: From which level on to log; empty to leave that to the adapters.
    """

    federation: str
    site: str
    starter: int
    connection: int
    lifeline: int
    path: tuple[str, ...]
    log_level: str


# From the site.


class Load(Word, frozen=True, tag=1):
    """Load the adapter of an operation. Answered by `Loaded` or `Raised`."""

    operation: str
    provider: str | None


class Start(Word, frozen=True, tag=2):
    """Begin a call; its arguments are the value.

    Answered by `Returned`, `Raised` or `Broken`, or by `Streams` and then, for each `Pull`, `Item`, `Exhausted`,
    `Raised` or `Broken`. `Taken` may come at any time.

    Attributes:
        operation: Name of the operation.
        provider: Provider in the site; None for the site's own interface.
        streams: Parameters that are streams, by the number under which they are fed.
    """

    operation: str
    provider: str | None
    streams: dict[str, int]


class Feed(Word, frozen=True, tag=3):
    """The value is an item of a stream that the call is fed with."""

    stream: int


class FeedEnd(Word, frozen=True, tag=4):
    """A stream that the call is fed with has no more items."""

    stream: int
    failure: Failure | None


class Pull(Word, frozen=True, tag=5):
    """Produce the next item."""


class Stop(Word, frozen=True, tag=6):
    """Give up the call. Answered by `Stopped` once it has ended, after whatever was said before."""


# From the worker.


class Loaded(Word, frozen=True, tag=10):
    """The adapter is there.

    Attributes:
        read_live: Parameters that it reads as streams.
    """

    read_live: tuple[str, ...]


class Returned(Word, frozen=True, tag=11):
    """The call has ended with the value."""


class RaisedThere(Word, frozen=True, tag=12):
    """The call has ended with an error; the attributes are those of `Raised`."""

    kind: str
    message: str
    traceback: str
    raised_at: str
    caused_by: str


class Broken(Word, frozen=True, tag=13):
    """The call has ended with the error of a stream that it was fed with."""

    failure: Failure


class Streams(Word, frozen=True, tag=14):
    """The call has returned a generator."""


class Item(Word, frozen=True, tag=15):
    """The value is an item of the generator."""


class Exhausted(Word, frozen=True, tag=16):
    """The generator has no more items."""


class Taken(Word, frozen=True, tag=17):
    """The call has taken items of a stream that it is fed with."""

    stream: int
    count: int


class Said(Word, frozen=True, tag=19):
    """The call has printed or logged lines; what it is the site knows. Comes before the end of the call.

    Attributes:
        lines: The lines.
        dropped: How many more there were.
    """

    lines: tuple[JobLine, ...]
    dropped: int


class Stopped(Word, frozen=True, tag=18):
    """Nothing of the call goes on any more."""


AnyWord = (
    Load
    | Start
    | Feed
    | FeedEnd
    | Pull
    | Stop
    | Loaded
    | Returned
    | RaisedThere
    | Broken
    | Streams
    | Item
    | Exhausted
    | Taken
    | Said
    | Stopped
)
