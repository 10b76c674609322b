"""What the homesite has said of one job: its status, results, errors and reports."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable

from dfmesh.compiler import CompiledPipeline
from dfmesh.engine.messages import (
    AnyMessage,
    Failure,
    FrameFinished,
    JobFinished,
    JobRefused,
    JobStarted,
    Progress,
    ReportProgress,
    SiteReport,
    YieldPackage,
)
from dfmesh.errors import OperationFailure, ValueDecodingError, ValueEncodingError
from dfmesh.netir import SendYield
from dfmesh.session.connection import Connection
from dfmesh.session.result_log import INTERRUPT_CHECK, ResultLog
from dfmesh.session.results import ResultItem

_log = logging.getLogger("dfmesh.session")


class JobStatus(enum.StrEnum):
    """How a job stands."""

    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        """Whether it will not change any more."""
        return self not in (JobStatus.STARTING, JobStatus.RUNNING)


class JobInbox:
    """The session puts in what comes for a job; the job that the user has reads it, on any thread.

    Attributes:
        job: Id of the job.
        compiled: What runs.
        log: The results.
        sources: Place to the number of Yields that send to it.
        status: How the job stands.
        reports: What the sites said last of what they did.
    """

    def __init__(self, job: str, compiled: CompiledPipeline, connection: Connection, *, keep_results: bool) -> None:
        """Begin empty.

        Args:
            job: Id of the job.
            compiled: What runs.
            connection: With the homesite.
            keep_results: Whether results stay when a reader has taken them.
        """
        self.job = job
        self.compiled = compiled
        self.log = ResultLog(keep=keep_results)
        self.sources = _sources(compiled)
        self.status = JobStatus.STARTING
        self.reports: tuple[SiteReport, ...] = ()
        self._connection = connection
        self._failures: list[Failure] = []
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._when_over: list[Callable[[], None]] = []
        self._askers: list[Callable[[tuple[SiteReport, ...]], None]] = []
        self._callbacks: list[Callable[[ResultItem], None]] = []
        self._finished_frames = 0
        self._frame_finished = threading.Condition()

    # What the session puts in, on the client's event loop

    def receive(self, message: AnyMessage) -> None:
        """Take in a message of the homesite."""
        match message:
            case YieldPackage():
                self._take_result(message)
            case FrameFinished(frame=frame):
                self.log.frame_finished(frame)
                with self._frame_finished:
                    self._finished_frames += 1
                    self._frame_finished.notify_all()
            case JobStarted():
                self.status = JobStatus.RUNNING
            case Progress(reports=reports):
                self._answer(reports)
            case JobRefused(failures=failures):
                self.end(JobStatus.FAILED, list(failures))
            case JobFinished(status=status, failures=failures, reports=reports):
                self.reports = reports
                self.end(JobStatus(status), list(failures))

    def _take_result(self, message: YieldPackage) -> None:
        try:
            value = self._connection.unpack(message.payload)
            item = ResultItem(message.place, message.frame, value, message.site, message.node)
            self.log.add(item)
        except (ValueDecodingError, ValueEncodingError, OSError, MemoryError) as error:
            # It cannot be read, or not be kept since the disk is full. The job fails: a result is missing.
            kind = type(error).__name__
            failure = Failure(message.site, "Yield", message.node, message.frame, "", kind, str(error))
            self._failures.append(failure)
            return
        for callback in self._callbacks:
            self._call(callback, item)

    def end(self, status: JobStatus, failures: list[Failure]) -> None:
        """Take in that the job is over."""
        if self._over.is_set():
            return
        if self._failures and status is JobStatus.FINISHED:
            status = JobStatus.FAILED
        self._failures += failures
        self.status = status
        self._over.set()
        with self._frame_finished:
            self._frame_finished.notify_all()
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
        with self._frame_finished:
            while self._finished_frames < count and not self._over.is_set():
                self._connection.check_may_block()
                self._frame_finished.wait(INTERRUPT_CHECK)

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
            raise TimeoutError(f"job {self.job}: no answer from its sites within {timeout} s")

    def on_result(self, callback: Callable[[ResultItem], None]) -> None:
        """Call a function with each result, those that have come included, on the client's event loop."""
        self._connection.call_soon(lambda: self._add(callback))

    def _add(self, callback: Callable[[ResultItem], None]) -> None:
        for item in self.log.all():
            self._call(callback, item)
        self._callbacks.append(callback)

    def _call(self, callback: Callable[[ResultItem], None], item: ResultItem) -> None:
        try:
            callback(item)
        except BaseException:  # Whatever it is, SystemExit too: this thread works for all sessions.
            _log.exception("job %s: the callback for results raised", self.job)


def _sources(compiled: CompiledPipeline) -> dict[str, int]:
    sources: dict[str, int] = {}
    for node in compiled.graph.nodes:
        if isinstance(node.action, SendYield):
            sources[node.action.place] = sources.get(node.action.place, 0) + 1
    return sources


__all__ = ["JobInbox", "JobStatus"]
