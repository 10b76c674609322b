"""What threads have done, on its way to the event loop: many results at a time, and those of one receiver together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from dfmesh.engine.call_run import CallRun
from dfmesh.engine.worker_thread import Done, Ended

RESULTS_AT_ONCE = 128
"""Results that are handed over before what they led to is sent: many together save work, few do not wait for long."""


class ThreadResults:
    """Results that wait for the event loop.

    Attributes:
        count: How many were handed over so far.
        lag: Seconds that these have waited, summed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with none.

        Args:
            loop: Where results are handed over.
        """
        self.count = 0
        self.lag = 0.0
        self._loop = loop
        self._waiting: deque[tuple[Done | CallRun, Any, BaseException | None, float, float]] = deque()
        self._waking = False

    def add(self, done: Done | CallRun, value: Any, error: BaseException | None, seconds: float, ended: float) -> bool:
        """Hand a result to the event loop, on any thread; False if that is gone.

        Args:
            done: Gets it.
            value: The result.
            error: What was raised instead; None if nothing.
            seconds: How long that took.
            ended: When it was over, by `time.perf_counter`.
        """
        self._waiting.append((done, value, error, seconds, ended))
        if not self._waking:
            self._waking = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # The loop has closed; nobody wants the result.
                return False
        return True

    def _deliver(self) -> None:
        self._waking = False
        waiting = self._waiting
        left = RESULTS_AT_ONCE
        try:
            while waiting and left > 0:
                done, value, error, seconds, ended = waiting.popleft()
                self.count += 1
                self.lag += time.perf_counter() - ended
                if isinstance(done, CallRun):
                    left -= self._deliver_run(done, value, error, seconds, left)
                elif type(done) is Ended and error is None:
                    left -= self._deliver_alike(done, value, seconds, left)
                else:
                    left -= 1
                    done(value, error, seconds)
        finally:
            if waiting:  # Many, or one of them raised: the others get theirs when what these led to was sent.
                self._loop.call_soon(self._loop.call_soon, self._deliver)

    def _deliver_run(self, run: CallRun, value: Any, error: BaseException | None, seconds: float, most: int) -> int:
        """Hand over a result of a run, and those that come right behind it; give how many."""
        if error is not None:
            run.end(value, error, seconds)
            return 1
        waiting = self._waiting
        given, durations = [value], [seconds]
        waited, now = 0.0, time.perf_counter()
        while waiting and len(given) < most:
            following, value, error, seconds, ended = waiting[0]
            if following is not run or error is not None:
                break
            waiting.popleft()
            waited += now - ended
            given.append(value)
            durations.append(seconds)
        self.count += len(given) - 1
        self.lag += max(waited, 0.0)
        run.receiver.run_ended(run, run.take(len(given)), given, durations)
        return len(given)

    def _deliver_alike(self, done: Ended, value: Any, seconds: float, most: int) -> int:
        """Hand over a result and those of the same receiver that come right behind it; give how many."""
        waiting, receiver = self._waiting, done.receiver
        ends, given, durations = [done], [value], [seconds]
        waited, now = 0.0, time.perf_counter()
        while waiting and len(ends) < most:
            following, value, error, seconds, ended = waiting[0]
            if type(following) is not Ended or following.receiver is not receiver or error is not None:
                break
            waiting.popleft()
            waited += now - ended
            ends.append(following)
            given.append(value)
            durations.append(seconds)
        self.count += len(ends) - 1
        self.lag += max(waited, 0.0)
        if len(ends) == 1:
            done(given[0], None, durations[0])
        else:
            receiver.calls_ended(ends, given, durations)
        return len(ends)
