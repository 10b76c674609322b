"""Threads for adapters that block: the edge where the event loop meets code that knows nothing of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

MAX_THREADS = 64
"""Blocking calls that run at a time in one site; further ones wait."""

PATIENCE = 0.002
"""Seconds that work may wait before another thread is started for it.

Work that takes microseconds is best done by one thread that never sleeps; work that blocks needs a thread each. How
long the queue stands still tells one from the other.
"""

Done = Callable[[Any, BaseException | None, float], None]
"""Gets the result, or the exception, and the seconds it took; called on the event loop."""


class WorkerThreads:
    """Runs blocking functions on threads and gives their results to the event loop, many at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start no thread yet.

        Args:
            loop: Where results go. All methods are to be called on it.
        """
        self._loop = loop
        self._work: SimpleQueue[tuple[Callable[[], Any], Done] | None] = SimpleQueue()
        self._results: deque[tuple[Done, Any, BaseException | None, float]] = deque()
        self._threads = 0
        self._submitted = 0
        self._finished = 0
        self._seen_finished = 0
        self._waking = False
        self._watch: asyncio.TimerHandle | None = None
        self._closed = False

    def submit(self, function: Callable[[], Any], done: Done) -> None:
        """Run a function on a thread, then `done` on the event loop."""
        self._submitted += 1
        self._work.put((function, done))
        if self._threads == 0:
            self._start_thread()
        elif self._submitted - self._finished > self._threads and self._watch is None:
            self._seen_finished = self._finished
            self._watch = self._loop.call_later(PATIENCE, self._look)

    def close(self) -> None:
        """Let idle threads end; those that hang are daemons and end with the process."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        for _ in range(self._threads):
            self._work.put(None)

    def _look(self) -> None:
        """Start threads as long as work waits and none gets done."""
        self._watch = None
        waiting = self._submitted - self._finished - self._threads
        if waiting <= 0 or self._closed:
            return
        if self._finished == self._seen_finished:
            for _ in range(min(waiting, MAX_THREADS - self._threads)):
                self._start_thread()
        self._seen_finished = self._finished
        if self._threads < MAX_THREADS:
            self._watch = self._loop.call_later(PATIENCE, self._look)

    def _start_thread(self) -> None:
        self._threads += 1
        threading.Thread(target=self._run, name=f"dfmesh-worker-{self._threads}", daemon=True).start()

    def _run(self) -> None:
        work, results = self._work, self._results
        while (item := work.get()) is not None:
            function, done = item
            value: Any = None
            error: BaseException | None = None
            started = time.perf_counter()
            try:
                value = function()
            except BaseException as raised:
                error = raised
            results.append((done, value, error, time.perf_counter() - started))
            del item, function, done, value, error
            if not self._waking:
                self._waking = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:  # The loop has closed; nobody wants the result.
                    return

    def _deliver(self) -> None:
        self._waking = False
        results = self._results
        while results:
            done, value, error, seconds = results.popleft()
            self._finished += 1
            done(value, error, seconds)
