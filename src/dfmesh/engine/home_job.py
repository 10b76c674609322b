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

from collections import deque
from collections.abc import Mapping

import msgspec

from dfmesh.engine.attempts import MAX_FRUITLESS, AttemptGains, attempt_id, once_only, survivable
from dfmesh.engine.home_progress import HomeProgress
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    CancelJob,
    CloseParameters,
    EndJob,
    Failure,
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
    Payload,
    Progress,
    ReportProgress,
    SiteIdle,
    SiteReport,
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

MAX_OPEN_FRAMES = 256
"""How many parameter sets of a job run at a time; the others wait at the homesite."""

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
        self._survivable = survivable(nets)
        self._keeping = [site for site, net in nets.items() if once_only((net,))]
        self._gains = AttemptGains()
        self._doomed = self._told = False
        # Of open frames, if the job may be begun again.
        self._parameters: dict[Frame, dict[str, Payload]] = {}
        self._failed_frames: dict[Frame, list[Failure]] = {}
        self._nets = nets
        self._encoded = encoded
        # One that has nothing to do in the job, as often the homesite, has no part in it.
        self._sites = [site for site, net in nets.items() if net.transitions] or list(nets)
        self._homesite = next((net.homesite for net in nets.values()), "")
        self._progress = HomeProgress(job, client, self._sites, self._homesite)
        self._awaited = set(self._sites)
        self._lost: dict[str, Failure] = {}
        self._queued: deque[tuple[Frame, dict[str, Payload]]] = deque()
        self._next_frame = 0
        self._unreported: dict[Frame, set[str]] = {}
        self._missing_yields: dict[Frame, int] = {}
        self._failures: list[Failure] = []
        self._closed = self._closed_told = False
        self._idle: dict[str, SiteIdle] = {}
        self._reports: dict[str, SiteReport] = {}
        self._refusals: list[Failure] = []
        self._outcome = ""

    @property
    def over(self) -> bool:
        """Whether nothing will be sent for this job any more."""
        return self.status in ("finished", "failed", "cancelled", "refused")

    def net(self, site: str) -> NetIR | None:
        """Give the net of a site; None if it takes no part."""
        return self._nets.get(site)

    def start(self) -> list[Send]:
        """Ask all sites to get ready."""
        resumable = bool(self._survivable)
        alone = len(self._sites) == 1
        starts: list[Send] = [
            (site, StartJob(self.attempt, self._encoded[site], resumable, alone)) for site in self._sites
        ]
        return [*starts, *self._open_frames()]

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
        return self._from_site(peer, message)

    def _from_client(self, message: AnyMessage) -> list[Send]:
        match message:
            case AddParameters(frame=frame, parameters=parameters, last=last):
                self._closed = self._closed or last
                return self._add(frame, parameters)
            case CloseParameters():
                self._closed = True
                return [*self._open_frames(), *self._end_when_done()]
            case CancelJob(reason=reason):
                return self._end("cancelled", reason)
            case ReportProgress():
                return self._ask_progress()
        return []

    def _from_site(self, peer: str, message: AnyMessage) -> list[Send]:
        match message:
            case YieldPackage(frame=frame):
                return self._result(message, frame[:1], 1)
            case YieldPackages(frames=frames) if frames:
                return self._result(message, frames[0][:1], len(frames))
            case FrameReport(frame=frame, yields=yields):
                return self._reported(peer, frame, yields)
            case JobStarted():
                return self._started(peer)
            case JobRefused(failures=failures):
                return self._refused(peer, failures)
            case FailureReport(failure=failure):
                self._failed(failure)
            case SiteIdle():
                self._idle[peer] = message
                return self._end_when_stuck()
            case JobLines():
                return [(self.client, msgspec.structs.replace(message, job=self.job, site=peer))]
            case JobEnded(report=report, unrepeatable=unrepeatable):
                return self._left(peer, report, unrepeatable)
            case Progress(reports=reports, last=last, frames=frames):
                answer = self._progress.told(peer, reports)
                return [*answer, *self._told_last(peer, reports[0], frames)] if last and reports else [*answer]
        return []

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
        if site in self._survivable and not self._doomed and self._outcome != "refused":
            return [*progress, *self._begin_again(site, failures)]
        if self._told:
            failures = with_advice(failures, once_only([self._nets[site]]))
        self._doomed = True
        for failure in failures:
            self._note(failure)
        return [*progress, *self._without(site)]

    def _without(self, site: str) -> list[Send]:
        if self._attempts > 1 and self.status != "running":
            return self._end("failed")
        if self.status == "starting" and not self._unreported:
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
        unfinished = self._unreported.keys()
        self._failures = [failure for failure in self._failures if failure.frame[:1] not in unfinished]
        for frame in unfinished:
            self._failed_frames.pop(frame, None)
        self._queued.extendleft((frame, self._parameters[frame]) for frame in reversed(unfinished))
        self._unreported.clear()
        self._missing_yields.clear()
        self._reports.clear()
        self._closed_told = False
        return self.start()

    def _failed(self, failure: Failure) -> None:
        self._note(failure)
        if self._survivable and len(self._failures) < MAX_FAILURES:
            self._failed_frames.setdefault(failure.frame[:1], []).append(failure)

    def _note(self, failure: Failure) -> None:
        if len(self._failures) < MAX_FAILURES:
            self._failures.append(failure)

    def _ask_progress(self) -> list[Send]:
        between = self._attempts > 1 and self.status != "running"
        asked = (
            () if between else (site for site in self._sites if site not in self._lost and site not in self._reports)
        )
        return [*self._progress.ask(self.attempt, asked)]

    def count_sent(self, peer: str, size: int) -> None:
        """Note the size of a message that was sent for this job."""
        self._progress.count_sent(peer, size)

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
        """Queue a parameter set. Each must have a number of its own, and they are told apart by being in order."""
        if len(frame) != 1 or frame[0] < self._next_frame:
            what = f"a parameter set has the frame {frame}, after those up to {self._next_frame - 1}"
            self._note(Failure("", "submit", "", frame, "", "ParametersRefused", what))
            return self._end("failed")
        self._next_frame = frame[0] + 1
        self._queued.append((frame, parameters))
        return self._open_frames()

    def _open_frames(self) -> list[Send]:
        sends: list[Send] = []
        # A single site is told to start and what to run in one go: if it refuses, nothing has run.
        may_run = self.status == "running" or (self.status == "starting" and len(self._sites) == 1)
        if not may_run or self._lost:
            return sends
        while self._queued and len(self._unreported) < MAX_OPEN_FRAMES:
            frame, parameters = self._queued.popleft()
            self._unreported[frame] = set(self._sites)
            self._missing_yields[frame] = 0
            if self._survivable:
                self._parameters[frame] = parameters
            self._closed_told = last = self._closed and not self._queued
            for site in self._sites:
                wanted = self._nets[site].parameters
                given = {name: payload for name, payload in parameters.items() if name in wanted}
                sends.append((site, OpenFrame(self.attempt, frame, given, last)))
        if self._closed and not self._queued and not self._closed_told:
            self._closed_told = True
            sends += [(site, CloseParameters(self.attempt)) for site in self._sites]
        return sends

    def _result(self, message: YieldPackage | YieldPackages, frame: Frame, count: int) -> list[Send]:
        if frame in self._missing_yields:
            self._missing_yields[frame] -= count
            self._gains.came(count)
        if self._attempts > 1 or self._submission > 1:
            message = msgspec.structs.replace(message, job=self.job)
        return [(self.client, message), *self._finish_frame(frame)]

    def _reported(self, site: str, frame: Frame, yields: int) -> list[Send]:
        if site in self._unreported.get(frame, ()):
            self._unreported[frame].discard(site)
            self._missing_yields[frame] += yields
        return self._finish_frame(frame)

    def _finish_frame(self, frame: Frame) -> list[Send]:
        if self._unreported.get(frame, True) or self._missing_yields[frame]:
            return []
        del self._unreported[frame]
        del self._missing_yields[frame]
        self._gains.frame_finished()
        sends = self._tell_finished(frame)
        return [*sends, *self._open_frames(), *self._end_when_done()]

    def _tell_finished(self, frame: Frame) -> list[Send]:
        if not self._survivable:
            return [(self.client, FrameFinished(self.job, frame))]
        del self._parameters[frame]
        failures = tuple(self._failed_frames.pop(frame, ()))
        told: list[Send] = [(site, FrameFinished(self.attempt, frame)) for site in self._keeping]
        return [(self.client, FrameFinished(self.job, frame, failures)), *told]

    # Ending

    def _end_when_done(self) -> list[Send]:
        if self.status != "running" or not self._closed or self._queued or self._unreported:
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
        # One that has not begun again has nothing to say; perhaps it will not live for a while.
        beginning = self.status == "starting" and self._attempts > 1
        self._awaited = (alive - self._awaited if beginning else alive) - self._reports.keys()
        self.status = "ending"
        self._outcome = outcome
        if outcome == "cancelled" and reason:
            self._note(Failure("", "cancel", "", (), "", "Cancelled", reason))
        if len(self._sites) == 1 and not self._survivable:
            alive -= self._reports.keys()  # It has forgotten the job.
        # One that has sent its last report has nothing to stop.
        ends = [(site, EndJob(self.attempt, patient=site in self._reports)) for site in sorted(alive)]
        return [*ends, *self._finish()]

    def _told_last(self, site: str, report: SiteReport, frames: tuple[tuple[Frame, int], ...]) -> list[Send]:
        """Take in the last report of a site before what it says of frames, so that their end finds it there."""
        alone = self.status == "starting" and self._sites == [site]
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
