"""A set of whole numbers, small as long as they are nearly in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Intervals:
    """A set of whole numbers as intervals `[start, end)` that do not touch.

    Attributes:
        starts: Where they begin, in order.
        ends: Where they end.
    """

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, number: int) -> bool:
        """Add a number; False if it was there."""
        ends = self.ends
        if ends and ends[-1] == number:  # the next one of a loop
            ends[-1] = number + 1
            return True
        return self.add_all(number, number + 1) == 1

    def add_all(self, start: int, stop: int) -> int:
        """Add the numbers `[start, stop)`; give how many were not there."""
        starts, ends = self.starts, self.ends
        if ends and ends[-1] == start:
            ends[-1] = stop
            return stop - start
        low, high = bisect_left(ends, start), bisect_right(starts, stop)
        if low == high:
            starts.insert(low, start)
            ends.insert(low, stop)
            return stop - start
        known = sum(min(stop, ends[place]) - max(start, starts[place]) for place in range(low, high))
        starts[low:high] = [min(start, starts[low])]
        ends[low:high] = [max(stop, ends[high - 1])]
        return stop - start - known

    def remove_all(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Remove the numbers `[start, stop)`; give those that were there, as intervals."""
        starts, ends = self.starts, self.ends
        low, high = bisect_right(ends, start), bisect_left(starts, stop)
        if low >= high:
            return []
        removed = [(max(start, starts[place]), min(stop, ends[place])) for place in range(low, high)]
        left = [(starts[low], start), (stop, ends[high - 1])]
        kept = [(begin, end) for begin, end in left if begin < end]
        starts[low:high] = [begin for begin, _ in kept]
        ends[low:high] = [end for _, end in kept]
        return removed

    def overlap(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Give those of the numbers `[start, stop)` that are in the set, as intervals."""
        low, high = bisect_right(self.ends, start), bisect_left(self.starts, stop)
        return [(max(start, self.starts[place]), min(stop, self.ends[place])) for place in range(low, high)]

    def __len__(self) -> int:
        """How many intervals there are."""
        return len(self.starts)
