"""Which results of a job have been announced, kept compactly: a loop of a million results is a few numbers."""

from __future__ import annotations

from bisect import bisect_right

from dfmesh.netir import Frame


class AnnouncedResults:
    """The keys (node, frame) of results, by top-level frame.

    Results of a loop come nearly in order, so the last numbers of their frames are kept as intervals, one list of them
    per node and rest of the frame.
    """

    def __init__(self) -> None:
        self._frames: dict[int, dict[tuple[str, Frame], Intervals]] = {}

    def add(self, node: str, frame: Frame) -> bool:
        """Note a result; False if it was noted before."""
        of_frame = self._frames.get(frame[0])
        if of_frame is None:
            of_frame = self._frames[frame[0]] = {}
        key = (node, frame[:-1])
        numbers = of_frame.get(key)
        if numbers is None:
            numbers = of_frame[key] = Intervals()
        return numbers.add(frame[-1])

    def forget(self, frame: Frame) -> None:
        """Drop what is noted of a top-level frame."""
        self._frames.pop(frame[0], None)

    def __len__(self) -> int:
        """How many intervals are kept."""
        return sum(len(numbers) for of_frame in self._frames.values() for numbers in of_frame.values())


class Intervals:
    """A set of whole numbers as intervals `[start, end)` that do not touch."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

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
