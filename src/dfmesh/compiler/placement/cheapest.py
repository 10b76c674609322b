"""The placement of least charges whatever its seconds, by linear programs (`program.py`).

The program with choices that may be parts of one gives a bound, and what each choice adds to it. The sites that it
takes are few and nearly always have a best placement, or one next to it, which the program with whole choices finds
among them. Sites that add more than the gap are ruled out. If a gap is left, the same is done with the tighter, larger
statement, and then with whole choices at all sites that are left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.attempt import MANY, Attempt
from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.cheapening import Cheapening
from dfmesh.compiler.placement.highs import Solved, relax, solve
from dfmesh.compiler.placement.problem import Flags
from dfmesh.compiler.placement.program import Program, program
from dfmesh.compiler.placement.standing import Standing

TAKEN = 1e-6
"""Share of a choice from which on the relaxation takes it."""

FEW = 3_000
"""Ways of all shipments together up to which flows are stated from the beginning."""

GATHERED = 64
"""Sites at which as much as possible is put together, for a look."""

LOOKS = 400
"""How often HiGHS may look at whether it shall go on, among the sites that a relaxation takes."""

ENTRIES = 3_000_000
"""The same among all that are left, times the entries of the program."""


SMALL = 3_000
"""Choices up to which programs are solved though prices differ."""

LESS = 0.4
"""Share of the effort for charges that is made for more than `MANY` nodes."""


@dataclass(slots=True, kw_only=True)
class Cheapest(Standing):
    """A placement and a bound that approach one another.

    Attributes:
        domain: Sites that a placement that is charged no more than `chosen` may have, `[variable, site]`.
    """

    domain: Flags

    def run(self) -> None:
        """Look for the least charges and prove them."""
        self._gather()
        self.note_bound(int(np.where(self.domain, self.charges.own, self.total + 1).min(1).sum()))
        if self.is_within(0.0):
            return
        for ways in self._statements():
            stated = program(self.problem, self.charges, self.domain, ways)
            if self._relax(stated, ways):
                return
        self._settle(program(self.problem, self.charges, self.domain, ways))

    def _gather(self) -> None:
        """Look at the placements with all that may be there at one site."""
        common = np.argsort(-self.domain.sum(0), kind="stable")[:GATHERED]
        for site in common.tolist():
            there = self.domain[:, site].tolist()
            self.consider([site if may else known for known, may in zip(self.chosen, there, strict=True)])

    def _statements(self) -> tuple[int, ...]:
        """Give up to how many ways flows are stated, each time."""
        if self.charges.is_uniform:
            return (0,)
        sites = self.domain.sum(1).tolist()
        ways = sum(
            sites[shipment.source] * sites[taker] for shipment in self.problem.shipments for taker in shipment.consumers
        )
        return (ways,) if ways <= FEW else (0, ways)

    def _relax(self, stated: Program, ways: int) -> bool:
        """Raise the bound, place at sites that the relaxation takes, rule out sites; tell whether that is all."""
        relaxed = relax(stated)
        self.note_bound(relaxed.bound)
        if self.is_within(0.0):
            return True
        near = _only(stated, relaxed.share > TAKEN, self.domain)
        near[np.arange(len(near)), self.chosen] = True
        self._try(solve(program(self.problem, self.charges, near, ways), LOOKS))
        self.domain &= _only(stated, relaxed.dear + relaxed.bound <= self.total, self.domain)
        return self.is_within(0.0)

    def _settle(self, stated: Program) -> None:
        """Look for the best placement that is left."""
        solved = solve(stated, 1 + ENTRIES // len(stated.columns))
        if self._try(solved):
            self.note_bound(solved.bound)

    def _try(self, solved: Solved) -> bool:
        """Take a placement; tell whether what was said of it is right."""
        if solved.chosen is None:
            return solved.is_sound
        total = self.consider(solved.chosen)
        return solved.is_sound and abs(total - solved.total) <= solved.margin


def find_cheapest(attempt: Attempt, charges: Charges) -> Cheapest:
    """Give a placement of least charges, what it is charged, and a bound of that."""
    problem, chosen = attempt.problem, attempt.start(charges)
    cheapest = Cheapest(
        problem=problem,
        charges=charges,
        chosen=chosen,
        total=charges.total(problem, chosen),
        domain=attempt.domain.copy(),
    )
    if charges.is_uniform or attempt.domain.sum() <= SMALL:
        cheapest.run()
    else:
        cheapening = Cheapening(problem, charges, chosen, cheapest.total)
        cheapening.run(attempt.free_order, attempt.domain, LESS if len(problem.variable) > MANY else 1.0)
        cheapest.consider(cheapening.chosen)
        cheapest.note_bound(cheapening.bound)
    return cheapest


def _only(stated: Program, keep: Flags, domain: Flags) -> Flags:
    """Give the sites of some choices."""
    sites = np.zeros_like(domain)
    sites[stated.variable[keep], stated.site[keep]] = True
    return sites


__all__ = ["Cheapest", "find_cheapest"]
