"""Closing the gap of seconds from both sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dfmesh.compiler.placement.descent import Descent
from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.propagation import Propagation
from dfmesh.compiler.placement.windows import NANOSECOND

RESOLUTION = 0.002
"""Share of the seconds to which the least limit that leaves something is looked for."""

SHARE = 0.05
"""Where between what is ruled out and the best placement the first limit is: a low one is raised where it has to be."""

NEAR = 0.005
"""Gap, as a share, from which on placements are looked for that are better by a nanosecond, if the gap is to close."""

PATIENCE = 0.1
"""Share of the work up to which choices are taken back in the first descent; twice as much after each that fails."""


@dataclass(slots=True)
class Closing:
    """A placement and a bound that approach one another.

    Attributes:
        chosen: Site of each variable.
        seconds: What that takes.
        bound: What every placement takes at the least.
        hasten: Makes a placement faster; None to take it as it is.
        fine: Gap, as a share, below which it is not worth more work.
        steps: Choices looked at.
    """

    problem: Problem
    chosen: list[int]
    seconds: float
    bound: float
    hasten: Callable[[list[int]], list[int]] | None = None
    fine: float = 0.0005
    steps: int = 0

    def run(self, propagation: Propagation, *, work: int) -> None:
        """Raise the bound and look for better placements, until they meet or the work is done.

        Args:
            propagation: Of the problem.
            work: How much the propagation may do, by its own count.
        """
        self.raise_bound(propagation, work // 4)
        self._settle(propagation)
        descent = Descent(propagation)
        patience, share, unsettled, limit = int(PATIENCE * work), SHARE, 0.0, self.bound
        while not self.is_closed and propagation.work < work:
            outcome = descent.within(limit, self.seconds, patience, work - propagation.work)
            if outcome.chosen is not None:
                share = max(share, 0.25)
                self._consider(outcome.chosen)
                self._settle(propagation)
            if outcome.proven:
                share = min(2 * share, 0.5)
                self.bound = min(limit, self.seconds) if limit < self.seconds - 2 * NANOSECOND else self.seconds
            elif self.seconds > limit + NANOSECOND:
                unsettled, patience = limit, 2 * patience
            if unsettled > self.bound and self.seconds - unsettled <= RESOLUTION * self.seconds:
                unsettled, limit = 0.0, (self.bound + unsettled) / 2
            elif self.fine == 0 and self.seconds - self.bound <= NEAR * self.seconds:
                limit = self.seconds - NANOSECOND
            else:
                low = max(self.bound, unsettled)
                limit = low + share * (self.seconds - low)
        self.steps += descent.steps

    def _settle(self, propagation: Propagation) -> None:
        if not self.is_closed and not propagation.settle(self.seconds - NANOSECOND):
            self.bound = self.seconds

    @property
    def is_closed(self) -> bool:
        """Whether placement and bound have met, as nearly as is wanted."""
        return self.seconds - self.bound <= max(self.fine * self.seconds, NANOSECOND / 2)

    def raise_bound(self, propagation: Propagation, work: int) -> None:
        """Look for the least limit that leaves something: first in growing steps, then between the last two."""
        self.bound = max(self.bound, propagation.bound())
        open_to, step = self.seconds, RESOLUTION * self.seconds
        if self.is_closed or propagation.begin(self.bound):
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
