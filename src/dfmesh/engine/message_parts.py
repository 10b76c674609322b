"""What messages are made of. Data only."""

from __future__ import annotations

from typing import Any

import msgspec

from dfmesh import values
from dfmesh.errors import IterationError, OperationFailure
from dfmesh.netir import Frame

values.register_type(IterationError)


class Payload(msgspec.Struct, array_like=True, frozen=True):
    """A packed value.

    Attributes:
        data: The value, or its encoded head; only the carrier that made it knows.
        buffers: Large parts that the carrier moves without copying them into a message.
    """

    data: Any
    buffers: tuple[Any, ...] = ()


class Failure(msgspec.Struct, array_like=True, frozen=True):
    """`OperationFailure` as data; the attributes are the same."""

    site: str
    operation: str
    node: str
    frame: Frame
    location: str
    kind: str
    message: str
    traceback: str = ""
    raised_at: str = ""
    caused_by: str = ""

    def to_error(self) -> OperationFailure:
        """Make the exception that the user meets."""
        return OperationFailure(**msgspec.structs.asdict(self))

    def to_item(self) -> IterationError:
        """Make what stands for it in a list that a loop collects."""
        taken = (self.site, self.operation, self.node, self.frame, self.location, self.kind, self.message)
        return IterationError(*taken, self.raised_at)


class OperationReport(msgspec.Struct, array_like=True, frozen=True):
    """How far one statement is at one site.

    Attributes:
        node: Id of the statement.
        operation: Name of the operation or construct.
        location: The user's `file:line`.
        waiting: Frames for which some input is there and some is not.
        running: Calls going on.
        done: Frames that ended with a value.
        failed: Frames that ended with an error, its own or one of its inputs'.
        seconds: Time spent in its calls, summed.
        bytes_out: Size of the values it sent to other sites.
        first_seconds: Time of the call that ended first.
        cold: Calls that had begun before the first one ended, itself included.
        cold_seconds: Time spent in those, summed.
        mean_size: Bytes of one of its values, estimated from a sample; None if there was none.
        items: Items of streams that it made.
        loading: Seconds that it took to load the adapter before the first call; in no other figure.
        squares: Squares of the seconds of its calls, summed: from them follows how calls vary.
        cold_squares: Those of the cold ones.
        first_failure: What failed first, also if a loop tolerated it; None if nothing did.
    """

    node: str
    operation: str
    location: str
    waiting: int
    running: int
    done: int
    failed: int
    seconds: float
    bytes_out: int
    first_seconds: float = 0.0
    cold: int = 0
    cold_seconds: float = 0.0
    mean_size: float | None = None
    items: int = 0
    loading: float = 0.0
    squares: float = 0.0
    cold_squares: float = 0.0
    first_failure: Failure | None = None


class SendReport(msgspec.Struct, array_like=True, frozen=True):
    """What a transition sent along one of its routes.

    Attributes:
        transition: Id of the transition.
        route: Id of the route; None for results to the client.
        count: Tokens sent.
        size: Bytes of them, heads of messages included.
    """

    transition: int
    route: int | None
    count: int
    size: int


class TallyReport(msgspec.Struct, array_like=True, frozen=True):
    """How loops, conditions and look-ups went.

    Attributes:
        transition: Id of the transition.
        fired: How often it ran.
        counted: Iterations that a loop opened, times that a condition was true, keys that a look-up found.
    """

    transition: int
    fired: int
    counted: int


class SpeedReport(msgspec.Struct, array_like=True, frozen=True):
    """How fast a connection was while it had more to take than it could.

    Attributes:
        peer: Receiving peer.
        size: Bytes that it took in that time.
        seconds: How long that was.
    """

    peer: str
    size: int
    seconds: float


class SiteReport(msgspec.Struct, array_like=True, frozen=True):
    """What one site did for one job so far.

    Attributes:
        site: Its name.
        operations: One entry per statement with a call, in the order of the net.
        bytes_sent: Peer to the bytes of this job put on the carrier for it, heads of messages included.
        sends: What of that was sent by which transition.
        tallies: How its loops, conditions and look-ups went.
        speeds: How fast its connections were during the job, as far as that showed.
        lag: Seconds that the result of a call waited on average until the site's event loop had time for it.
    """

    site: str
    operations: tuple[OperationReport, ...]
    bytes_sent: dict[str, int]
    sends: tuple[SendReport, ...] = ()
    tallies: tuple[TallyReport, ...] = ()
    speeds: tuple[SpeedReport, ...] = ()
    lag: float = 0.0


class JobLine(msgspec.Struct, array_like=True, frozen=True):
    """A line that an adapter printed or logged.

    Attributes:
        time: When, in seconds since 1970.
        operation: Name of its operation.
        node: Id of the statement.
        frame: Frame of the call.
        source: `stdout`, `stderr`, or the level of a log record.
        logger: Name of the logger; empty if it was printed.
        text: The line.
    """

    time: float
    operation: str
    node: str
    frame: Frame
    source: str
    logger: str
    text: str


class Question(msgspec.Struct, array_like=True, frozen=True):
    """Which values an operation may be given at a site.

    Attributes:
        number: Number of the question in its discovery.
        sites: Sites that are asked.
        operation: Name of the operation.
        provider: Provider in the site; None for the site's own interface.
        arguments: Parameter to value, as far as the user gave values.
        asked: Parameters that the user asks about.
        later: Parameters whose values come at run time.
    """

    number: int
    sites: tuple[str, ...]
    operation: str
    provider: str | None
    arguments: Payload
    asked: tuple[str, ...]
    later: tuple[str, ...]
