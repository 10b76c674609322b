"""Which results of a job have been announced, kept compactly: a loop of a million results is a few numbers."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from dfmesh.netir import Frame

MOST_RECENT = 4096
"""Lists of one top-level frame that are kept as such."""

_LARGEST = 2**32 - 1


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
        of_frame = self._frames.get(frame[0])
        if of_frame is None:
            of_frame = self._frames[frame[0]] = _OfFrame()
        key = (node, frame[:-1])
        numbers = of_frame.recent.get(key)
        if numbers is None:
            numbers = of_frame.list_of(key)
        return numbers.add(frame[-1])

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
            numbers.fill(counts[rest[-1]])
            counts[rest[-1]] = 0
        return numbers

    def _settle(self) -> None:
        """Keep the older half in less room, as far as that is possible; lists with gaps stay as they are."""
        for key in list(self.recent)[: self._most // 2]:
            node, rest = key
            count = self.recent[key].whole
            if count and len(rest) > 1:
                del self.recent[key]
                counts = self._settled.setdefault((node, rest[:-1]), array("I"))
                counts.extend(0 for _ in range(rest[-1] + 1 - len(counts)))
                counts[rest[-1]] = count
        self._most = max(MOST_RECENT, 2 * len(self.recent))


class Intervals:
    """A set of whole numbers as intervals `[start, end)` that do not touch."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    @property
    def whole(self) -> int:
        """How many numbers there are, if they are the first ones; else 0."""
        return self._ends[0] if self._starts == [0] and self._ends[0] < _LARGEST else 0

    def fill(self, count: int) -> None:
        """Begin with the first numbers."""
        self._starts, self._ends = [0], [count]

    def add(self, number: int) -> bool:
        """Add a number; False if it was there."""
        starts, ends = self._starts, self._ends
        if ends and ends[-1] == number:  # the next one of a loop
            ends[-1] = number + 1
            return True
        place = bisect_right(starts, number)
        if place and number < ends[place - 1]:
            return False
        after_one = place > 0 and ends[place - 1] == number
        before_one = place < len(starts) and starts[place] == number + 1
        if after_one and before_one:
            ends[place - 1] = ends.pop(place)
            del starts[place]
        elif after_one:
            ends[place - 1] = number + 1
        elif before_one:
            starts[place] = number
        else:
            starts.insert(place, number)
            ends.insert(place, number + 1)
        return True

    def __len__(self) -> int:
        return len(self._starts)
