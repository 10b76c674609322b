"""HomeJob: one job as its homesite sees it, a pure state machine.

It starts the sites, opens top-level frames, counts reports and results so that nothing is declared complete before
every result is there, and knows when the job is over.

When a site is lost whose calls may all be repeated, the job is begun again: the attempt ends at the sites that live,
which keep what must not run twice, and a new one opens the unfinished frames again. It has a name of its own between
the sites, so nothing of the old one can be mistaken for its own. The lost site is not waited for: what is sent to it
reaches its next life, and if that fails too, the site is lost again. A site that has ended the old attempt also knows
of the loss, for it was told before we were; so it sends nothing of the new one to the dead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dfmesh.engine.attempts import MAX_FRUITLESS, AttemptGains, attempt_id, once_only
from dfmesh.engine.home_frames import HomeFrames
from dfmesh.engine.home_progress import HomeProgress
from dfmesh.engine.job_shape import shape_of
from dfmesh.engine.message_parts import Failure, Payload, SiteReport
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    CancelJob,
    CloseParameters,
    EndJob,
    FailureReport,
    FrameFinished,
    FrameReport,
    HoldJob,
    JobEnded,
    JobFinished,
    JobLines,
    JobRefused,
    JobRestarted,
    JobStarted,
    OpenFrame,
    Progress,
    ReportProgress,
    SiteIdle,
    StartJob,
    WatchIdle,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.resting import at_rest
from dfmesh.engine.site_loss import with_advice
from dfmesh.netir import Frame, NetIR

_OF_AN_ATTEMPT = (YieldPackage, YieldPackages, FrameReport, FailureReport, JobStarted, SiteIdle, Progress)

Send = tuple[str, AnyMessage]
"""A peer and what to send it."""

MAX_FAILURES = 10_000
"""How many failures of a job are kept; a job of a million failing frames must not fill the homesite."""


class HomeJob:
    """One job at its homesite.

    Attributes:
        job: Its id.
        client: The peer that submitted it.
        status: starting, running, leaving (an attempt, to begin another), ending, finished, failed, cancelled, refused.
        attempt: Id of the attempt that goes on, which is what the sites call the job.
    """

    __slots__ = (
        "_attempts",
        "_awaited",
        "_doomed",
        "_encoded",
        "_failures",
        "_frames",
        "_gains",
        "_idle",
        "_keeping",
        "_lost",
        "_nets",
        "_outcome",
        "_progress",
        "_refusals",
        "_reports",
        "_sites",
        "_submission",
        "_survivable",
        "_told",
        "_whole",
        "attempt",
        "client",
        "job",
        "status",
    )

    def __init__(
        self,
        job: str,
        client: str,
        nets: Mapping[str, NetIR],
        encoded: Mapping[str, bytes],
        submission: int = 1,
    ) -> None:
        """Prepare a job.

        Args:
            job: Its id.
            client: The peer that submitted it.
            nets: Nets by site.
            encoded: The same as bytes.
            submission: As in `SubmitJob`.
        """
        self.job = job
        self.client = client
        self.status = "starting"
        self.attempt = attempt_id(job, submission, 1)
        self._submission = submission
        self._attempts = 1
        shape = shape_of(nets)
        self._survivable = shape.survivable
        self._keeping = shape.keeping
        self._gains = AttemptGains()
        self._doomed = self._told = False
        self._nets = nets
        self._encoded = encoded
        self._sites = shape.sites
        self._frames = HomeFrames(nets, shape.sites, repeats=bool(shape.survivable))
        self._whole = False
        self._progress = HomeProgress(job, client, self._sites, shape.homesite)
        self._awaited = set(self._sites)
        self._lost: dict[str, Failure] = {}
        self._failures: list[Failure] = []
        self._idle: dict[str, SiteIdle] = {}
        self._reports: dict[str, SiteReport] = {}
        self._refusals: list[Failure] = []
        self._outcome = ""

    @property
    def over(self) -> bool:
        """Whether nothing will be sent for this job any more."""
        return self.status in ("finished", "failed", "cancelled", "refused")

    @property
    def awaits(self) -> str:
        """What all sites are to answer soon: the start, or the end, of an attempt; empty if it is neither."""
        return f"{self.status} {self.attempt}" if self._awaited and self.status in ("starting", "ending") else ""

    def net(self, site: str) -> NetIR | None:
        """Give the net of a site; None if it takes no part."""
        return self._nets.get(site)

    def opens_with(self, opening: AddParameters) -> bool:
        """Take the first parameter set, before the start; False if it is none, and to be handled after that."""
        if opening.job != self.job or not self._frames.add(opening.frame, opening.parameters):
            return False
        self._frames.closed = self._whole = opening.last
        return True

    def start(self) -> list[Send]:
        """Ask all sites to get ready."""
        resumable = bool(self._survivable)
        if len(self._sites) > 1:
            return [(site, StartJob(self.attempt, self._encoded[site], resumable)) for site in self._sites]
        # A single site is told to start and what to run in one go: if it refuses, nothing has run.
        (site,) = self._sites
        opened = self._open_frames()
        first = opened[0][1] if opened else None
        opening = first if isinstance(first, OpenFrame) else None
        rest = opened if opening is None else opened[1:]
        return [(site, StartJob(self.attempt, self._encoded[site], resumable, alone=True, opening=opening)), *rest]

    def handle(self, peer: str, message: AnyMessage) -> list[Send]:
        """Take in a message from a site or from the client, and give what to send, in order."""
        if self.over:
            return []
        if peer == self.client:
            return self._from_client(message) if message.job == self.job else []
        if peer not in self._nets or message.job != self.attempt:
            return []
        if self.status == "leaving" and isinstance(message, _OF_AN_ATTEMPT):
            return []  # It will come again.
        take = _TOLD.get(type(message))
        return [] if take is None else take(self, peer, message)

    def _from_client(self, message: AnyMessage) -> list[Send]:
        match message:
            case AddParameters(frame=frame, parameters=parameters, last=last):
                self._frames.closed = self._frames.closed or last
                return self._add(frame, parameters)
            case CloseParameters():
                self._frames.closed = True
                return [*self._open_frames(), *self._end_when_done()]
            case CancelJob(reason=reason):
                return self._end("cancelled", reason)
            case ReportProgress():
                return self._ask_progress()
        return []

    def _told_progress(self, peer: str, message: Progress) -> list[Send]:
        reports = message.reports
        answer = self._progress.told(peer, reports)
        if message.last and reports:
            return [*answer, *self._told_last(peer, reports[0], message.frames)]
        return [*answer]

    def _told_failure(self, _peer: str, message: FailureReport) -> list[Send]:
        self._failed(message.failure)
        return []

    def _told_idle(self, peer: str, message: SiteIdle) -> list[Send]:
        self._idle[peer] = message
        return self._end_when_stuck()

    def _told_lines(self, peer: str, message: JobLines) -> list[Send]:
        return [(self.client, msgspec.structs.replace(message, job=self.job, site=peer))]

    def _told_results(self, _peer: str, message: YieldPackages) -> list[Send]:
        frames = message.frames
        return self._result(message, frames[0][:1], len(frames)) if frames else []

    def hold(self, held: bool) -> list[Send]:
        """Let the sites begin nothing that makes further results, or let them go on."""
        if self.status != "running":
            return []
        return [(site, HoldJob(self.attempt, held)) for site in self._sites if site not in self._lost]

    def site_lost(self, site: str, failures: list[Failure]) -> list[Send]:
        """A taking-part site has died: begin again without what it did, or let the others come to rest and end."""
        if self.over or site not in self._sites or site in self._lost:
            return []
        self._lost[site] = failures[0]
        progress = self._progress.told(site, ())
        if self.status == "ending":
            return [*progress, *self._ended(site, self._reports.get(site) or SiteReport(site, (), {}))]
        repeatable = site in self._survivable or not self._frames.opened_any  # What has not run can run.
        if repeatable and not self._doomed and self._outcome != "refused":
            return [*progress, *self._begin_again(site, failures)]
        if self._frames.opened_any:
            failures = with_advice(failures, once_only([self._nets[site]]))
        self._doomed = True
        for failure in failures:
            self._note(failure)
        return [*progress, *self._without(site)]

    def _without(self, site: str) -> list[Send]:
        if self._attempts > 1 and self.status != "running":
            return self._end("failed")
        if self.status == "starting" and not self._frames.any_open:
            return self._refused(site, ())
        alive = [other for other in self._sites if other not in self._lost]
        lost = tuple(self._lost.values())
        return [(other, WatchIdle(self.attempt, lost)) for other in alive] or self._end("failed")

    # Beginning again

    def _begin_again(self, site: str, failures: list[Failure]) -> list[Send]:
        """End the attempt, since a site was lost without which another one can be begun."""
        if self.status != "leaving" and self._gains.is_hopeless():
            what = f"a site was lost {MAX_FRUITLESS} times in a row without anything new in between; "
            what += "the job is not begun again"
            self._failures += [*self._gains.lost, *failures, Failure(site, "site", "", (), "", "SiteLost", what)]
            return self._end("failed")
        self._gains.lost += failures
        told = (self.client, JobRestarted(self.job, tuple(failures)))
        if self.status == "leaving":
            self._awaited.discard(site)
            return [told, *self._open_attempt()]
        self._attempts += 1
        self.status = "leaving"
        self._awaited = {site for site in self._sites if site not in self._lost}
        ends = [(site, EndJob(self.attempt, again=True)) for site in sorted(self._awaited)]
        return [told, *self._progress.answer_now(), *ends, *self._open_attempt()]

    def _left(self, site: str, report: SiteReport, unrepeatable: tuple[Failure, ...]) -> list[Send]:
        if self.status != "leaving":
            return self._ended(site, report)
        self._awaited.discard(site)
        self._progress.told(site, (report,))
        if unrepeatable:
            self._failures += [*self._gains.lost, *unrepeatable]
            return self._end("failed")
        return self._open_attempt()

    def _open_attempt(self) -> list[Send]:
        """Start all sites again once the last attempt has ended at all that live."""
        if self._awaited:
            return []
        self.status = "starting"
        self.attempt = attempt_id(self.job, self._submission, self._attempts)
        self._lost.clear()
        self._awaited = set(self._sites)
        unfinished = self._frames.begin_again()
        self._failures = [failure for failure in self._failures if failure.frame[:1] not in unfinished]
        self._reports.clear()
        return self.start()

    def _failed(self, failure: Failure) -> None:
        self._note(failure)
        if self._survivable and len(self._failures) < MAX_FAILURES:
            self._frames.failed(failure)

    def _note(self, failure: Failure) -> None:
        if len(self._failures) < MAX_FAILURES:
            self._failures.append(failure)

    def _ask_progress(self) -> list[Send]:
        between = self._attempts > 1 and self.status != "running"
        asked = (
            () if between else (site for site in self._sites if site not in self._lost and site not in self._reports)
        )
        return [*self._progress.ask(self.attempt, asked)]

    def count_sent(self, size: int) -> None:
        """Note the size of messages that were sent to the client for this job."""
        self._progress.count_sent(size)

    # Starting

    def _started(self, site: str) -> list[Send]:
        if self.status != "starting":
            return []
        self._awaited.discard(site)
        return self._ready()

    def _refused(self, site: str, failures: tuple[Failure, ...]) -> list[Send]:
        if self.status != "starting":  # The site cannot go on; what it says is all there is to know.
            for failure in failures:
                self._note(failure)
            return self._end("failed")
        if self._attempts > 1:
            self._failures += [*self._gains.lost, *failures]
            return self._end("failed")
        self._refusals += failures
        self._outcome = "refused"
        self._awaited.discard(site)
        return self._ready()

    def _ready(self) -> list[Send]:
        if self._awaited or self.status != "starting":
            return []
        if self._outcome == "refused":
            return self._refuse()
        self.status = "running"
        told: list[Send] = [] if self._told else [(self.client, JobStarted(self.job, patient=True))]
        self._told = True
        return [*told, *self._open_frames(), *self._end_when_done()]

    def _refuse(self) -> list[Send]:
        self.status = "refused"
        failures = (*self._refusals, *self._failures)
        ends: list[Send] = [(site, EndJob(self.attempt)) for site in self._sites if site not in self._lost]
        return [*ends, (self.client, JobRefused(self.job, failures))]

    # Frames

    def _add(self, frame: Frame, parameters: dict[str, Payload]) -> list[Send]:
        if not self._frames.add(frame, parameters):
            what = f"a parameter set has the frame {frame}, after those up to {self._frames.next_frame - 1}"
            self._note(Failure("", "submit", "", frame, "", "ParametersRefused", what))
            return self._end("failed")
        return self._open_frames()

    def _open_frames(self) -> list[Send]:
        may_run = self.status == "running" or (self.status == "starting" and len(self._sites) == 1)
        return [*self._frames.open(self.attempt)] if may_run and not self._lost else []

    def _result(self, message: YieldPackage | YieldPackages, frame: Frame, count: int) -> list[Send]:
        if self._frames.results_came(frame, count) and self._survivable:
            self._gains.came(count)
        if self._attempts > 1 or self._submission > 1:
            message = msgspec.structs.replace(message, job=self.job)
        return [(self.client, message), *self._finish_frame(frame)]

    def _reported(self, site: str, frame: Frame, yields: int) -> list[Send]:
        self._frames.reported(site, frame, yields)
        return self._finish_frame(frame)

    def _finish_frame(self, frame: Frame) -> list[Send]:
        if not self._frames.finish(frame):
            return []
        if self._survivable:
            self._gains.frame_finished()
        opened = self._open_frames() if self._frames.can_open else []
        ended = self._end_when_done()
        if self._whole and self.over and not self._survivable:
            return ended  # That says it as well.
        return [*self._tell_finished(frame), *opened, *ended]

    def _tell_finished(self, frame: Frame) -> list[Send]:
        if not self._survivable:
            return [(self.client, FrameFinished(self.job, frame))]
        told: list[Send] = [(site, FrameFinished(self.attempt, frame)) for site in self._keeping]
        return [(self.client, FrameFinished(self.job, frame, self._frames.forget(frame))), *told]

    # Ending

    def _end_when_done(self) -> list[Send]:
        if self.status != "running" or not self._frames.all_done:
            return []
        return self._end("failed" if self._failures else "finished")

    def _end_when_stuck(self) -> list[Send]:
        """End a job that lost a site once nothing can happen in it any more."""
        alive = [site for site in self._sites if site not in self._lost]
        if self.status == "running" and self._lost and at_rest(alive, self._idle, len(self._lost)):
            return self._end("failed")
        return []

    def _end(self, outcome: str, reason: str = "") -> list[Send]:
        if self.status == "ending":
            return []
        alive = {site for site in self._sites if site not in self._lost}
        told = self._reports.keys()
        # One that has not begun again has nothing to say; perhaps it will not live for a while.
        beginning = self.status == "starting" and self._attempts > 1
        self._awaited = (alive - self._awaited if beginning else alive) - told
        self.status = "ending"
        self._outcome = outcome
        if outcome == "cancelled" and reason:
            self._note(Failure("", "cancel", "", (), "", "Cancelled", reason))
        if len(self._sites) == 1 and not self._survivable:
            alive -= told  # It has forgotten the job.
        # One that has sent its last report has nothing to stop.
        ends = [(site, EndJob(self.attempt, patient=site in told)) for site in sorted(alive)]
        return [*ends, *self._finish()]

    def _told_last(self, site: str, report: SiteReport, frames: tuple[tuple[Frame, int], ...]) -> list[Send]:
        """Take in the last report of a site before what it says of frames, so that their end finds it there."""
        alone = self.status == "starting" and self._sites == (site,)
        if alone:
            self.status = "running"  # It need not have said so.
        self._awaited.discard(site)
        self._reports[site] = report
        sends = [send for frame, yields in frames for send in self._reported(site, frame, yields)]
        if alone:  # It may have told of all frames before it was known that there are no more.
            sends += self._end_when_done()
        if alone and not self.over and not self._told:
            self._told = True
            sends.insert(0, (self.client, JobStarted(self.job)))
        return [*sends, *self._finish()]

    def overdue(self, seconds: float) -> list[Send]:
        """Go on without the answers that are awaited: end what does not end, refuse or fail what does not start.

        Args:
            seconds: How long the sites have had to answer.
        """
        if self.status != "starting":
            return self.end_without_answers()
        what = f"the site has not answered for {seconds:g} s when the job was to start there: it is broken, or cannot "
        what += "keep up; its output may say why"
        silent = [Failure(site, "start", "", (), "", "SiteSilent", what) for site in sorted(self._awaited)]
        if not self._frames.opened_any:
            return [send for failure in silent for send in self._refused(failure.site, (failure,))]
        self._failures += [*self._gains.lost, *silent]
        return [*self._end("failed"), *self.end_without_answers()]

    def end_without_answers(self) -> list[Send]:
        """Finish a job that is being ended, though some sites have not said that they have stopped it."""
        if self.status == "ending":
            self._awaited.clear()
        return self._finish()

    def _ended(self, site: str, report: SiteReport) -> list[Send]:
        self._awaited.discard(site)
        self._reports[site] = report
        return self._finish()

    def _finish(self) -> list[Send]:
        if self.status != "ending" or self._awaited:
            return []
        self.status = self._outcome
        reports = self._progress.reports(self._reports)
        return [(self.client, JobFinished(self.job, self._outcome, tuple(self._failures), reports))]


_TOLD: Final[dict[type[AnyMessage], Callable[[HomeJob, str, Any], list[Send]]]] = {
    YieldPackage: lambda home, _, message: home._result(message, message.frame[:1], 1),
    YieldPackages: HomeJob._told_results,
    FrameReport: lambda home, peer, message: home._reported(peer, message.frame, message.yields),
    JobStarted: lambda home, peer, _: home._started(peer),
    JobRefused: lambda home, peer, message: home._refused(peer, message.failures),
    FailureReport: HomeJob._told_failure,
    SiteIdle: HomeJob._told_idle,
    JobLines: HomeJob._told_lines,
    JobEnded: lambda home, peer, message: home._left(peer, message.report, message.unrepeatable),
    Progress: HomeJob._told_progress,
}
"""What is done about each message of a site."""
