"""What the homesite has said of one job: its status, results, errors and reports."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from dfmesh.engine.frame_run import Frames
from dfmesh.engine.message_parts import Failure, SiteReport
from dfmesh.engine.messages import (
    AnyMessage,
    FrameFinished,
    JobFinished,
    JobLines,
    JobRefused,
    JobRestarted,
    JobStarted,
    Progress,
    ReportProgress,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.portions import PORTION_VALUES
from dfmesh.engine.submitted_job import SubmittedJob
from dfmesh.errors import OperationFailure, UnknownClassError, ValueDecodingError, ValueEncodingError
from dfmesh.session.bell import INTERRUPT_CHECK, Bell
from dfmesh.session.connection import Connection
from dfmesh.session.job_log import JobLog
from dfmesh.session.job_plan import JobPlan
from dfmesh.session.result_log import ResultLog
from dfmesh.session.result_run import ResultRun
from dfmesh.session.results import ResultItem

_log = logging.getLogger("dfmesh.session")


class JobStatus(enum.StrEnum):
    """How a job stands."""

    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DETACHED = "detached"
    """Nobody looks here any more; the job itself goes on at its host."""

    @property
    def over(self) -> bool:
        """Whether it will not change any more here."""
        return self not in (JobStatus.STARTING, JobStatus.RUNNING)


class JobInbox:
    """The session puts in what comes for a job; the job that the user has reads it, on any thread.

    Attributes:
        job: Id of the job.
        plan: What is known of what runs.
        log: The results.
        lines: What adapters have printed and logged.
        status: How the job stands.
        reports: What the sites said last of what they did.
        submitted: What is kept to submit it again; None if its host does that, or it has not been sent yet.
        restarts: What was lost, each time that the job was begun again.
    """

    def __init__(self, job: str, plan: JobPlan, connection: Connection, *, keep_results: bool) -> None:
        """Begin empty.

        Args:
            job: Id of the job.
            plan: What is known of what runs.
            connection: With the homesite.
            keep_results: Whether results stay when a reader has taken them.
        """
        self.job = job
        self.plan = plan
        self.log = ResultLog(keep=keep_results)
        self.lines = JobLog()
        self.status = JobStatus.STARTING
        self.reports: tuple[SiteReport, ...] = ()
        self.submitted: SubmittedJob | None = None
        self.restarts: list[tuple[Failure, ...]] = []
        self._on_restart: list[Callable[[tuple[Failure, ...]], None]] = []
        self._connection = connection
        self._failures: list[Failure] = []
        self._over = False
        self._lock = threading.Lock()
        self._when_over: list[Callable[[], None]] = []
        self._askers: list[Callable[[tuple[SiteReport, ...]], None]] = []
        self._callbacks: list[Callable[[ResultItem], None]] = []

    # What the session puts in, on the client's event loop

    def receive(self, message: AnyMessage) -> None:
        """Take in a message of the homesite."""
        take = _TAKEN.get(type(message))
        if take is not None:
            take(self, message)

    def _started(self, _message: JobStarted) -> None:
        self.status = JobStatus.RUNNING

    def _restarted(self, message: JobRestarted) -> None:
        self.restarts.append(message.lost)
        for tell in self._on_restart:
            self.call(tell, message.lost)

    def _finished(self, message: JobFinished) -> None:
        self.reports = message.reports or self.reports
        self.end(_STATUSES[message.status], message.failures)

    def _take_results(self, message: YieldPackage | YieldPackages, frames: Frames) -> None:
        place, site, node = message.place, message.site, message.node
        if self.status is JobStatus.STARTING:  # The word that it has started waits for others to go with.
            self.status = JobStatus.RUNNING
        try:
            run = ResultRun(place, frames, self._values(message, frames), site, node)
            if type(message) is YieldPackages and message.left_out:
                run = run.without(set(message.left_out))
            self.log.add_run(run)
        except (ValueDecodingError, ValueEncodingError, OSError, MemoryError) as error:
            # They cannot be read, or not be kept since the disk is full. The job fails: results are missing.
            if isinstance(error, UnknownClassError):
                error = error.at("at the client, which asked for it")
            kind = type(error).__name__
            # A run of frames may claim to be longer than any list could be.
            failed = frames[:PORTION_VALUES]
            self._failures += [Failure(site, "Yield", node, frame, "", kind, str(error)) for frame in failed]
            return
        if self._callbacks:
            items = run.items()
            for callback in self._callbacks:
                for item in items:
                    self.call(callback, item)

    def _values(self, message: YieldPackage | YieldPackages, frames: Frames) -> list[Any]:
        value = self._connection.unpack(message.payload)
        if isinstance(message, YieldPackage):
            return [value]
        if type(value) is not list or len(value) != len(frames):
            raise ValueDecodingError(f"what arrived is no list of {len(frames)} results")
        return value

    def end(self, status: JobStatus, failures: Sequence[Failure]) -> None:
        """Take in that the job is over."""
        if self._over:
            return
        if self._failures and status is JobStatus.FINISHED:
            status = JobStatus.FAILED
        self._failures += failures
        self.status = status
        self._over = True
        if self._askers:
            self._answer(self.reports)
        self.log.close()
        with self._lock:
            waiting, self._when_over = self._when_over, []
        for call in waiting:  # Last of all: who waits for the job goes on at once.
            call()

    def _answer(self, reports: tuple[SiteReport, ...]) -> None:
        self.reports = reports
        with self._lock:
            askers, self._askers = self._askers, []
        for tell in askers:
            tell(reports)

    # What the job reads

    @property
    def over(self) -> bool:
        """Whether the job is over."""
        return self._over

    @property
    def errors(self) -> tuple[OperationFailure, ...]:
        """What has failed, in frame order."""
        failures = sorted(self._failures, key=lambda failure: (failure.frame, failure.node))
        return tuple(failure.to_error() for failure in failures)

    def wait(self, timeout: float | None) -> bool:
        """Block until the job is over; False after so many seconds."""
        self._connection.check_may_block()
        if self._over:
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        bell = Bell()
        self.when_over(bell.ring)
        if not bell.wait(deadline):
            with self._lock:
                if bell.ring in self._when_over:
                    self._when_over.remove(bell.ring)
        return self._over

    def when_over(self, call: Callable[[], None]) -> None:
        """Call a function, on any thread, as soon as the job is over."""
        with self._lock:
            if not self._over:
                self._when_over.append(call)
                return
        call()

    def wait_for_frames(self, count: int) -> None:
        """Block until so many top-level frames are finished, or the job is over."""
        while self.log.frames < count and not self._over:
            self._connection.check_may_block()
            self.log.wait_for_frames(count, INTERRUPT_CHECK)

    def ask_sites(self, timeout: float | None) -> None:
        """Bring `reports` up to date, unless the job is over.

        Args:
            timeout: Seconds to wait for the answer; None to wait for ever.

        Raises:
            TimeoutError: no answer came in time.
        """
        if self.over:
            return
        self._connection.check_may_block()
        answered = threading.Event()
        with self._lock:
            self._askers.append(lambda _reports: answered.set())
        if self._over:
            return
        self._connection.post(ReportProgress(self.job))
        if not answered.wait(timeout):
            raise TimeoutError(f"job {self.job}: no answer from its sites within {timeout} s{self._who_is_silent()}")

    def _who_is_silent(self) -> str:
        silent = self._connection.standing_still()
        named = [f"site {site} works and has not answered for {seconds:.0f} s" for site, seconds in silent.items()]
        return f"; {', '.join(named)}" if named else ""

    def begin_with(self, callback: Callable[[ResultItem], None]) -> None:
        """As `on_result`, for a job that has not been sent: it may be over before the event loop does anything else."""
        self._callbacks.append(callback)

    def on_result(self, callback: Callable[[ResultItem], None]) -> None:
        """Call a function with each result, those that have come included, on the client's event loop."""
        self._connection.call_soon(lambda: self._add(callback))

    def _add(self, callback: Callable[[ResultItem], None]) -> None:
        for item in self.log.all():
            self.call(callback, item)
        self._callbacks.append(callback)

    def on_restart(self, callback: Callable[[tuple[Failure, ...]], None]) -> None:
        """Call a function each time that the job is begun again, those that were included, on the same event loop."""
        self._connection.call_soon(lambda: self._tell_restarts(callback))

    def _tell_restarts(self, callback: Callable[[tuple[Failure, ...]], None]) -> None:
        for lost in self.restarts:
            self.call(callback, lost)
        self._on_restart.append(callback)

    def call(self, callback: Callable[..., None], *arguments: Any) -> None:
        """Call a function of the user's; what it raises is logged."""
        try:
            callback(*arguments)
        except BaseException:  # Whatever it is, SystemExit too: the thread has others to call.
            _log.exception("job %s: a callback raised", self.job)


_STATUSES: Final = {status.value: status for status in JobStatus}

_TAKEN: Final[dict[type[AnyMessage], Callable[[JobInbox, Any], None]]] = {
    YieldPackage: lambda inbox, message: inbox._take_results(message, (message.frame,)),
    YieldPackages: lambda inbox, message: inbox._take_results(message, message.frames),
    FrameFinished: lambda inbox, message: inbox.log.frame_finished(message.frame),
    JobLines: lambda inbox, message: inbox.lines.add(message),
    JobStarted: JobInbox._started,
    Progress: lambda inbox, message: inbox._answer(message.reports),
    JobRefused: lambda inbox, message: inbox.end(JobStatus.FAILED, message.failures),
    JobRestarted: JobInbox._restarted,
    JobFinished: JobInbox._finished,
}
"""What is done about each message."""


__all__ = ["JobInbox", "JobStatus"]
