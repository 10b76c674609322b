"""Closing the gap of seconds from both sides where a problem is too large for a search tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dfmesh.compiler.placement.diving import dive
from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.propagation import Propagation
from dfmesh.compiler.placement.windows import NANOSECOND

FINE = 0.0005
"""Gap, as a share, below which it is not worth more work."""

RESOLUTION = 0.002
"""Share of the seconds to which the least limit that leaves something is looked for."""

SHARES = (0.0, 0.5, 0.25, 0.75, 0.125, 0.375)
"""Limits that are tried, as shares of the way from the bound to the best placement."""


@dataclass(slots=True)
class Closing:
    """A placement and a bound that approach one another.

    Attributes:
        chosen: Site of each variable.
        seconds: What that takes.
        bound: What every placement takes at the least.
        hasten: Makes a placement faster; None to take it as it is.
    """

    problem: Problem
    chosen: list[int]
    seconds: float
    bound: float
    hasten: Callable[[list[int]], list[int]] | None = None

    def run(self, propagation: Propagation, order: list[int], *, work: int) -> None:
        """Raise the bound and look for better placements, until they meet or the work is done.

        Args:
            propagation: Of the problem.
            order: In which variables are fixed.
            work: How much the propagation may do, by its own count.
        """
        self.raise_bound(propagation, work // 2)
        tried: set[float] = set()
        for share in SHARES:
            if self._closed(FINE) or propagation.work >= work:
                return
            limit = self.bound + share * (self.seconds - self.bound)
            if limit in tried:
                continue
            tried.add(limit)
            if not propagation.begin(limit):
                self.bound = max(self.bound, limit)
                continue
            found = dive(propagation, order, self.seconds, work)
            if found.chosen is not None:
                self._consider(found.chosen)

    def _closed(self, share: float) -> bool:
        return self.seconds - self.bound <= max(share * self.seconds, NANOSECOND / 2)

    def raise_bound(self, propagation: Propagation, work: int) -> None:
        """Look for the least limit that leaves something: first in growing steps, then between the last two."""
        self.bound = max(self.bound, propagation.bound())
        open_to, step = self.seconds, RESOLUTION * self.seconds
        if self._closed(FINE) or propagation.begin(self.bound):
            return
        while open_to - self.bound > RESOLUTION * self.seconds and propagation.work < work:
            limit = min(self.bound + step, (self.bound + open_to) / 2)
            if propagation.begin(limit):
                open_to = limit
            else:
                self.bound = limit
                step *= 2

    def _consider(self, chosen: list[int]) -> None:
        if not self.problem.allows(chosen):
            return
        if self.hasten is not None:
            chosen = self.hasten(chosen)
        seconds = self.problem.seconds(chosen)
        if seconds < self.seconds:
            self.chosen, self.seconds = chosen, seconds


__all__ = ["Closing"]
