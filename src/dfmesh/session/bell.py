"""What a thread of the user waits for, rung by another thread."""

from __future__ import annotations

import threading
import time

INTERRUPT_CHECK = 1.0
"""Seconds after which a wait looks whether Ctrl-C was pressed.

A signal that comes just before Python blocks on a lock is not seen until the lock is free, which may be never.
"""


class Bell:
    """Rings once. A bare lock: one wait for a job needs no more, and jobs may take less time than an event's locks do.

    Attributes:
        ring: Rings it, from any thread; to be called once at most.
    """

    __slots__ = ("_lock", "ring")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.ring = self._lock.release

    def wait(self, deadline: float | None) -> bool:
        """Block until it has rung; False if it has not by then.

        Args:
            deadline: A time of `time.monotonic`; None to wait for ever.
        """
        acquire = self._lock.acquire
        while True:
            left = INTERRUPT_CHECK if deadline is None else min(INTERRUPT_CHECK, deadline - time.monotonic())
            if acquire(timeout=max(left, 0.0)):
                return True
            if left < INTERRUPT_CHECK and deadline is not None and time.monotonic() >= deadline:
                return False
