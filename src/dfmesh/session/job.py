"""A job: one running pipeline, as the user sees it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any

from dfmesh.compiler import CompiledPipeline
from dfmesh.engine.messages import CancelJob
from dfmesh.errors import JobCancelledError, JobError, OperationFailure, SessionError
from dfmesh.session.connection import Connection
from dfmesh.session.given_arguments import function_problem, refuse, seconds
from dfmesh.session.job_inbox import JobInbox, JobStatus
from dfmesh.session.job_log import JobLog
from dfmesh.session.job_progress import JobProgress
from dfmesh.session.parameter_sets import JobFeed, iterator_failure, one_set
from dfmesh.session.result_log import Reader, ResultLog
from dfmesh.session.results import ResultItem, Results, no_such_place


class Job:
    """One running pipeline. Made by `session.submit`; all methods may be called from any thread.

    Iterating gives the results as they come: `for item in job:` or `async for item in job:`. In a coroutine
    `await job` gives what `job.result()` does.

    Attributes:
        id: Unique name of the job.
    """

    def __init__(self, inbox: JobInbox, feed: JobFeed, connection: Connection) -> None:
        """Show a job; `session.submit` makes it.

        Args:
            inbox: What comes from the homesite.
            feed: What takes parameter sets there.
            connection: With the homesite.
        """
        self.id = inbox.job
        self._inbox = inbox
        self._feed = feed
        self._connection = connection

    # How it stands

    @property
    def name(self) -> str:
        """Name of the pipeline; empty if it has none."""
        return self._inbox.plan.name

    @property
    def places(self) -> Mapping[str, int]:
        """Places to which results go, with the number of Yields that send to each."""
        return self._inbox.plan.sources

    @property
    def compiled(self) -> CompiledPipeline:
        """What runs.

        Raises:
            SessionError: another client has submitted the job.
        """
        return self._inbox.plan.compiled

    @property
    def status(self) -> JobStatus:
        """How the job stands: starting, running, finished, failed or cancelled; detached after `detach`."""
        status = self._inbox.status
        # The sets that an iterator gave before it failed have all been done.
        return JobStatus.FAILED if status is JobStatus.FINISHED and self._feed.error is not None else status

    @property
    def errors(self) -> tuple[OperationFailure, ...]:
        """What has failed, once the job is over; in frame order, and then what the iterator of parameters raised."""
        raised = self._feed.error
        if raised is None or not self._inbox.over:
            return self._inbox.errors
        return (*self._inbox.errors, iterator_failure(raised, self._feed.count))

    @property
    def log(self) -> JobLog:
        """What the adapters of the job have printed and logged so far: `LogLine`s, the last 10,000."""
        return self._inbox.lines

    def progress(self, timeout: float | None = 10.0) -> JobProgress:
        """Ask all sites how far they are; `print(job.progress())` shows a table.

        Args:
            timeout: Seconds to wait for the answer; None to wait for ever.

        Raises:
            TimeoutError: no answer came in time.
        """
        self._inbox.ask_sites(seconds(timeout))
        return JobProgress(self.status, self._inbox.reports, len(self._inbox.log.store))

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
        inbox = self._inbox
        order, sources = inbox.plan.order, inbox.plan.sources
        if place is not None and place not in sources:
            raise no_such_place(place, list(sources))
        return JobResults(
            inbox.log,
            lambda: Reader(inbox.log, place, ordered=ordered, order=order, sources=sources),
            self._connection.check_may_block,
        )

    def __iter__(self) -> Iterator[ResultItem]:
        return iter(self.results(ordered=False))

    def __aiter__(self) -> AsyncIterator[ResultItem]:
        return aiter(self.results(ordered=False))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job is over, however it ends.

        Args:
            timeout: Seconds to wait at most; None to wait for ever.

        Returns:
            Whether it is over.
        """
        return self._inbox.wait(seconds(timeout))

    def result(self, timeout: float | None = None) -> Results:
        """Wait until the job is over and give all its results.

        Args:
            timeout: Seconds to wait at most; None to wait for ever.

        Raises:
            JobError: something failed; `errors` says what.
            JobCancelledError: the job was cancelled.
            SessionError: this job was detached from.
            TimeoutError: the job is not over yet; it goes on.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"job {self.id} is not over after {timeout} s; it goes on")
        return self._outcome()

    def partial_result(self) -> Results:
        """Give the results that have come so far, of a job that runs, failed or was cancelled."""
        by_place: dict[str, list[ResultItem]] = {place: [] for place in self._inbox.plan.sources}
        for item in self._inbox.log.all():
            by_place.setdefault(item.place, []).append(item)
        order = self._inbox.plan.order
        for items in by_place.values():
            if len(items) > 1:
                items.sort(key=lambda item: (item.frame, order.get(item.node, 0)))
        return Results(by_place, range(self._feed.count))

    def __await__(self) -> Generator[Any, None, Results]:
        """Wait in a coroutine, as `result()` does on a thread."""
        return self._wait_async().__await__()

    async def _wait_async(self) -> Results:
        over = asyncio.Event()
        self._inbox.when_over(partial(_wake, asyncio.get_running_loop(), over))
        await over.wait()
        return self._outcome()

    def _outcome(self) -> Results:
        if self._feed.error is not None:
            raise self._feed.error
        status = self._inbox.status
        if status is JobStatus.FINISHED:
            return self.partial_result()
        if status is JobStatus.CANCELLED:
            errors = self.errors
            reason = f": {errors[0].message}" if errors else ""
            raise JobCancelledError(f"job {self.id} was cancelled{reason}")
        if status is JobStatus.DETACHED:
            raise SessionError(f"job {self.id} was detached from; session.attach({self.id!r}) gives all its results")
        raise JobError(self.id, self.errors)

    # Steering

    def send(self, parameters: Mapping[str, Any] | None = None, /, **more: Any) -> int:
        """Run a further parameter set in this job, which was submitted with `close=False`.

        If a thousand sets are not done yet, it waits until there is room for another.

        Args:
            parameters: The parameters.
            more: The same by keyword.

        Returns:
            The number of the parameter set, which is the first entry of its results' frames.

        Raises:
            PipelineError: the parameters do not fit the pipeline.
            SessionError: the job takes no more; submit it with `close=False`.
        """
        return self._feed.send(one_set(parameters, more))

    def close(self) -> None:
        """Say that there will be no more parameter sets: the job ends when those given are done."""
        self._feed.close()

    def cancel(self, reason: str = "cancelled by the client") -> None:
        """Stop the job. It is over soon after; results that have come stay."""
        if not self._inbox.over:
            text = reason.encode("utf-8", "backslashreplace").decode("utf-8")
            self._connection.post(CancelJob(self.id, text))

    def detach(self) -> None:
        """Leave the job to its host, where it goes on; `session.attach(job.id)` meets it again.

        Parameter sets that have not been sent yet, since they come from an iterator, are not part of the job then.

        Raises:
            SessionError: the job has no host: its target is another one than `up`.
        """
        hosting = self._connection.hosting
        if hosting is None:
            raise SessionError(
                "this job ends with its session; one that outlives it needs target 'up' (`dfmesh up FILE`)"
            )
        if self._inbox.over:
            return
        self._connection.check_may_block()
        self._feed.leave()
        self._connection.run(hosting.detach(self.id, self._inbox.plan.number)).result()
        self._connection.call_soon(lambda: self._inbox.end(JobStatus.DETACHED, []))
        self._inbox.wait(None)

    def on_result(self, callback: Callable[[ResultItem], None]) -> None:
        """Call a function with each result as soon as it is there; those that have come already are given first.

        The calls are made one at a time on a thread of dfmesh's, which does nothing else meanwhile: the function
        must be quick, and must not wait for a job or a session. What it raises is logged.
        """
        refuse(function_problem(callback, "on_result", "a result", optional=False))
        self._inbox.on_result(callback)

    @property
    def restarts(self) -> tuple[tuple[OperationFailure, ...], ...]:
        """What was lost, each time that a site died and the job went on from what was unfinished."""
        return tuple(tuple(failure.to_error() for failure in lost) for lost in self._inbox.restarts)

    def on_restart(self, callback: Callable[[tuple[OperationFailure, ...]], None]) -> None:
        """Call a function with what was lost, each time that the job goes on without it; otherwise as `on_result`."""
        refuse(function_problem(callback, "on_restart", "what was lost", optional=False))
        self._inbox.on_restart(lambda lost: callback(tuple(failure.to_error() for failure in lost)))

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.status.value}>"


class JobResults:
    """The results of a job, for `for` and `async for`. Each iteration begins with the first result."""

    def __init__(self, log: ResultLog, make_reader: Callable[[], Reader], check_may_block: Callable[[], None]) -> None:
        self._log = log
        self._make_reader = make_reader
        self._check_may_block = check_may_block

    def __iter__(self) -> Iterator[ResultItem]:
        reader = self._make_reader()
        while True:
            seen = reader.seen
            yield from reader.take()
            if reader.done:
                return
            if seen == reader.seen:
                self._check_may_block()
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


__all__ = ["Job", "JobProgress", "JobResults", "JobStatus"]
