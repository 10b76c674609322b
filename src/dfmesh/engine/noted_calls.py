"""The calls of one job that a site's call log has, and where they stand in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from dfmesh.engine.call_log import RUN, CallLog
from dfmesh.engine.frame_run import FrameRun, Frames
from dfmesh.netir import Frame


class _Noted:
    """Calls in one slot.

    Attributes:
        first: Number of the first call.
        left: Which still go on, as bits.
        slot: Where they stand.
        stop: Number behind that of the last call.
    """

    __slots__ = ("first", "left", "slot", "stop")

    def __init__(self, first: int, count: int, slot: int) -> None:
        self.first = first
        self.stop = first + count
        self.left = (1 << count) - 1
        self.slot = slot


_FIRST: Final = attrgetter("first")


class NotedCalls:
    """Notes the calls of a job, and strikes them out, by their numbers."""

    def __init__(self, job: str, log: CallLog) -> None:
        """Begin with none.

        Args:
            job: Id of the job.
            log: The site's.
        """
        self._job = job
        self._log = log
        self._slots: dict[int, int] = {}
        self._runs: list[_Noted] = []

    def __len__(self) -> int:
        """How many slots they stand in."""
        return len(self._slots) + len(self._runs)

    def started(self, call: int, transition: int, frame: Frame) -> None:
        """Note a call."""
        self._slots[call] = self._log.started(self._job, transition, frame)

    def all_started(self, first: int, transition: int, frames: Frames) -> None:
        """Note calls with numbers that follow one another, and are higher than all before."""
        if type(frames) is not FrameRun:
            for call, frame in enumerate(frames, first):
                self.started(call, transition, frame)
            return
        for start in range(0, len(frames), RUN):
            count = min(RUN, len(frames) - start)
            part = FrameRun(frames.around, frames.first + start, count)
            slot = self._log.run_started(self._job, transition, part)
            self._runs.append(_Noted(first + start, count, slot))

    def ended(self, call: int) -> None:
        """Strike out a call."""
        slot = self._slots.pop(call, None)
        if slot is not None:
            self._log.ended(slot)
        else:
            self._strike(call, call + 1)

    def all_ended(self, calls: Sequence[int]) -> None:
        """Strike out calls."""
        if type(calls) is not range:
            for call in calls:
                self.ended(call)
            return
        start = calls.start
        while start < calls.stop:
            slot = self._slots.pop(start, None)
            if slot is None:
                start = self._strike(start, calls.stop)
            else:
                self._log.ended(slot)
                start += 1

    def _strike(self, first: int, stop: int) -> int:
        """Strike out calls of the run of the first one; give the number of the next that is not in there."""
        place = bisect_right(self._runs, first, key=_FIRST) - 1
        noted = self._runs[place]
        stop = min(stop, noted.stop)
        noted.left &= ~(((1 << (stop - first)) - 1) << (first - noted.first))
        if noted.left:
            self._log.run_left(noted.slot, noted.left)
        else:
            self._log.ended(noted.slot)
            del self._runs[place]
        return stop

    def clear(self) -> None:
        """Strike out all calls."""
        if not (self._slots or self._runs):
            return
        for slot in (*self._slots.values(), *(noted.slot for noted in self._runs)):
            self._log.ended(slot)
        self._slots.clear()
        self._runs.clear()
