"""Which results of a job have been announced, kept compactly: a loop of a million results is a few numbers."""

from __future__ import annotations

from array import array

from dfmesh.engine.frame_run import FrameRun
from dfmesh.engine.intervals import Intervals
from dfmesh.netir import Frame

MOST_RECENT = 4096
"""Lists of one top-level frame that are kept as such."""

_LARGEST = 2**32 - 1
_WIDEST_GAP = 2**20
"""Iterations without results that may stand as zeros; a peer may name any number."""


class AnnouncedResults:
    """The keys (node, frame) of results, by top-level frame.

    Results of a loop come nearly in order, so the last numbers of their frames are kept as intervals, one list of them
    per node and rest of the frame. Of a loop in a loop there are many such lists; the older ones, which hold the first
    so many numbers by then, are kept as four bytes each.
    """

    def __init__(self) -> None:
        self._frames: dict[int, _OfFrame] = {}

    def add(self, node: str, frame: Frame) -> bool:
        """Note a result; False if it was noted before."""
        return self._numbers(node, frame[0], frame[:-1]).add(frame[-1])

    def add_all(self, node: str, frames: FrameRun) -> list[int]:
        """Note results of one top-level frame; give the positions of those that were noted before."""
        first, stop = frames.first, frames.first + frames.count
        numbers = self._numbers(node, frames[0][0], frames.around)
        known = numbers.overlap(first, stop)
        numbers.add_all(first, stop)
        return [number - first for start, end in known for number in range(start, end)]

    def _numbers(self, node: str, top: int, rest: Frame) -> Intervals:
        of_frame = self._frames.get(top)
        if of_frame is None:
            of_frame = self._frames[top] = _OfFrame()
        key = (node, rest)
        numbers = of_frame.recent.get(key)
        return of_frame.list_of(key) if numbers is None else numbers

    def forget(self, frame: Frame) -> None:
        """Drop what is noted of a top-level frame."""
        self._frames.pop(frame[0], None)

    def __len__(self) -> int:
        """How many intervals are kept as such."""
        return sum(len(numbers) for of_frame in self._frames.values() for numbers in of_frame.recent.values())


_Key = tuple[str, Frame]


class _OfFrame:
    """The results of one top-level frame.

    Attributes:
        recent: Last numbers by node and rest of the frame.
    """

    __slots__ = ("_most", "_settled", "recent")

    def __init__(self) -> None:
        self.recent: dict[_Key, Intervals] = {}
        self._most = MOST_RECENT
        # By node and rest of the rest: how many numbers there are, from 0 on, for each last number of the rest.
        self._settled: dict[_Key, array[int]] = {}

    def list_of(self, key: _Key) -> Intervals:
        """Give the numbers for a key that is not a recent one, which it is from then on."""
        if len(self.recent) >= self._most:
            self._settle()
        numbers = self.recent[key] = Intervals()
        node, rest = key
        counts = self._settled.get((node, rest[:-1]))
        if counts is not None and rest[-1] < len(counts) and counts[rest[-1]]:
            numbers.add_all(0, counts[rest[-1]])
            counts[rest[-1]] = 0
        return numbers

    def _settle(self) -> None:
        """Keep the older half in less room, as far as that is possible; lists with gaps stay as they are."""
        for key in list(self.recent)[: self._most // 2]:
            node, rest = key
            count = _whole(self.recent[key])
            if count and len(rest) > 1:
                counts = self._settled.setdefault((node, rest[:-1]), array("I"))
                if rest[-1] - len(counts) > _WIDEST_GAP:
                    continue
                del self.recent[key]
                counts.extend(0 for _ in range(rest[-1] + 1 - len(counts)))
                counts[rest[-1]] = count
        self._most = max(MOST_RECENT, 2 * len(self.recent))


def _whole(numbers: Intervals) -> int:
    """Give how many numbers there are, if they are the first ones; else 0."""
    return numbers.ends[0] if numbers.starts == [0] and numbers.ends[0] < _LARGEST else 0
