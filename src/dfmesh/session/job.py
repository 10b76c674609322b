"""A job: one running pipeline, as the client sees it."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dfmesh.compiler import CompiledPipeline
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    CancelJob,
    CloseParameters,
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
from dfmesh.errors import JobCancelledError, JobError, OperationFailure, SessionError, ValueDecodingError
from dfmesh.netir import SendYield
from dfmesh.session.result_log import INTERRUPT_CHECK, Reader, ResultLog
from dfmesh.session.results import ResultItem, Results

if TYPE_CHECKING:
    from dfmesh.session.session import Session


MAX_UNFINISHED_SETS = 1024
"""Parameter sets of a job that run, or wait at the homesite, at a time; further ones wait at the client."""

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


class JobProgress:
    """How far a job is.

    Attributes:
        status: Of the job.
        sites: One report per site: its operations with what waits, runs, is done and has failed, and the bytes it
            sent, by peer.
        results: Results that have come.
    """

    def __init__(self, status: JobStatus, sites: tuple[SiteReport, ...], results: int) -> None:
        self.status = status
        self.sites = sites
        self.results = results

    def bytes_between_sites(self) -> int:
        """Bytes that sites sent to one another, and for clients to the homesite, heads of messages included."""
        sizes = [
            size for site in self.sites for peer, size in site.bytes_sent.items() if not peer.startswith("client:")
        ]
        return sum(sizes)


class Job:
    """One running pipeline. Made by `Session.submit`; all methods may be called from any thread.

    Iterating gives the results as they come: `for item in job:` or `async for item in job:`.

    Attributes:
        id: Unique name of the job.
        compiled: What runs.
    """

    def __init__(self, session: Session, job_id: str, compiled: CompiledPipeline, *, keep_results: bool = True) -> None:
        self.id = job_id
        self.compiled = compiled
        self._session = session
        self._log = ResultLog(keep=keep_results)
        self._status = JobStatus.STARTING
        self._over = threading.Event()
        self._failures: list[Failure] = []
        self._reports: tuple[SiteReport, ...] = ()
        self._progress: list[Callable[[tuple[SiteReport, ...]], None]] = []
        self._lock = threading.Lock()
        self._next_frame = 0
        self._closed = False
        self._finished_frames = 0
        self._room = threading.Condition()
        self._input_error: BaseException | None = None
        self._callbacks: list[Callable[[ResultItem], None]] = []
        self._sources = _sources(compiled)

    # How it stands

    @property
    def status(self) -> JobStatus:
        """How the job stands now."""
        return self._status

    @property
    def errors(self) -> tuple[OperationFailure, ...]:
        """What has failed, once the job is over; in frame order."""
        failures = sorted(self._failures, key=lambda failure: (failure.frame, failure.node))
        return tuple(failure.to_error() for failure in failures)

    def progress(self, timeout: float | None = 10.0) -> JobProgress:
        """Ask all sites how far they are.

        Args:
            timeout: Seconds to wait for the answer.

        Raises:
            TimeoutError: no answer came in time.
        """
        if not self._over.is_set():
            answered = threading.Event()

            def take(reports: tuple[SiteReport, ...]) -> None:
                self._reports = reports
                answered.set()

            with self._lock:
                self._progress.append(take)
            if self._over.is_set():
                answered.set()
            else:
                self._session.post(ReportProgress(self.id))
            if not answered.wait(timeout):
                raise TimeoutError(f"job {self.id}: no answer from its sites within {timeout} s")
        return JobProgress(self._status, self._reports, len(self._log.store))

    # Results

    def results(self, place: str | None = None, *, ordered: bool = True) -> JobResults:
        """Iterate, also with `async for`, over the results of a place while the job runs.

        Args:
            place: The place; None for all.
            ordered: In frame order (each is given as soon as none that belongs before it can still come), or as they
                come.

        Raises:
            KeyError: the pipeline has no such place.
        """
        if place is not None and place not in self._sources:
            raise KeyError(f"no place {place!r}; the pipeline yields to {', '.join(self._sources) or 'none'}")
        return JobResults(
            self._log,
            lambda: Reader(self._log, place, ordered=ordered, order=self.compiled.order, sources=self._sources),
        )

    def __iter__(self) -> Iterator[ResultItem]:
        return iter(self.results(ordered=False))

    def __aiter__(self) -> AsyncIterator[ResultItem]:
        return aiter(self.results(ordered=False))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job is over.

        Args:
            timeout: Seconds to wait at most; None to wait for ever.

        Returns:
            Whether it is over.
        """
        self._session.check_may_block()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._over.is_set():
            left = INTERRUPT_CHECK if deadline is None else min(INTERRUPT_CHECK, deadline - time.monotonic())
            if left <= 0:
                return False
            self._over.wait(left)
        return True

    def result(self, timeout: float | None = None) -> Results:
        """Wait until the job is over and give all its results.

        Args:
            timeout: Seconds to wait at most; None to wait for ever.

        Raises:
            JobError: something failed; `errors` says what.
            JobCancelledError: the job was cancelled.
            TimeoutError: the job is not over yet; it goes on.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"job {self.id} is not over after {timeout} s; it goes on")
        return self._outcome()

    def partial_result(self) -> Results:
        """Give the results that have come so far, of a job that runs, failed or was cancelled."""
        by_place: dict[str, list[ResultItem]] = {place: [] for place in self._sources}
        for item in self._log.all():
            by_place.setdefault(item.place, []).append(item)
        order = self.compiled.order
        for items in by_place.values():
            items.sort(key=lambda item: (item.frame, order.get(item.node, 0)))
        return Results(by_place)

    def __await__(self) -> Generator[Any, None, Results]:
        """Wait, without blocking the event loop, as `result()` does."""
        return self._wait_async().__await__()

    async def _wait_async(self) -> Results:
        async for _ in self.results(ordered=False):
            pass
        return self._outcome()

    def _outcome(self) -> Results:
        if self._input_error is not None:
            raise self._input_error
        if self._status is JobStatus.CANCELLED:
            reason = f": {self._failures[0].message}" if self._failures else ""
            raise JobCancelledError(f"job {self.id} was cancelled{reason}")
        if self._status is JobStatus.FAILED:
            raise JobError(self.id, self.errors)
        return self.partial_result()

    # Steering

    def send(self, parameters: Mapping[str, Any] | None = None, /, **more: Any) -> int:
        """Run a further parameter set in this job.

        Args:
            parameters: The parameters.
            more: The same by keyword.

        Returns:
            The number of the parameter set, which is the first entry of its results' frames.

        Raises:
            PipelineError: the parameters do not fit the pipeline.
            SessionError: the job takes no more; submit it with `close=False`.
        """
        filled = self.compiled.parameter_set({**(parameters or {}), **more})
        payloads = {name: self._session.pack(value) for name, value in filled.items()}
        self._wait_for_room()
        with self._lock:
            if self._closed or self._over.is_set():
                raise SessionError(f"job {self.id} takes no more parameter sets; submit it with close=False")
            number = self._next_frame
            self._next_frame += 1
            self._session.post(AddParameters(self.id, (number,), payloads))
        return number

    def _wait_for_room(self) -> None:
        """Block while as many parameter sets run, or wait at the homesite, as may be there at a time."""
        with self._room:
            while self._next_frame - self._finished_frames >= MAX_UNFINISHED_SETS and not self._over.is_set():
                self._session.check_may_block()
                self._room.wait(INTERRUPT_CHECK)

    def send_all(self, parameter_sets: Iterable[Mapping[str, Any]], *, close: bool) -> None:
        """Run further parameter sets as there is room for them; on a thread of its own if they are many.

        Args:
            parameter_sets: The sets; an iterator is read as the job gets on.
            close: Whether these are all.
        """
        if isinstance(parameter_sets, Sequence) and len(parameter_sets) < MAX_UNFINISHED_SETS:
            for given in parameter_sets:
                self.send(given)
            if close:
                self.close()
            return
        name = f"dfmesh-parameters-{self.id}"
        threading.Thread(target=self._feed, args=(parameter_sets, close), name=name, daemon=True).start()

    def _feed(self, parameter_sets: Iterable[Mapping[str, Any]], close: bool) -> None:
        try:
            for given in parameter_sets:
                if self._over.is_set():
                    return
                self.send(given)
            if close:
                self.close()
        except SessionError:
            return  # The job or the session has ended meanwhile, which result() tells.
        except BaseException as error:
            self._input_error = error
            self.cancel(f"its parameter sets cannot be read: {error}")

    def close(self) -> None:
        """Say that there will be no more parameter sets: the job ends when those given are done."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._session.post(CloseParameters(self.id))

    def cancel(self, reason: str = "cancelled by the client") -> None:
        """Stop the job. It is over soon after; results that have come stay."""
        if not self._over.is_set():
            self._session.post(CancelJob(self.id, reason))

    def on_result(self, callback: Callable[[ResultItem], None]) -> None:
        """Call a function with each result, on the client's event loop; those that have come are given at once."""
        self._callbacks.append(callback)

    # What the session gives it

    def receive(self, message: AnyMessage) -> None:
        """Take in a message of the homesite; on the client's event loop."""
        match message:
            case YieldPackage():
                self._take_result(message)
            case FrameFinished(frame=frame):
                self._log.frame_finished(frame)
                with self._room:
                    self._finished_frames += 1
                    self._room.notify_all()
            case JobStarted():
                self._status = JobStatus.RUNNING
            case Progress(reports=reports):
                with self._lock:
                    takers, self._progress = self._progress, []
                for take in takers:
                    take(reports)
            case JobRefused(failures=failures):
                self.end(JobStatus.FAILED, list(failures))
            case JobFinished(status=status, failures=failures, reports=reports):
                self._reports = reports
                self.end(JobStatus(status), list(failures))

    def _take_result(self, message: YieldPackage) -> None:
        try:
            value = self._session.unpack(message.payload)
        except ValueDecodingError as error:
            kind = type(error).__name__
            failure = Failure(message.site, "Yield", message.node, message.frame, "", kind, str(error))
            self._failures.append(failure)
            return
        item = ResultItem(message.place, message.frame, value, message.site, message.node)
        self._log.add(item)
        for callback in self._callbacks:
            try:
                callback(item)
            except Exception:
                _log.exception("job %s: the callback for results raised", self.id)

    def end(self, status: JobStatus, failures: list[Failure]) -> None:
        """Take in that the job is over."""
        if self._over.is_set():
            return
        if self._failures and status is JobStatus.FINISHED:
            status = JobStatus.FAILED
        self._failures += failures
        self._status = status
        self._over.set()
        with self._room:
            self._room.notify_all()
        with self._lock:
            takers, self._progress = self._progress, []
        for take in takers:
            take(self._reports)
        self._log.close()

    def __repr__(self) -> str:
        return f"<Job {self.id} {self._status.value}>"


class JobResults:
    """The results of a job, for `for` and `async for`. Each iteration begins with the first result."""

    def __init__(self, log: ResultLog, make_reader: Callable[[], Reader]) -> None:
        self._log = log
        self._make_reader = make_reader

    def __iter__(self) -> Iterator[ResultItem]:
        reader = self._make_reader()
        while True:
            seen = reader.seen
            yield from reader.take()
            if reader.done:
                return
            if seen == reader.seen:
                self._log.wait_beyond(seen)

    async def __aiter__(self) -> AsyncIterator[ResultItem]:
        reader = self._make_reader()
        loop = asyncio.get_running_loop()
        while True:
            seen = reader.seen
            for item in reader.take():
                yield item
            if reader.done:
                return
            if seen == reader.seen:
                news = asyncio.Event()
                self._log.call_beyond(seen, partial(_wake, loop, news))
                await news.wait()


def _wake(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    with contextlib.suppress(RuntimeError):  # The reader's loop has closed; nobody waits any more.
        loop.call_soon_threadsafe(news.set)


def _sources(compiled: CompiledPipeline) -> dict[str, int]:
    sources: dict[str, int] = {}
    for node in compiled.graph.nodes:
        if isinstance(node.action, SendYield):
            sources[node.action.place] = sources.get(node.action.place, 0) + 1
    return sources
