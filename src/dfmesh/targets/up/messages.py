"""What a client and the host of a federation say to each other, besides what clients and homesites do."""

from __future__ import annotations

import msgspec

from dfmesh.engine.messages import AnyMessage, Message
from dfmesh.targets.wire import FIRST_NOTICE, Codec

GREETING = FIRST_NOTICE
"""Kind of the first frame of a connection: the host's `HostRecord` as JSON, which clients of any version can read."""


class JobEntry(msgspec.Struct, array_like=True, frozen=True):
    """A job in the host's list.

    Attributes:
        job: Its id.
        name: Name of the pipeline; empty if it has none.
        status: starting, running, finished, failed or cancelled.
        submitted: When it was submitted, in seconds since 1970.
        ended: When it ended; None while it runs.
        parameter_sets: How many were given so far.
        results: How many have come.
        failures: What has failed; known once the job is over.
        owner: Process id of the client that submitted it.
        size: Bytes of its journal.
    """

    job: str
    name: str
    status: str
    submitted: float
    ended: float | None
    parameter_sets: int
    results: int
    failures: int
    owner: int
    size: int


# From a client. Each request has a number, which stands in the answer.


class ListJobs(Message, frozen=True, tag=60):
    """Answered by `JobList`."""

    number: int


class AttachJob(Message, frozen=True, tag=61):
    """Answered by `JobAttached`, then by the whole journal of the job. `job` may be the beginning of an id."""

    number: int


class DetachJob(Message, frozen=True, tag=62):
    """Send no more of a job's journal. Answered by `Done`.

    Attributes:
        number: Number of the request.
        attached: Number of the request that attached to it; 0 for the journal of a job that this client submitted.
    """

    number: int
    attached: int


class StopJob(Message, frozen=True, tag=63):
    """Cancel a job, whoever submitted it. Answered by `Done` with the whole id. `job` may be the beginning of an id."""

    number: int
    reason: str


class ForgetJob(Message, frozen=True, tag=64):
    """Remove the journal of a job that is over. Answered by `Done`. `job` may be the beginning of an id."""

    number: int


class ReadLog(Message, frozen=True, tag=65):
    """Give what sites, or the adapters of a job, have printed. Answered by `LogPart` messages.

    Attributes:
        number: Number of the request.
        follow: Whether to go on with what they print from now on.
    """

    number: int
    follow: bool


class Settle(Message, frozen=True, tag=66):
    """Answered by `Done` when all that was sent before has been taken in."""

    number: int


class StopHost(Message, frozen=True, tag=67):
    """Stop the sites and the host. Answered by `Done`; then the connection ends."""

    number: int


# From the host.


class JobList(Message, frozen=True, tag=70):
    """All jobs that the host knows of, the oldest first."""

    number: int
    jobs: tuple[JobEntry, ...]


class JobAttached(Message, frozen=True, tag=71):
    """What a client has to know of a job that another one has submitted.

    Attributes:
        number: Number of the request.
        name: Name of the pipeline.
        status: As in `JobEntry`.
        sources: Place to the number of Yields that send to it.
        order: Position of each Yield in the pipeline, by the id of the statement.
        parameter_sets: How many were given so far.
    """

    number: int
    name: str
    status: str
    sources: dict[str, int]
    order: dict[str, int]
    parameter_sets: int


class Done(Message, frozen=True, tag=72):
    """What was asked for has been done."""

    number: int


class Refused(Message, frozen=True, tag=73):
    """What was asked for cannot be done."""

    number: int
    reason: str


class JournalPart(Message, frozen=True, tag=74):
    """The next bytes of a job's journal.

    Attributes:
        number: Number of the request that attached to the job; 0 if this client has submitted it.
        data: Frames, cut anywhere.
    """

    number: int
    data: bytes


class JournalEnd(Message, frozen=True, tag=76):
    """There is no more in a job's journal: the job is over.

    Attributes:
        number: As in `JournalPart`.
        broken: Why the journal does not say how the job ended; empty if it does.
    """

    number: int
    broken: str


class LogPart(Message, frozen=True, tag=75):
    """The next of what sites have printed, in lines `time site text`.

    Attributes:
        number: Number of the request.
        data: Text, cut anywhere.
        end: Whether nothing more comes.
    """

    number: int
    data: bytes
    end: bool


# In a journal only.


class JobOrigin(Message, frozen=True, tag=80):
    """Who submitted a job, and when.

    Attributes:
        owner: Process id of the client.
        submitted: Seconds since 1970.
    """

    owner: int
    submitted: float


class OwnerLeft(Message, frozen=True, tag=81):
    """The client that submitted the job has gone before it had given all parameter sets; there will be no more."""


UpMessage = (
    ListJobs
    | AttachJob
    | DetachJob
    | StopJob
    | ForgetJob
    | ReadLog
    | Settle
    | StopHost
    | JobList
    | JobAttached
    | Done
    | Refused
    | JournalPart
    | JournalEnd
    | LogPart
    | JobOrigin
    | OwnerLeft
)

Answer = JobList | JobAttached | Done | Refused


def make_codec() -> Codec:
    """Make a codec for all that goes over a connection with a host, or into a journal."""
    return Codec(AnyMessage | UpMessage)
