"""The calls that go on in a NetRunner. Those that began together are one entry as long as they are treated alike."""

from __future__ import annotations

from bisect import bisect_right, insort
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from dfmesh.engine.frame_run import FrameRun, Frames
from dfmesh.netir import Frame

if TYPE_CHECKING:
    from dfmesh.engine.wiring import WiredTransition


class _CallRun(NamedTuple):
    """Calls with numbers that follow one another, for frames that do."""

    first: int
    stop: int
    transition: WiredTransition
    frames: FrameRun

    def part(self, first: int, stop: int) -> _CallRun:
        frames = self.frames
        taken = FrameRun(frames.around, frames.first + first - self.first, stop - first)
        return _CallRun(first, stop, self.transition, taken)


_FIRST = attrgetter("first")


class OpenCalls:
    """Transition and frame of each call by its number."""

    __slots__ = ("_alone", "_count", "_runs")

    def __init__(self) -> None:
        self._alone: dict[int, tuple[WiredTransition, Frame]] = {}
        self._runs: list[_CallRun] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._alone) + self._count

    def __contains__(self, call: object) -> bool:
        return self.get(call) is not None  # type: ignore[arg-type]

    def __getitem__(self, call: int) -> tuple[WiredTransition, Frame]:
        found = self.get(call)
        if found is None:
            raise KeyError(call)
        return found

    def get(self, call: int) -> tuple[WiredTransition, Frame] | None:
        """Give transition and frame of a call; None if it does not go on."""
        alone = self._alone.get(call)
        if alone is not None or not self._runs:
            return alone
        run = self._run_at(call)
        return None if run is None else (run.transition, run.frames[call - run.first])

    def add(self, call: int, transition: WiredTransition, frame: Frame) -> None:
        """Note a call."""
        self._alone[call] = (transition, frame)

    def add_all(self, first: int, transition: WiredTransition, frames: Frames) -> None:
        """Note calls with numbers that follow one another, and are higher than all before."""
        if type(frames) is FrameRun:
            self._runs.append(_CallRun(first, first + frames.count, transition, frames))
            self._count += frames.count
        else:
            for call, frame in enumerate(frames, first):
                self._alone[call] = (transition, frame)

    def pop(self, call: int) -> tuple[WiredTransition, Frame]:
        """Remove a call, and give its transition and frame.

        Raises:
            KeyError: it does not go on.
        """
        alone = self._alone.pop(call, None)
        if alone is not None:
            return alone
        found = self.pop_all(range(call, call + 1))
        if found is None:
            raise KeyError(call)
        return found[0], found[1][0]

    def pop_all(self, calls: range) -> tuple[WiredTransition, FrameRun] | None:
        """Remove calls that follow one another, and give their transition and frames; None if they are no one entry."""
        run = self._run_at(calls.start)
        if run is None or calls.stop > run.stop:
            return None
        place = bisect_right(self._runs, calls.start, key=_FIRST) - 1
        del self._runs[place]
        if run.first < calls.start:
            insort(self._runs, run.part(run.first, calls.start), key=_FIRST)
        if calls.stop < run.stop:
            insort(self._runs, run.part(calls.stop, run.stop), key=_FIRST)
        self._count -= len(calls)
        taken = run if len(calls) == run.stop - run.first else run.part(calls.start, calls.stop)
        return taken.transition, taken.frames

    def _run_at(self, call: int) -> _CallRun | None:
        place = bisect_right(self._runs, call, key=_FIRST)
        if not place:
            return None
        run = self._runs[place - 1]
        return run if call < run.stop else None
