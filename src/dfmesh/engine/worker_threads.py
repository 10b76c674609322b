"""Threads for adapters that block: the edge where the event loop meets code that knows nothing of it.

A call that nobody waits for any more is stopped by an exception, which must hit the adapter's code of that very call
and nothing else. So each thread says, by `WorkerThread.work`, whose code it is in; whoever stops a call looks at that
and raises, both while holding the thread's `gate`; and a thread whose call was being stopped passes the gate, and
forgets an exception that came too late, before it does anything else. It is not used again.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from dfmesh.engine import stopping
from dfmesh.engine.adapters.present_call import CallStopped, ThisCall, in_this_task, on_this_thread
from dfmesh.engine.call_run import CallRun
from dfmesh.engine.stubborn_calls import StubbornCalls
from dfmesh.engine.thread_results import ThreadResults
from dfmesh.engine.worker_thread import Done, Shield, Waiting, Work, WorkerThread, run_apart

if TYPE_CHECKING:
    from dfmesh.engine.call_limits import Permit

MAX_THREADS = 64
"""Blocking calls that run at a time in one site; further ones wait."""

PATIENCE = 0.002
"""Seconds that work may wait while none gets done, before more threads take part.

Work that takes microseconds is best done by one thread that goes from one piece to the next without sleeping; work
that blocks needs a thread each. How long the queue stands still tells one from the other.
"""

HARD_LIMIT = 2000
"""Threads in all, with those that do not count: they wait for a stream, or nobody waits for what they do."""


class WorkerThreads:
    """Runs blocking functions on threads and gives their results to the event loop, many at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: str = "") -> None:
        """Start no thread yet.

        Args:
            loop: Where results go. All methods are to be called on it.
            owner: Whose threads these are, such as `site 'us'`, for the log.
        """
        self._loop = loop
        self._stubborn = StubbornCalls(loop, owner)
        self._work: deque[Work] = deque()
        self._mine = threading.local()
        self._excused = 0
        self._results = ThreadResults(loop)
        self._lock = threading.Lock()
        self._workers: list[WorkerThread] = []
        self._asleep: list[WorkerThread] = []
        # Threads that are awake and whose calls do not block; changed under the lock.
        self._at_hand = 0
        self._seen_finished = 0
        self._more = 1
        self._watch: asyncio.TimerHandle | None = None
        self._closed = False

    def submit(
        self,
        function: Callable[[], Any],
        done: Done,
        operation: str = "",
        call: ThisCall | None = None,
        permit: Permit | None = None,
    ) -> Work:
        """Run a function on a thread, then `done` on the event loop.

        Args:
            function: The function.
            done: Gets its result, also if the work is stopped or abandoned meanwhile.
            operation: Operation whose adapter the function calls; empty if it is no adapter's, and cannot be stopped.
            call: What the adapter sees of its call, if it has seen it before.
            permit: What the call has to be able to compute, and does without while it waits for an item.
        """
        work = Work(function, done, operation, call)
        work.permit = permit
        if self._stubborn.too_many:
            self._loop.call_soon(done, None, self._stubborn.refusal(), 0.0)
            return work
        self._work.append(work)
        if self._at_hand <= 0:
            self._wake(1)
        elif self._watch is None:
            self._watch_progress()
        return work

    def submit_all(self, functions: list[tuple[Callable[[], Any], Done]], operation: str) -> list[Work]:
        """As `submit`, for several calls of one operation."""
        if self._stubborn.too_many:
            return [self.submit(function, done, operation) for function, done in functions]
        added = [Work(function, done, operation, None) for function, done in functions]
        self._work.extend(added)
        if self._at_hand <= 0:
            self._wake(1)
        elif self._watch is None:
            self._watch_progress()
        return added

    def submit_run(self, run: CallRun) -> None:
        """As `submit_all`, for calls that one thread is to make as long as none of them blocks."""
        if self._stubborn.too_many:
            for work in run.split():
                self._loop.call_soon(work.done, None, self._stubborn.refusal(), 0.0)
            return
        self._work.append(run)
        if self._at_hand <= 0:
            self._wake(1)
        if self._watch is None:
            self._watch_progress()

    def hand_over(self, done: Done, value: Any, seconds: float) -> None:
        """Give something to the event loop before the function that runs on this thread has ended.

        Raises:
            CallStopped: the call is being stopped; nothing was given.
        """
        with Shield(getattr(self._mine, "worker", None)):
            self._results.add(done, value, None, seconds, time.perf_counter())

    def abandon(self, work: Work) -> None:
        """Say that nobody waits for a function any more: it does not begin, or its thread does not count any more."""
        work.abandoned = True
        worker = work.worker
        if worker is not None:
            with self._lock:
                if worker.work is work:
                    self._excuse(worker)
            self._help_out()

    def stop(self, work: Work, reason: str) -> None:
        """Abandon the call of an adapter and stop it: what it waits for ends, and `CallStopped` is raised in its code.

        A call that goes on nevertheless, since it waits in C or catches that, is stopped again when it can be, and is
        in the log.

        Args:
            work: The call.
            reason: Why, such as `its job has ended`.
        """
        if work.stopping:
            return
        work.stopping = reason
        self.abandon(work)
        if work.permit is not None:
            work.permit.abandon()
        if work.call is not None:
            work.call.cancel(reason, run_apart)
        if work.operation and work.worker is not None:
            self._stubborn.insist(work, work.worker)

    async def end_of(self, work: Work) -> None:
        """Wait until a call has ended that is being stopped."""
        if work.going_on:
            work.ended = work.ended or asyncio.Event()
            await work.ended.wait()

    @property
    def stuck(self) -> list[str]:
        """Operations whose calls were stopped and go on nevertheless, one entry per call."""
        return self._stubborn.operations

    def waiting(self) -> Waiting:
        """Wait, on one of the threads, for something that other work has to bring: the thread does not count.

        Gives a context manager; what runs inside is not stopped by an exception, and has to be ended by who stops.
        """
        return Waiting(self, getattr(self._mine, "worker", None))

    def begin_wait(self, worker: WorkerThread) -> None:
        """Let a thread not count while it waits."""
        with self._lock:
            self._excuse(worker)
        self._help_out()
        permit = None if worker.work is None else worker.work.permit
        if permit is not None:
            with suppress(RuntimeError):  # The loop has closed.
                self._loop.call_soon_threadsafe(permit.pause)

    def end_wait(self, worker: WorkerThread) -> None:
        """Let a thread that has waited count again, once its call ends, and wait until the call may compute."""
        with self._lock:
            worker.excuses -= 1
            self._excused -= not worker.excuses
        permit = None if worker.work is None else worker.work.permit
        if permit is not None:
            let_in = threading.Event()
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(permit.resume, let_in.set)
                let_in.wait()

    def _excuse(self, worker: WorkerThread) -> None:
        self._excused += not worker.excuses
        worker.excuses += 1
        if not worker.blocks:
            worker.blocks = True
            self._at_hand -= 1

    def _help_out(self) -> None:
        """Put another thread to work in the place of one that does not count any more."""
        if self._work and self._at_hand <= 0 and not self._closed:
            self._wake(1)

    def lag(self) -> tuple[int, float]:
        """Give the number of results so far, and the seconds that they waited until the event loop took them."""
        return self._results.count, self._results.lag

    def close(self) -> None:
        """Let idle threads end; those that hang are daemons and end with the process."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        self._work.clear()
        with self._lock:
            for worker in self._asleep:
                worker.bell.release()
            self._asleep.clear()

    def _watch_progress(self) -> None:
        self._seen_finished = self._results.count
        self._watch = self._loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        """Let more threads take part, twice as many each time, while work waits and none gets done."""
        self._watch = None
        self._mark_blocked()
        going_on = self._free_what_stands()
        if not self._work or self._closed:
            self._more = 1
            if going_on and not self._closed:
                self._watch_progress()
            return
        if self._results.count == self._seen_finished:
            self._wake(min(self._more, len(self._work)))
            self._more *= 2
        else:
            self._more = 1
        if going_on or self._asleep or self._may_grow():
            self._watch_progress()

    def _free_what_stands(self) -> bool:
        """Let others make the calls behind one that blocks a run; gives whether some run goes on."""
        going_on = False
        with self._lock:
            runs = [worker.run for worker in self._workers if worker.run is not None and not worker.run.abandoned]
        for run in runs:
            if run.seen == run.position:  # Twice in a row: the thread has not just been kept from its work by ours.
                self._work.extendleft(reversed(run.split()))
            else:
                run.seen = run.position
                going_on = True
        return going_on

    def _may_grow(self) -> bool:
        return len(self._workers) - self._excused < MAX_THREADS and len(self._workers) < HARD_LIMIT

    def _mark_blocked(self) -> None:
        begun_before = time.perf_counter() - PATIENCE
        with self._lock:
            for worker in self._workers:
                if worker.started < begun_before and not worker.blocks:
                    worker.blocks = True
                    self._at_hand -= 1

    def _wake(self, count: int) -> None:
        """Wake threads, the last that fell asleep first since its memory is warm; start new ones where none sleeps."""
        with self._lock:
            for _ in range(count):
                if self._asleep:
                    self._at_hand += 1
                    self._asleep.pop().bell.release()
                elif self._may_grow():
                    self._at_hand += 1
                    worker = WorkerThread()
                    self._workers.append(worker)
                    name = f"dfmesh-worker-{len(self._workers)}"
                    threading.Thread(target=self._run, args=(worker,), name=name, daemon=True).start()

    def _run(self, worker: WorkerThread) -> None:
        self._mine.worker = worker
        worker.thread = threading.get_ident()
        on_this_thread.find = lambda: None if worker.work is None else worker.work.this_call()
        on_this_thread.find_tell = lambda: None if worker.work is None else worker.work.tell()
        tracing = sys.gettrace()
        while not self._closed:
            item = self._next_work(worker)
            if item is None:
                if not self._sleep(worker):
                    return
                continue
            value: Any = None
            error: BaseException | None = None
            begun = False
            started = worker.started = time.perf_counter()
            item.worker = worker
            try:
                try:
                    worker.work = item
                    if not item.abandoned:
                        begun = True
                        value = item.result()
                except BaseException as raised:
                    error = raised
            except CallStopped as stopped:
                error = stopped
            # Until here, and no further, the thread may be stopped.
            while True:
                try:
                    worker.work = None
                    if item.stopping:
                        with worker.gate:
                            pass  # Who was about to raise has done it, or has seen that the call is over.
                        stopping.forget_own()
                    break
                except CallStopped as stopped:
                    error = stopped
            if sys.gettrace() is not tracing:  # Of an adapter: it would run, and may raise, in the middle of ours.
                sys.settrace(tracing)
            if item.call is not None:
                in_this_task.set(None)
            worker.started = math.inf
            done = partial(self._stopped, item) if item.stopping else worker.run or item.done
            staying = not (worker.blocks or item.stopping) or self._may_stay(worker, item, begun)
            ended = time.perf_counter()
            if not self._results.add(done, value, error, ended - started, ended) or not staying:
                return
            del item, value, error, done

    def _next_work(self, worker: WorkerThread) -> Work | None:
        """Give what a thread is to do next: a call of its run, or something that waits; None if there is nothing."""
        run = worker.run
        while run is None or not run.advance():
            worker.run = None
            try:
                item = self._work.popleft()
            except IndexError:
                return None
            if type(item) is not CallRun:
                return item
            worker.run = run = item
        return run

    def _stopped(self, work: Work, value: Any, error: BaseException | None, seconds: float) -> None:
        if work.ended is not None:
            work.ended.set()
        self._stubborn.ended(work, seconds)
        work.end(value, error, seconds)

    def _may_stay(self, worker: WorkerThread, item: Work, begun: bool) -> bool:
        """Tell whether a thread goes on whose call blocked or was being stopped; if not, others take what it leaves."""
        if begun and item.stopping:
            self._retire(worker)
            return False
        if self._count_again(worker):
            return True
        if worker.run is not None:
            self._work.appendleft(worker.run)
            self._help_out()
        return False

    def _retire(self, worker: WorkerThread) -> None:
        """Let a thread end whose call was stopped."""
        with self._lock:
            self._excused -= bool(worker.excuses)
            self._at_hand -= not worker.blocks
            self._workers.remove(worker)

    def _count_again(self, worker: WorkerThread) -> bool:
        """Count a thread again whose call has ended; False if there are enough without it."""
        with self._lock:
            self._at_hand += worker.blocks
            worker.blocks = False
            self._excused -= bool(worker.excuses)
            worker.excuses = 0
            if len(self._workers) - self._excused > MAX_THREADS:
                self._at_hand -= 1
                self._workers.remove(worker)
                return False
            return True

    def _sleep(self, worker: WorkerThread) -> bool:
        """Sleep until there is work; False if there will be none."""
        with self._lock:
            if self._work:  # Came after the look at the queue, and saw this thread awake.
                return True
            self._at_hand -= 1
            if self._closed:
                return False
            self._asleep.append(worker)
        worker.bell.acquire()
        return True
