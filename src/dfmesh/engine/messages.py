"""What sites and clients say to each other. Data only; the carrier knows who said it.

A peer is a site by its name, or a client by `client:<id>`. Values travel as a `Payload` that the carrier packed.
"""

from __future__ import annotations

import msgspec

from dfmesh.engine.frame_run import FrameRun
from dfmesh.engine.message_parts import Failure, JobLine, Payload, Question, SiteReport
from dfmesh.netir import Frame


class Message(msgspec.Struct, array_like=True, frozen=True, tag_field="message"):
    """Base of all messages.

    Attributes:
        job: Id of the job; a message for a job that is unknown or over is dropped.
    """

    job: str


# Between sites: the tokens.


class TokenPackage(Message, frozen=True, tag=1):
    """A token for the places of a route: a value, or a failure, or (neither) a flow token.

    Attributes:
        route: The route.
        frame: The frame.
        payload: The value.
        failure: Why there is none.
        skipped: A condition left it out.
        not_selected: The failure is that of a selector, for those who read it to tell of.
    """

    route: int
    frame: Frame
    payload: Payload | None = None
    failure: Failure | None = None
    skipped: bool = False
    not_selected: bool = False


class TokenPackages(Message, frozen=True, tag=6):
    """Several small values for the places of one route.

    Attributes:
        route: The route.
        frames: Their frames; in a loop they mostly follow one another.
        payload: The list of the values.
    """

    route: int
    frames: FrameRun | tuple[Frame, ...]
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
    frames: FrameRun | tuple[Frame, ...]


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


class StartJob(Message, frozen=True, tag=10):
    """Get ready to run `net` (bytes of a NetIR). Answered by `JobStarted` or `JobRefused`.

    Attributes:
        net: What to run.
        resumable: Whether the job may be begun again, so that results which nobody could make again are to be kept.
        alone: Whether no other site takes part: nothing waits for `JobStarted` then, and a job that is over soon
            needs none. If it will not be begun again, the site forgets it with its last report, and gets no `EndJob`.
        opening: What would come right behind.
    """

    net: bytes
    resumable: bool = False
    alone: bool = False
    opening: OpenFrame | None = None


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
        frames: Their frames; in a loop they mostly follow one another.
        node: Id of the Yield.
        site: Site that sent them.
        payload: The list of the values.
        left_out: Positions of those that the client is not to take, since it has them.
    """

    place: str
    frames: FrameRun | tuple[Frame, ...]
    node: str
    site: str
    payload: Payload
    left_out: tuple[int, ...] = ()


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
        opening: What would come right behind. If that is the last parameter set, the job is a *whole* one, and
            `JobFinished` says what `FrameFinished` would say right before it.
    """

    name: str
    nets: dict[str, bytes]
    submission: int = 1
    opening: AddParameters | None = None


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
