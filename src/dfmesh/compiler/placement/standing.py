"""The best placement so far, and what every placement is charged at the least."""

from __future__ import annotations

from dataclasses import dataclass

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.messages import FORBIDDEN
from dfmesh.compiler.placement.problem import Problem


@dataclass(slots=True)
class Standing:
    """A placement and a bound that approach one another.

    Attributes:
        problem: The problem.
        charges: What is charged.
        chosen: Site of each variable.
        total: What that is charged.
        bound: What every placement is charged at the least.
        elsewhere: What those are charged at the least that are no longer looked at.
    """

    problem: Problem
    charges: Charges
    chosen: list[int]
    total: int
    bound: int = 0
    elsewhere: int = FORBIDDEN

    def total_of(self, chosen: list[int]) -> int:
        """Give what a placement is charged."""
        return self.charges.total(self.problem, chosen)

    def consider(self, chosen: list[int]) -> int:
        """Take a placement if it keeps the rules and is charged less; give what it is charged."""
        total = self.total_of(chosen)
        if total < self.total and self.problem.allows(chosen):
            self.chosen, self.total = chosen, total
        return total

    def note_bound(self, bound: int) -> None:
        """Take a bound of the placements that are looked at."""
        self.bound = min(max(self.bound, min(bound, self.elsewhere)), self.total)

    def is_within(self, share: float) -> bool:
        """Tell whether the gap is at most a share of what the placement is charged."""
        return self.total - self.bound <= share * self.total


__all__ = ["Standing"]
