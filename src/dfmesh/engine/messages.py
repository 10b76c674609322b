"""What sites and clients say to each other. Data only; the carrier knows who said it.

A peer is a site by its name, or a client by `client:<id>`. Values travel as a `Payload` that the carrier packed.
"""

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


class Message(msgspec.Struct, array_like=True, frozen=True, tag_field="message"):
    """Base of all messages.

    Attributes:
        job: Id of the job; a message for a job that is unknown or over is dropped.
    """

    job: str


# Between sites: the tokens.


class TokenPackage(Message, frozen=True, tag=1):
    """A token for the places of a route: a value, or a failure, or (neither) a flow token."""

    route: int
    frame: Frame
    payload: Payload | None = None
    failure: Failure | None = None
    skipped: bool = False


class TokenPackages(Message, frozen=True, tag=6):
    """Several small values for the places of one route.

    Attributes:
        route: The route.
        frames: Their frames.
        payload: The list of the values.
    """

    route: int
    frames: tuple[Frame, ...]
    payload: Payload


class ScopeEnded(Message, frozen=True, tag=2):
    """The loop over `scope` opened `count` frames below `frame`, and there are no more."""

    scope: int
    frame: Frame
    count: int
    failure: Failure | None = None


class IterationsDone(Message, frozen=True, tag=3):
    """The sender has nothing left to do in these frames of `scope`; the loop may open others."""

    scope: int
    frames: tuple[Frame, ...]


class StreamPackage(Message, frozen=True, tag=4):
    """Items of a stream or, without a payload, its end.

    Attributes:
        route: The route that the stream takes.
        frame: Its frame.
        payload: An item, or a list of small items.
        failure: Why it ended early.
        count: How many items are in the list; 0 if the payload is one item.
    """

    route: int
    frame: Frame
    payload: Payload | None = None
    failure: Failure | None = None
    count: int = 0


class StreamCredit(Message, frozen=True, tag=5):
    """The receiver of a stream has taken `count` items; the sender may send as many more, unless nobody wants more."""

    route: int
    frame: Frame
    count: int
    unwanted: bool = False


class RouteResidency(Message, frozen=True, tag=7):
    """Where what the sender sends along `route` may be; comes before it, and only if a rule of residency binds it."""

    route: int
    sites: tuple[str, ...]


# Between the homesite and a site: the job.


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


class StartJob(Message, frozen=True, tag=10):
    """Get ready to run `net` (bytes of a NetIR). Answered by `JobStarted` or `JobRefused`.

    Attributes:
        net: What to run.
        resumable: Whether the job may be begun again, so that results which nobody could make again are to be kept.
        alone: Whether no other site takes part: nothing waits for `JobStarted` then, and a job that is over soon
            needs none. If it will not be begun again, the site forgets it with its last report, and gets no `EndJob`.
    """

    net: bytes
    resumable: bool = False
    alone: bool = False


class JobStarted(Message, frozen=True, tag=11):
    """The site is ready.

    Attributes:
        patient: Whether nothing waits for this message, so that it may go with the next one.
    """

    patient: bool = False


class JobRefused(Message, frozen=True, tag=12):
    """The site, or the homesite for all, will not run the job. Nothing has run."""

    failures: tuple[Failure, ...]


class OpenFrame(Message, frozen=True, tag=13):
    """Run one parameter set.

    Attributes:
        frame: Its top-level frame.
        parameters: Those that the site's net names.
        last: Says what `CloseParameters` would say right behind.
    """

    frame: Frame
    parameters: dict[str, Payload]
    last: bool = False


class YieldPackage(Message, frozen=True, tag=14):
    """A result, on its way from a site to the client."""

    place: str
    frame: Frame
    node: str
    site: str
    payload: Payload


class YieldPackages(Message, frozen=True, tag=24):
    """Several small results of one Yield and one top-level frame, on their way from a site to the client.

    Attributes:
        place: Name that the Yield gave them.
        frames: Their frames.
        node: Id of the Yield.
        site: Site that sent them.
        payload: The list of the values.
        left_out: Positions of those that the client is not to take, since it has them.
    """

    place: str
    frames: tuple[Frame, ...]
    node: str
    site: str
    payload: Payload
    left_out: tuple[int, ...] = ()


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


class JobLines(Message, frozen=True, tag=25):
    """What calls have printed or logged at a site, on its way to the client. Sent before the site's `JobEnded`.

    Attributes:
        site: The site.
        lines: The lines.
        dropped: How many more there were, after those sent before.
    """

    site: str
    lines: tuple[JobLine, ...]
    dropped: int = 0


class HoldJob(Message, frozen=True, tag=26):
    """The client does not keep up with a job's results: begin no calls, and pull no streams, until told so.

    Attributes:
        held: Whether to; False to go on.
    """

    held: bool = True


class FailureReport(Message, frozen=True, tag=15):
    """An operation failed here; sent once by the site of origin."""

    failure: Failure


class FrameReport(Message, frozen=True, tag=16):
    """The sender has done all of a top-level frame and sent `yields` results in it."""

    frame: Frame
    yields: int


class ReportProgress(Message, frozen=True, tag=17):
    """Asks for a `Progress` message."""


class Progress(Message, frozen=True, tag=18):
    """Answers `ReportProgress`: one report from a site, those of all sites from the homesite.

    Attributes:
        reports: What the sites did so far.
        last: Nobody asked: the site has done all of the last parameter set, and this is its last report.
        frames: With `last`: what else would have been sent as a `FrameReport` just before, as frame and yields.
    """

    reports: tuple[SiteReport, ...]
    last: bool = False
    frames: tuple[tuple[Frame, int], ...] = ()


class EndJob(Message, frozen=True, tag=19):
    """Stop what still runs, forget the job, answer with `JobEnded`.

    Attributes:
        again: The job will be begun again: first let the calls end that must not run twice, and keep what they gave.
        patient: The last report has come already: nothing waits for this message, and it is not answered.
    """

    again: bool = False
    patient: bool = False


class JobEnded(Message, frozen=True, tag=20):
    """The site has forgotten the job; its last report.

    Attributes:
        report: What it did.
        unrepeatable: Why the job cannot be begun again; empty if it can.
    """

    report: SiteReport
    unrepeatable: tuple[Failure, ...] = ()


class SiteLost(Message, frozen=True, tag=21):
    """A site died; sent by whoever supervises it, to all others, with `job` empty.

    Attributes:
        site: Its name.
        reason: Such as `killed by SIGKILL`.
        running: Job, transition and frame of each call that was going on in it.
    """

    site: str
    reason: str
    running: tuple[tuple[str, int, Frame], ...]


class WatchIdle(Message, frozen=True, tag=22):
    """From the homesite after a site died: say `SiteIdle` now or when nothing goes on, and again after each change.

    Attributes:
        lost: What happened to each site that has died; streams from there have broken.
    """

    lost: tuple[Failure, ...] = ()


class SiteIdle(Message, frozen=True, tag=23):
    """Nothing goes on at the sender for this job.

    When all sites that live are idle, and what each has sent to each other has been received, nothing will ever
    happen again, and the job can end.

    Attributes:
        sent: Messages of this job sent so far, by receiving site.
        received: Messages of this job received so far, by sending site.
        losses: How many lost sites the sender has heard of.
    """

    sent: dict[str, int]
    received: dict[str, int]
    losses: int = 0


# Between a client and the homesite.


class SubmitJob(Message, frozen=True, tag=30):
    """Run a job. Answered as `StartJob`.

    Attributes:
        name: What the user calls it.
        nets: Taking-part site to the bytes of its NetIR.
        submission: 1, or one more each time that the job is submitted again since its homesite was lost.
    """

    name: str
    nets: dict[str, bytes]
    submission: int = 1


class AddParameters(Message, frozen=True, tag=31):
    """Open a top-level frame with this parameter set.

    Attributes:
        frame: The frame.
        parameters: The parameters by name.
        last: Says what `CloseParameters` would say right behind.
    """

    frame: Frame
    parameters: dict[str, Payload]
    last: bool = False


class CloseParameters(Message, frozen=True, tag=32):
    """There will be no more parameter sets: the job ends when those given are done. Told to the sites as well."""


class CancelJob(Message, frozen=True, tag=33):
    """Stop the job."""

    reason: str


class FrameFinished(Message, frozen=True, tag=34):
    """All results of this top-level frame have been sent before this message. To a site: nothing of it comes again.

    Attributes:
        frame: The frame.
        failures: What failed in it, if the job could be submitted again; all of a job are in `JobFinished`.
    """

    frame: Frame
    failures: tuple[Failure, ...] = ()


class JobFinished(Message, frozen=True, tag=35):
    """The job is over: `status` is finished, failed or cancelled."""

    status: str
    failures: tuple[Failure, ...]
    reports: tuple[SiteReport, ...]


class JobRestarted(Message, frozen=True, tag=36):
    """A site was lost, and the job goes on: what was unfinished is begun again. Its results may come again.

    Attributes:
        lost: What was lost.
    """

    lost: tuple[Failure, ...]


# Discovery: from the client by way of the homesite to the sites, and back. `job` is the id of the discovery.


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


class Discover(Message, frozen=True, tag=40):
    """From a client: put each question to its sites, which have so many seconds. Each answers with `AdviceGiven`."""

    questions: tuple[Question, ...]
    seconds: float


class AskSites(Message, frozen=True, tag=41):
    """From the homesite: questions for the receiving site."""

    questions: tuple[Question, ...]
    seconds: float


class AdviceGiven(Message, frozen=True, tag=42):
    """What `site` says to question `number`: the data of a `SiteAdvice`."""

    site: str
    number: int
    payload: Payload


AnyMessage = (
    TokenPackage
    | TokenPackages
    | ScopeEnded
    | IterationsDone
    | StreamPackage
    | StreamCredit
    | RouteResidency
    | StartJob
    | JobStarted
    | JobRefused
    | OpenFrame
    | YieldPackage
    | YieldPackages
    | JobLines
    | HoldJob
    | FailureReport
    | FrameReport
    | ReportProgress
    | Progress
    | EndJob
    | JobEnded
    | SiteLost
    | WatchIdle
    | SiteIdle
    | SubmitJob
    | AddParameters
    | CloseParameters
    | CancelJob
    | FrameFinished
    | JobFinished
    | JobRestarted
    | Discover
    | AskSites
    | AdviceGiven
)
