"""Threads for adapters that block: the edge where the event loop meets code that knows nothing of it."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

MAX_THREADS = 64
"""Blocking calls that run at a time in one site; further ones wait."""

PATIENCE = 0.002
"""Seconds that work may wait while none gets done, before more threads take part.

Work that takes microseconds is best done by one thread that goes from one piece to the next without sleeping; work
that blocks needs a thread each. How long the queue stands still tells one from the other.
"""

Done = Callable[[Any, BaseException | None, float], None]
"""Gets the result, or the exception, and the seconds it took; called on the event loop."""


HARD_LIMIT = 2000
"""Threads in all, with those that do not count: they wait for a stream, or nobody waits for what they do."""


class Work:
    """A function that was submitted.

    Attributes:
        function: The function.
        done: Gets its result.
        worker: The thread that runs it; None before it began.
        abandoned: Nobody waits for it any more.
    """

    __slots__ = ("abandoned", "done", "function", "worker")

    def __init__(self, function: Callable[[], Any], done: Done) -> None:
        self.function = function
        self.done = done
        self.worker: _Worker | None = None
        self.abandoned = False


class _Worker:
    """One thread.

    Attributes:
        bell: Held by the thread; released to wake it.
        started: When its present call began; infinity between calls.
        blocks: Its present call has taken longer than `PATIENCE`: the thread does not count as there for other work.
        excuses: Reasons why the thread does not count among `MAX_THREADS`.
    """

    __slots__ = ("bell", "blocks", "excuses", "started")

    def __init__(self) -> None:
        self.bell = threading.Lock()
        self.bell.acquire()
        self.started = math.inf
        self.blocks = False
        self.excuses = 0


class WorkerThreads:
    """Runs blocking functions on threads and gives their results to the event loop, many at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start no thread yet.

        Args:
            loop: Where results go. All methods are to be called on it.
        """
        self._loop = loop
        self._work: deque[Work] = deque()
        self._mine = threading.local()
        self._excused = 0
        self._results: deque[tuple[Done, Any, BaseException | None, float, float]] = deque()
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._asleep: list[_Worker] = []
        # Threads that are awake and whose calls do not block; changed under the lock.
        self._at_hand = 0
        self._finished = 0
        self._lag = 0.0
        self._seen_finished = 0
        self._more = 1
        self._waking = False
        self._watch: asyncio.TimerHandle | None = None
        self._closed = False

    def submit(self, function: Callable[[], Any], done: Done) -> Work:
        """Run a function on a thread, then `done` on the event loop."""
        work = Work(function, done)
        self._work.append(work)
        if self._at_hand <= 0:
            self._wake(1)
        elif self._watch is None:
            self._watch_progress()
        return work

    def abandon(self, work: Work) -> None:
        """Say that nobody waits for a function any more: it does not begin, or its thread does not count any more."""
        work.abandoned = True
        worker = work.worker
        if worker is not None:
            with self._lock:
                self._excuse(worker)
            self._help_out()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait, on one of the threads, for something that other work has to bring: the thread does not count."""
        worker: _Worker | None = getattr(self._mine, "worker", None)
        if worker is None:
            yield
            return
        with self._lock:
            self._excuse(worker)
        self._help_out()
        try:
            yield
        finally:
            with self._lock:
                worker.excuses -= 1
                self._excused -= not worker.excuses

    def _excuse(self, worker: _Worker) -> None:
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
        return self._finished, self._lag

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
        self._seen_finished = self._finished
        self._watch = self._loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        """Let more threads take part, twice as many each time, while work waits and none gets done."""
        self._watch = None
        self._mark_blocked()
        if not self._work or self._closed:
            self._more = 1
            return
        if self._finished == self._seen_finished:
            self._wake(min(self._more, len(self._work)))
            self._more *= 2
        else:
            self._more = 1
        if self._asleep or self._may_grow():
            self._watch_progress()

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
                    worker = _Worker()
                    self._workers.append(worker)
                    name = f"dfmesh-worker-{len(self._workers)}"
                    threading.Thread(target=self._run, args=(worker,), name=name, daemon=True).start()

    def _run(self, worker: _Worker) -> None:
        work = self._work
        self._mine.worker = worker
        tracing = sys.gettrace()
        while not self._closed:
            try:
                item = work.popleft()
            except IndexError:
                if not self._sleep(worker):
                    return
                continue
            value: Any = None
            error: BaseException | None = None
            started = worker.started = time.perf_counter()
            item.worker = worker
            try:
                value = None if item.abandoned else item.function()
            except BaseException as raised:
                error = raised
            if sys.gettrace() is not tracing:  # Of an adapter: it would run, and may raise, in the middle of ours.
                sys.settrace(tracing)
            worker.started = math.inf
            if worker.blocks and not self._count_again(worker):
                self._return(item.done, value, error, time.perf_counter() - started)
                return
            if not self._return(item.done, value, error, time.perf_counter() - started):
                return
            del item, value, error

    def _count_again(self, worker: _Worker) -> bool:
        """Count a thread again whose call has ended; False if there are enough without it."""
        with self._lock:
            worker.blocks = False
            self._excused -= bool(worker.excuses)
            worker.excuses = 0
            if len(self._workers) - self._excused > MAX_THREADS:
                self._workers.remove(worker)
                return False
            self._at_hand += 1
            return True

    def _sleep(self, worker: _Worker) -> bool:
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

    def _return(self, done: Done, value: Any, error: BaseException | None, seconds: float) -> bool:
        """Hand a result to the event loop; False if that is gone."""
        self._results.append((done, value, error, seconds, time.perf_counter()))
        if not self._waking:
            self._waking = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # The loop has closed; nobody wants the result.
                return False
        return True

    def _deliver(self) -> None:
        self._waking = False
        results = self._results
        try:
            while results:
                done, value, error, seconds, ended = results.popleft()
                self._finished += 1
                self._lag += time.perf_counter() - ended
                done(value, error, seconds)
        finally:
            if results:  # One of them raised; the others still get theirs.
                self._loop.call_soon(self._deliver)
