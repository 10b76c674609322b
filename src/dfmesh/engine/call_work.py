"""What goes on for the calls of one job: code on threads, tasks, and work that waits until it may compute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from dfmesh.engine.adapters import ThisCall
from dfmesh.engine.call_limits import Limits, Permit
from dfmesh.engine.call_run import CallRun
from dfmesh.engine.stubborn_calls import STOP_SECONDS
from dfmesh.engine.unstoppable_tasks import cancel_for_good
from dfmesh.engine.worker_thread import Done, Work
from dfmesh.engine.worker_threads import WorkerThreads
from dfmesh.errors import DfmeshError

JOB_ENDED = "its job has ended"
TOO_LONG = "it took longer than its timeout"


class CallTimeoutError(DfmeshError):
    """A call took longer than its `timeout`."""

    shows_no_value = True


class EscapedError(Exception):
    """Carries an exception that would end the event loop, or cannot be set on a future.

    Attributes:
        error: That exception.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error


class CallWork:
    """All work of the calls of one job at one site.

    Attributes:
        threads: Where adapters run that block.
        loop: The event loop.
        tasks: By call.
        working: What runs on a thread, by call.
        runs: Runs of calls on threads.
        in_tasks: What async adapters see of their calls.
        closed: Whether the job has ended, and nothing is to be told any more.
    """

    def __init__(self, threads: WorkerThreads) -> None:
        """Begin with none.

        Args:
            threads: Where adapters run that block.
        """
        self.threads = threads
        self.loop = asyncio.get_running_loop()
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.working: dict[int, Work] = {}
        self.runs: dict[CallRun, None] = {}
        self.in_tasks: dict[int, ThisCall] = {}
        self.closed = False
        self._permits: dict[int, Permit] = {}
        self._apart: dict[asyncio.Task[tuple[Any, BaseException | None]], str] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._stopped: list[Work] = []

    # On threads

    def begin(self, call: int, limits: Limits | None, function: Callable[[], Any], done: Done, seen: ThisCall) -> None:
        """Run a function of a call on a thread, as soon as it may compute.

        Args:
            call: Its number.
            limits: What it has to keep to; None if to nothing.
            function: Runs on the thread.
            done: Gets told how that ended.
            seen: What the adapter sees of the call.
        """
        if limits is None:
            self.working[call] = self.threads.submit(function, done, seen.operation, seen)
            return
        permit = self._permits[call] = Permit(self, limits)

        def begin() -> None:
            del self._permits[call]
            over = partial(give_back, permit, done)
            self.working[call] = self.threads.submit(function, over, seen.operation, seen, permit)

        permit.ask(begin)

    def begin_run(self, run: CallRun, limits: Limits | None) -> None:
        """Make the calls of a run, as soon as they may compute."""
        if limits is None:
            self._submit_run(run)
            return
        permit = run.permit = self._permits[run.first] = Permit(self, limits)

        def begin() -> None:
            del self._permits[run.first]
            self._submit_run(run)

        permit.ask(begin)

    def _submit_run(self, run: CallRun) -> None:
        self.runs[run] = None
        self.threads.submit_run(run)

    def run_over(self, run: CallRun) -> None:
        """All calls of a run have ended, or go on without it."""
        self.runs.pop(run, None)
        if run.permit is not None:
            run.permit.give_back()

    def waits_for_turn(self, call: int) -> bool:
        """Whether a piece of work has not begun, since others compute."""
        return call in self._permits

    def forget_turn(self, call: int) -> None:
        """Begin no work that waits until it may compute."""
        permit = self._permits.pop(call, None)
        if permit is not None:
            permit.give_back()

    def on_thread(
        self,
        function: Callable[[], Any],
        operation: str,
        seen: ThisCall | None = None,
        permit: Permit | None = None,
    ) -> asyncio.Future[Any]:
        """Run a function on a thread, and stop it if the future is cancelled.

        Args:
            function: What to run.
            operation: Name of the operation; empty for work of our own.
            seen: What the adapter sees of the call.
            permit: Given back when the function has ended.
        """
        future = self.loop.create_future()
        if permit is not None:
            permit.lent = True

        def done(value: Any, error: BaseException | None, _seconds: float) -> None:
            if permit is not None:
                permit.give_back()
            if future.done():
                return
            if isinstance(error, StopIteration | SystemExit | KeyboardInterrupt):
                error = EscapedError(error)
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        work = self.threads.submit(function, done, operation, seen, permit)

        def ended(future: asyncio.Future[Any]) -> None:
            if future.cancelled():
                self.stop(work)

        future.add_done_callback(ended)
        return future

    def on_own_thread(self, function: Callable[[], None]) -> None:
        """Run a function on a thread, whatever becomes of it."""
        self.threads.submit(function, ignore)

    def stop(self, work: Work) -> None:
        """Stop what runs on a thread."""
        self.threads.stop(work, JOB_ENDED if self.closed else TOO_LONG)
        if self.closed:
            self._stopped.append(work)

    # On the event loop

    def begin_task(self, call: int, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of a call."""

        def ended(task: asyncio.Task[None]) -> None:
            if self.tasks.get(call) is task:  # Else the next pull has begun already.
                del self.tasks[call]

        self.tasks[call] = task = self.loop.create_task(work)
        task.add_done_callback(ended)

    def begin_closing(self, work: Coroutine[Any, Any, None], operation: str) -> None:
        """Run a coroutine that closes what a call has left open; the end of the job gives it some time, too."""
        task = self.loop.create_task(work)
        self._closing.add(task)
        late = self.loop.call_later(STOP_SECONDS, cancel_for_good, task, operation, "its stream was closed")

        def ended(task: asyncio.Task[None]) -> None:
            self._closing.discard(task)
            late.cancel()

        task.add_done_callback(ended)

    def apart(
        self, work: Coroutine[Any, Any, Any], operation: str, permit: Permit | None
    ) -> asyncio.Task[tuple[Any, BaseException | None]]:
        """Begin a task of its own: an adapter that does not listen to its cancellation must not hold up a time-out.

        Args:
            work: What to run.
            operation: Name of the operation.
            permit: Given back when that has ended.

        Returns:
            A task that gives value and error; it never raises, but for its cancellation.
        """
        task = self.loop.create_task(_captured(work))
        self._apart[task] = operation

        def ended(task: asyncio.Task[tuple[Any, BaseException | None]]) -> None:
            self._apart.pop(task, None)
            work.close()  # It never began if the task was cancelled at once.
            over(permit)

        task.add_done_callback(ended)
        return task

    # The end

    def close(self) -> None:
        """Stop all that goes on."""
        self.closed = True
        if not (self.working or self.runs or self.tasks or self._permits or self._apart or self.in_tasks):
            return
        for waiting in list(self._permits):
            self.forget_turn(waiting)
        for work in (*self.working.values(), *self.runs):
            self.stop(work)
        for run in self.runs:
            if run.permit is not None and not run.going_on:  # Else its last call gives it back.
                run.permit.give_back()
        for call, task in self.tasks.items():
            cancel_for_good(task, self.in_tasks[call].operation if call in self.in_tasks else "", JOB_ENDED)
        for limited, operation in self._apart.items():
            cancel_for_good(limited, operation, JOB_ENDED)
        for seen in self.in_tasks.values():
            seen.cancel(JOB_ENDED, self.on_own_thread)

    async def ended(self) -> None:
        """Wait, after `close`, until nothing goes on any more, which may take for ever."""
        while tasks := [*self.tasks.values(), *self._apart, *self._closing]:
            await asyncio.wait(tasks)
        for work in self._stopped:
            await self.threads.end_of(work)


async def _captured(work: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    try:
        return await work, None
    except BaseException as error:  # SystemExit would end the event loop if it left a task.
        return None, error


def give_back(permit: Permit, done: Done, value: Any, error: BaseException | None, seconds: float) -> None:
    """Tell the end of work on a thread, whose permit goes back."""
    permit.give_back()
    done(value, error, seconds)


def over(permit: Permit | None) -> None:
    """Give back a permit at the end of a call, unless its code goes on, on a thread."""
    if permit is not None and not permit.lent:
        permit.give_back()


def ignore(_value: Any, _error: BaseException | None, _seconds: float) -> None:
    """Hear of an end that nobody waits for."""


__all__ = [
    "JOB_ENDED",
    "TOO_LONG",
    "CallTimeoutError",
    "CallWork",
    "EscapedError",
    "give_back",
    "ignore",
    "over",
]
