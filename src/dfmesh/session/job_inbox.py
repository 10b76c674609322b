"""What the homesite has said of one job: its status, results, errors and reports."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dfmesh.engine.messages import (
    AnyMessage,
    Failure,
    FrameFinished,
    JobFinished,
    JobLines,
    JobRefused,
    JobRestarted,
    JobStarted,
    Progress,
    ReportProgress,
    SiteReport,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.submitted_job import SubmittedJob
from dfmesh.errors import OperationFailure, UnknownClassError, ValueDecodingError, ValueEncodingError
from dfmesh.netir import Frame
from dfmesh.session.connection import Connection
from dfmesh.session.job_log import JobLog
from dfmesh.session.job_plan import JobPlan
from dfmesh.session.result_log import INTERRUPT_CHECK, ResultLog
from dfmesh.session.results import ResultItem

_log = logging.getLogger("dfmesh.session")

T = TypeVar("T")


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
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._when_over: list[Callable[[], None]] = []
        self._askers: list[Callable[[tuple[SiteReport, ...]], None]] = []
        self._callbacks: list[Callable[[ResultItem], None]] = []

    # What the session puts in, on the client's event loop

    def receive(self, message: AnyMessage) -> None:
        """Take in a message of the homesite."""
        match message:
            case YieldPackage():
                self._take_results(message, (message.frame,))
            case YieldPackages(frames=frames):
                self._take_results(message, frames)
            case FrameFinished(frame=frame):
                self.log.frame_finished(frame)
            case JobLines():
                self.lines.add(message)
            case JobStarted():
                self.status = JobStatus.RUNNING
            case Progress(reports=reports):
                self._answer(reports)
            case JobRefused(failures=failures):
                self.end(JobStatus.FAILED, list(failures))
            case JobRestarted(lost=lost):
                self.restarts.append(lost)
                for tell in self._on_restart:
                    self._call(tell, lost)
            case JobFinished(status=status, failures=failures, reports=reports):
                self.reports = reports or self.reports
                self.end(JobStatus(status), list(failures))

    def _take_results(self, message: YieldPackage | YieldPackages, frames: Sequence[Frame]) -> None:
        place, site, node = message.place, message.site, message.node
        try:
            values = self._values(message, frames)
            items = [ResultItem(place, frame, value, site, node) for frame, value in zip(frames, values, strict=True)]
            if isinstance(message, YieldPackages) and message.left_out:
                known = set(message.left_out)
                items = [item for position, item in enumerate(items) if position not in known]
            self.log.add(items)
        except (ValueDecodingError, ValueEncodingError, OSError, MemoryError) as error:
            # They cannot be read, or not be kept since the disk is full. The job fails: results are missing.
            if isinstance(error, UnknownClassError):
                error = error.at("at the client, which asked for it")
            kind = type(error).__name__
            self._failures += [Failure(site, "Yield", node, frame, "", kind, str(error)) for frame in frames]
            return
        for callback in self._callbacks:
            for item in items:
                self._call(callback, item)

    def _values(self, message: YieldPackage | YieldPackages, frames: Sequence[Frame]) -> list[Any]:
        value = self._connection.unpack(message.payload)
        if isinstance(message, YieldPackage):
            return [value]
        if type(value) is not list or len(value) != len(frames):
            raise ValueDecodingError(f"what arrived is no list of {len(frames)} results")
        return value

    def end(self, status: JobStatus, failures: list[Failure]) -> None:
        """Take in that the job is over."""
        if self._over.is_set():
            return
        if self._failures and status is JobStatus.FINISHED:
            status = JobStatus.FAILED
        self._failures += failures
        self.status = status
        self._over.set()
        self._answer(self.reports)
        self.log.close()
        with self._lock:
            waiting, self._when_over = self._when_over, []
        for call in waiting:
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
        return self._over.is_set()

    @property
    def errors(self) -> tuple[OperationFailure, ...]:
        """What has failed, in frame order."""
        failures = sorted(self._failures, key=lambda failure: (failure.frame, failure.node))
        return tuple(failure.to_error() for failure in failures)

    def wait(self, timeout: float | None) -> bool:
        """Block until the job is over; False after so many seconds."""
        self._connection.check_may_block()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._over.is_set():
            left = INTERRUPT_CHECK if deadline is None else min(INTERRUPT_CHECK, deadline - time.monotonic())
            if left <= 0:
                return False
            self._over.wait(left)
        return True

    def when_over(self, call: Callable[[], None]) -> None:
        """Call a function, on any thread, as soon as the job is over."""
        with self._lock:
            if not self._over.is_set():
                self._when_over.append(call)
                return
        call()

    def wait_for_frames(self, count: int) -> None:
        """Block until so many top-level frames are finished, or the job is over."""
        while self.log.frames < count and not self._over.is_set():
            self._connection.check_may_block()
            self.log.wait_for_frames(count, INTERRUPT_CHECK)

    def ask_sites(self, timeout: float | None) -> None:
        """Bring `reports` up to date, unless the job is over.

        Args:
            timeout: Seconds to wait for the answer; None to wait for ever.

        Raises:
            TimeoutError: no answer came in time.
        """
        if self._over.is_set():
            return
        self._connection.check_may_block()
        answered = threading.Event()
        with self._lock:
            self._askers.append(lambda _reports: answered.set())
        if self._over.is_set():
            return
        self._connection.post(ReportProgress(self.job))
        if not answered.wait(timeout):
            raise TimeoutError(f"job {self.job}: no answer from its sites within {timeout} s{self._who_is_silent()}")

    def _who_is_silent(self) -> str:
        silent = self._connection.standing_still()
        named = [f"site {site} works and has not answered for {seconds:.0f} s" for site, seconds in silent.items()]
        return f"; {', '.join(named)}" if named else ""

    def on_result(self, callback: Callable[[ResultItem], None]) -> None:
        """Call a function with each result, those that have come included, on the client's event loop."""
        self._connection.call_soon(lambda: self._add(callback))

    def _add(self, callback: Callable[[ResultItem], None]) -> None:
        for item in self.log.all():
            self._call(callback, item)
        self._callbacks.append(callback)

    def on_restart(self, callback: Callable[[tuple[Failure, ...]], None]) -> None:
        """Call a function each time that the job is begun again, those that were included, on the same event loop."""
        self._connection.call_soon(lambda: self._tell_restarts(callback))

    def _tell_restarts(self, callback: Callable[[tuple[Failure, ...]], None]) -> None:
        for lost in self.restarts:
            self._call(callback, lost)
        self._on_restart.append(callback)

    def _call(self, callback: Callable[[T], None], item: T) -> None:
        try:
            callback(item)
        except BaseException:  # Whatever it is, SystemExit too: this thread works for all sessions.
            _log.exception("job %s: a callback raised", self.job)


__all__ = ["JobInbox", "JobStatus"]
