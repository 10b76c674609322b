"""HomeJob: one job as its homesite sees it, a pure state machine.

It starts the sites, opens top-level frames, counts reports and results so that nothing is declared complete before
every result is there, and knows when the job is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

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
    JobEnded,
    JobFinished,
    JobRefused,
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
)
from dfmesh.netir import Frame, NetIR

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
        status: starting, running, ending, finished, failed, cancelled.
    """

    def __init__(self, job: str, client: str, nets: Mapping[str, NetIR], encoded: Mapping[str, bytes]) -> None:
        """Prepare a job.

        Args:
            job: Its id.
            client: The peer that submitted it.
            nets: Nets by site.
            encoded: The same as bytes.
        """
        self.job = job
        self.client = client
        self.status = "starting"
        self._nets = nets
        self._encoded = encoded
        self._sites = list(nets)
        self._homesite = next((net.homesite for net in nets.values()), "")
        self._client_bytes = 0
        self._awaited = set(nets)
        self._lost: dict[str, Failure] = {}
        self._queued: deque[tuple[Frame, dict[str, Payload]]] = deque()
        self._next_frame = 0
        self._unreported: dict[Frame, set[str]] = {}
        self._missing_yields: dict[Frame, int] = {}
        self._failures: list[Failure] = []
        self._closed = False
        self._idle: dict[str, SiteIdle] = {}
        self._reports: dict[str, SiteReport] = {}
        self._latest: dict[str, SiteReport] = {}
        self._progress_awaited: set[str] = set()
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
        return [(site, StartJob(self.job, self._encoded[site])) for site in self._sites]

    def handle(self, peer: str, message: AnyMessage) -> list[Send]:
        """Take in a message from a site or from the client, and give what to send, in order."""
        if self.over or (peer not in self._nets and peer != self.client):
            return []
        match message:
            case YieldPackage():
                return self._result(message)
            case FrameReport(frame=frame, yields=yields):
                return self._reported(peer, frame, yields)
            case AddParameters(frame=frame, parameters=parameters):
                return self._add(frame, parameters)
            case CloseParameters():
                self._closed = True
                return self._end_when_done()
            case JobStarted():
                return self._started(peer)
            case JobRefused(failures=failures):
                return self._refused(peer, failures)
            case FailureReport(failure=failure):
                self._note(failure)
                return []
            case SiteIdle():
                self._idle[peer] = message
                return self._end_when_stuck()
            case CancelJob(reason=reason):
                return self._end("cancelled", reason)
            case JobEnded(report=report):
                return self._ended(peer, report)
            case ReportProgress():
                return self._ask_progress()
            case Progress(reports=reports):
                return self._progress(peer, reports)
        return []

    def site_lost(self, site: str, failures: list[Failure]) -> list[Send]:
        """A taking-part site has died: let the others come to rest, then end the job."""
        if self.over or site not in self._sites or site in self._lost:
            return []
        self._lost[site] = failures[0]
        for failure in failures:
            self._note(failure)
        progress = self._progress(site, ()) if site in self._progress_awaited else []
        return [*progress, *self._without(site)]

    def _without(self, site: str) -> list[Send]:
        if self.status == "starting":
            return self._refused(site, ())
        if self.status == "ending":
            return self._ended(site, SiteReport(site, (), {}))
        alive = [other for other in self._sites if other not in self._lost]
        lost = tuple(self._lost.values())
        return [(other, WatchIdle(self.job, lost)) for other in alive] or self._end("failed")

    def _note(self, failure: Failure) -> None:
        if len(self._failures) < MAX_FAILURES:
            self._failures.append(failure)

    # Progress

    def _ask_progress(self) -> list[Send]:
        if self._progress_awaited:
            return []  # The answer that is under way is for this request too.
        self._progress_awaited = {site for site in self._sites if site not in self._lost and site not in self._reports}
        return [(site, ReportProgress(self.job)) for site in sorted(self._progress_awaited)] or [self._progress_now()]

    def _progress(self, site: str, reports: tuple[SiteReport, ...]) -> list[Send]:
        self._latest.update({report.site: report for report in reports})
        self._progress_awaited.discard(site)
        return [] if self._progress_awaited else [self._progress_now()]

    def _progress_now(self) -> Send:
        return (self.client, Progress(self.job, self._all_reports(self._latest)))

    def _all_reports(self, by_site: Mapping[str, SiteReport]) -> tuple[SiteReport, ...]:
        return tuple(self._with_client(by_site[site]) for site in self._sites if site in by_site)

    def _with_client(self, report: SiteReport) -> SiteReport:
        """Add what this site sent to the client as the homesite."""
        if report.site != self._homesite:
            return report
        return msgspec.structs.replace(report, bytes_sent={**report.bytes_sent, self.client: self._client_bytes})

    def count_sent(self, peer: str, size: int) -> None:
        """Note the size of a message that was sent for this job."""
        if peer == self.client:
            self._client_bytes += size

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
        return [(self.client, JobStarted(self.job)), *self._open_frames(), *self._end_when_done()]

    def _refuse(self) -> list[Send]:
        self.status = "refused"
        failures = (*self._refusals, *self._failures)
        ends: list[Send] = [(site, EndJob(self.job)) for site in self._sites if site not in self._lost]
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
        if self.status != "running" or self._lost:
            return sends
        while self._queued and len(self._unreported) < MAX_OPEN_FRAMES:
            frame, parameters = self._queued.popleft()
            self._unreported[frame] = set(self._sites)
            self._missing_yields[frame] = 0
            for site in self._sites:
                wanted = self._nets[site].parameters
                given = {name: payload for name, payload in parameters.items() if name in wanted}
                sends.append((site, OpenFrame(self.job, frame, given)))
        return sends

    def _result(self, message: YieldPackage) -> list[Send]:
        frame = message.frame[:1]
        if frame in self._missing_yields:
            self._missing_yields[frame] -= 1
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
        sends = [(self.client, FrameFinished(self.job, frame)), *self._open_frames()]
        return [*sends, *self._end_when_done()]

    # Ending

    def _end_when_done(self) -> list[Send]:
        if self.status != "running" or not self._closed or self._queued or self._unreported:
            return []
        return self._end("failed" if self._failures else "finished")

    def _end_when_stuck(self) -> list[Send]:
        """End a job that lost a site once nothing can happen in it any more."""
        alive = [site for site in self._sites if site not in self._lost]
        if self.status != "running" or not self._lost or any(site not in self._idle for site in alive):
            return []
        for sender in alive:
            for receiver in alive:
                sent = self._idle[sender].sent.get(receiver, 0)
                if sender != receiver and sent != self._idle[receiver].received.get(sender, 0):
                    return []
        return self._end("failed")

    def _end(self, outcome: str, reason: str = "") -> list[Send]:
        if self.status == "ending":
            return []
        self.status = "ending"
        self._outcome = outcome
        self._awaited = {site for site in self._sites if site not in self._lost}
        if outcome == "cancelled" and reason:
            self._note(Failure("", "cancel", "", (), "", "Cancelled", reason))
        return [*((site, EndJob(self.job)) for site in sorted(self._awaited)), *self._finish()]

    def _ended(self, site: str, report: SiteReport) -> list[Send]:
        self._awaited.discard(site)
        self._reports[site] = report
        return self._finish()

    def _finish(self) -> list[Send]:
        if self.status != "ending" or self._awaited:
            return []
        self.status = self._outcome
        reports = self._all_reports(self._reports)
        return [(self.client, JobFinished(self.job, self._outcome, tuple(self._failures), reports))]
