"""Which iterations of a loop are open: those in which a taking-part site still has something to do."""

from __future__ import annotations

from dfmesh.engine.intervals import Intervals


class OpenIterations:
    """The open iterations of one loop, by their numbers."""

    __slots__ = ("_count", "_left")

    def __init__(self, sites: int) -> None:
        """Begin with none.

        Args:
            sites: How many sites take part.
        """
        self._count = 0
        self._left = [Intervals() for _ in range(sites)]

    def __len__(self) -> int:
        return self._count

    def open(self, first: int, count: int) -> None:
        """Open iterations; without a site that takes part they are done at once."""
        for left in self._left:
            left.add_all(first, first + count)
        self._count += count if self._left else 0

    def done(self, site: int, first: int, count: int) -> bool:
        """Take note that a site is done with iterations. Those that are not open there do not matter.

        Args:
            site: Its position among those that take part.
            first: The first iteration.
            count: How many there are, one after the other.

        Returns:
            Whether one of them is done everywhere by that.
        """
        closed = 0
        for start, stop in self._left[site].remove_all(first, first + count):
            elsewhere = Intervals()
            for other in self._left:
                for begin, end in other.overlap(start, stop):
                    elsewhere.add_all(begin, end)
            closed += stop - start - sum(elsewhere.ends) + sum(elsewhere.starts)
        self._count -= closed
        return closed > 0
