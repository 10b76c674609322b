"""One thread for adapters, and the work that it does. How they are stopped is told in `worker_threads`."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dfmesh.engine import stopping
from dfmesh.engine.adapters.present_call import CallStopped, Tell, ThisCall, in_this_task
from dfmesh.processes import forked_child
from dfmesh.values import UNCHANGING, take_over

if TYPE_CHECKING:
    from dfmesh.engine.call_limits import Permit
    from dfmesh.engine.call_run import CallRun
    from dfmesh.engine.worker_threads import WorkerThreads

Done = Callable[[Any, BaseException | None, float], None]
"""Gets the result, or the exception, and the seconds it took; called on the event loop."""


class Ended:
    """A `Done` of a call. Results that have one of the same receiver are handed over together.

    Attributes:
        receiver: Gets the results.
        call: Which call it was.
        plan: How it was made.
    """

    __slots__ = ("call", "plan", "receiver")

    def __init__(self, receiver: Receiver, call: int, plan: Any) -> None:
        self.receiver = receiver
        self.call = call
        self.plan = plan

    def tell(self, source: str, logger: str, text: str) -> None:
        """Take what the call prints or logs; on any thread."""
        self.receiver.say(self.call, source, logger, text)

    def __call__(self, value: Any, error: BaseException | None, seconds: float) -> None:
        """Hand over a result that is alone, or an exception."""
        self.receiver.call_ended(self.call, self.plan, value, error, seconds)


class Receiver(Protocol):
    """Who gets the results of calls, on the event loop."""

    def say(self, call: int, source: str, logger: str, text: str) -> None:
        """A call prints or logs; on any thread."""
        ...

    def call_ended(
        self,
        call: int,
        plan: Any,
        value: Any,
        error: BaseException | None,
        seconds: float,
        given: Mapping[str, Any] | None = None,
    ) -> None:
        """A call has ended; `given` are its arguments, where its function does not have them."""
        ...

    def calls_ended(self, ends: list[Ended], given: list[Any], seconds: list[float]) -> None:
        """Calls have ended with values."""
        ...


class Work:
    """A function that was submitted.

    Attributes:
        function: The function.
        done: Gets its result.
        operation: Operation whose call it is; empty if it is none, and is not to be stopped.
        worker: The thread that runs it; None before it began.
        abandoned: Nobody waits for it any more.
        stopping: It is being stopped.
        call: What the adapter sees of the call; made when it asks.
        ended: Set when the call has ended that is being stopped; made by who waits for that.
        permit: What it needs to compute; None if nothing.
    """

    __slots__ = ("abandoned", "call", "done", "ended", "function", "operation", "permit", "stopping", "worker")

    def __init__(self, function: Callable[[], Any], done: Done, operation: str, call: ThisCall | None) -> None:
        self.function = function
        self.done = done
        self.operation = operation
        self.worker: WorkerThread | None = None
        self.abandoned = False
        self.stopping = ""
        self.call = call
        self.ended: asyncio.Event | None = None
        self.permit: Permit | None = None

    @property
    def leaves(self) -> bool:
        """Whether the result is about to be sent to other sites."""
        return type(self.done) is Ended and self.done.plan.leaves

    @property
    def going_on(self) -> bool:
        """Whether a thread is in its code. Of what was abandoned before, nothing begins any more."""
        return self.worker is not None and self.worker.work is self

    def invoke(self) -> Any:
        """Call the function."""
        return self.function()

    def end(self, value: Any, error: BaseException | None, seconds: float) -> None:
        """Hand over how it ended, on the event loop."""
        self.done(value, error, seconds)

    def result(self) -> Any:
        """Call the function, on a thread, and give its result: taken over, before the next call there can change it."""
        forks, tracing = forked_child.forks, sys.gettrace()
        try:
            try:
                value = self.invoke()
            finally:
                if sys.gettrace() is not tracing:  # Of an adapter: it would run, and may raise, in the middle of ours.
                    sys.settrace(tracing)
        except BaseException as error:
            forked_child.end_if_since(forks, error)
            raise
        if forked_child.forks != forks:
            forked_child.end_if_since(forks)
        if type(value) in UNCHANGING or not self.operation:
            return value
        cell = [value]
        del value
        return take_over(cell, self.leaves)

    def tell(self) -> Tell | None:
        """Give what takes what the call prints and logs; None if it is no call."""
        if self.call is not None:
            return self.call.tell
        return self.done.tell if type(self.done) is Ended else None

    def this_call(self) -> ThisCall:
        """Give what the adapter sees of the call; on the thread that runs it."""
        call = self.call
        if call is None:
            call = self.call = ThisCall(self.operation, self.tell())
            if self.stopping:  # Set while we made it, by who did not see it.
                call.cancel(self.stopping, run_apart)
        in_this_task.set(call)
        return call


class WorkerThread:
    """One thread.

    Attributes:
        bell: Held by the thread; released to wake it.
        gate: Held while an exception is raised in the thread.
        work: Whose code the thread is in; None while it is in our own.
        run: The run of calls that it goes through; None if none.
        shielded: It is in code of ours that this code has called.
        thread: Its identifier.
        started: When its present call began; infinity between calls.
        blocks: Its present call has taken longer than `PATIENCE`: the thread does not count as there for other work.
        excuses: Reasons why the thread does not count among `MAX_THREADS`.
    """

    __slots__ = ("bell", "blocks", "excuses", "gate", "run", "shielded", "started", "thread", "work")

    def __init__(self) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.gate = threading.Lock()
        self.work: Work | None = None
        self.run: CallRun | None = None
        self.shielded = False
        self.thread = 0
        self.started = math.inf
        self.blocks = False
        self.excuses = 0


class Shield:
    """Entered by a thread, within an adapter's call, for code of ours that must not be stopped half-way."""

    __slots__ = ("_worker",)

    def __init__(self, worker: WorkerThread | None) -> None:
        self._worker = worker

    def __enter__(self) -> None:
        """Begin.

        Raises:
            CallStopped: the call is being stopped.
        """
        worker = self._worker
        if worker is None:
            return
        worker.shielded = True
        work = worker.work
        if work is not None and work.stopping:
            try:
                with worker.gate:
                    pass  # As at the end of a call.
                stopping.forget_own()
            finally:
                worker.shielded = False
            raise CallStopped(work.stopping)

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.shielded = False


class Waiting(Shield):
    """Entered by a thread, within an adapter's call, for code of ours that waits. See `WorkerThreads.waiting`."""

    __slots__ = ("_threads",)

    def __init__(self, threads: WorkerThreads, worker: WorkerThread | None) -> None:
        super().__init__(worker)
        self._threads = threads

    def __enter__(self) -> None:
        super().__enter__()
        if self._worker is not None:
            self._threads.begin_wait(self._worker)

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._threads.end_wait(self._worker)
            self._worker.shielded = False


def run_apart(function: Callable[[], None]) -> None:
    """Run a function on a thread of its own, which nobody waits for."""
    threading.Thread(target=function, name="dfmesh-on-cancel", daemon=True).start()
