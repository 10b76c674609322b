"""Copying large buffers on threads of their own, while the event loop goes on.

A buffer is copied in slices. Only the slices that are being copied are mapped, so what a process has of its own shared
memory does not count twice beside the values that it was copied from.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dfmesh.targets.local.mapping import HUGE_PAGE, Mapping

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_LARGEST_SLICE = 16 * 2**20
"""Bytes that one thread copies at a time. Less gives the interpreter's lock away, and waits for it, more often."""

_MOST_THREADS = 2
"""One thread does not use all that memory can do; measured, two copy 1.6 to 1.9 times as fast."""


class Copying:
    """One buffer on its way. It keeps both its source and its target from being freed or used again.

    Attributes:
        over: Whether it has ended. It is set on the event loop.
        failed: Whether it has ended without a copy, for want of memory.
    """

    def __init__(self, source: memoryview, target: Target, threads: int) -> None:
        """Begin with nothing copied.

        Args:
            source: The buffer.
            target: Where it goes.
            threads: How many threads will call `work`.
        """
        self.over = False
        self.failed = False
        self._source: memoryview | None = source
        self._target: Target | None = target
        self._size = len(source)
        share = -(-self._size // threads)
        self._slice = min(_LARGEST_SLICE, -(-share // HUGE_PAGE) * HUGE_PAGE)
        self._starts = deque(range(0, self._size, self._slice))
        self._working = threads
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Callable[[], None]] = []

    def when_over(self, call: Callable[[], None]) -> None:
        """Have a function called on the event loop, once, when it has ended."""
        self._waiting.append(call)

    def work(self) -> None:
        """Copy slices until there are none. On as many threads as was said, once on each."""
        source, target = self._source, self._target
        try:
            while source is not None and target is not None:
                start = self._starts.popleft()
                target.write(start, source[start : start + self._slice])
        except IndexError:
            pass  # The other threads are at the last slices, or done.
        except Exception:
            self.failed = True
            self._starts.clear()
        del source, target
        with self._lock:
            self._working -= 1
            last = self._working == 0
        if last:
            with contextlib.suppress(RuntimeError):  # The loop is closed; nobody waits.
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.over = True
        self._source = self._target = None
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()


class Target:
    """A block of shared memory that a buffer is copied into."""

    def __init__(self, mapping: Mapping, offset: int, size: int, keep: Any) -> None:
        """Name a block.

        Args:
            mapping: Where it is mapped.
            offset: Its first byte, a multiple of `HUGE_PAGE`.
            size: Bytes that it gets.
            keep: What keeps the block from being used for something else.
        """
        self._mapping = mapping
        self._offset = offset
        self._size = size
        self._keep = keep

    def write(self, start: int, data: memoryview) -> None:
        """Copy a slice into it, in any thread.

        Args:
            start: Where, a multiple of `HUGE_PAGE`.
            data: The bytes; there is room for them up to the next multiple of `HUGE_PAGE`.

        Raises:
            MemoryError: there is no memory for it.
        """
        import numpy as np

        first = self._offset + start
        stop = first + -(-len(data) // HUGE_PAGE) * HUGE_PAGE
        self._mapping.provide(first, stop)
        # numpy, unlike a memoryview, lets other threads run meanwhile.
        target = np.frombuffer(self._mapping.view[first : first + len(data)], dtype=np.uint8)
        target[:] = np.frombuffer(data, dtype=np.uint8)
        if self._mapping.lets_go(self._size):
            self._mapping.let_go(first, stop)


class Copier:
    """The threads that copy, started when they are first needed."""

    def __init__(self) -> None:
        self._count = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
        self._threads: ThreadPoolExecutor | None = None

    def start(self, source: memoryview, target: Target) -> Copying:
        """Begin to copy a buffer. Those that were begun before come first.

        Args:
            source: The buffer, which must not change meanwhile.
            target: Where it goes.
        """
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._count, "dfmesh-copying")
        copying = Copying(source, target, self._count)
        for _ in range(self._count):
            self._threads.submit(copying.work)
        return copying

    def close(self) -> None:
        """Let the threads end when they are done with what they have begun."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
