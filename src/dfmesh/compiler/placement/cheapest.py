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
from dfmesh.compiler.placement.highs import Relaxed, Solved, relax, solve
from dfmesh.compiler.placement.hub_search import hubs_of
from dfmesh.compiler.placement.hubs import resent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.passing import pass_on
from dfmesh.compiler.placement.problem import Flags
from dfmesh.compiler.placement.program import Program, program
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler
from dfmesh.compiler.placement.standing import Standing
from dfmesh.compiler.placement.ways import ways_of

TAKEN = 1e-6
"""Share of a choice from which on the relaxation takes it."""

FEW = 3_000
"""Ways of all shipments together up to which flows are stated from the beginning."""

GATHERED = 64
"""Sites at which as much as possible is put together, for a look."""

NEAR_WORK = 120_000_000
"""What HiGHS may do in rounds of cuts among the sites that a relaxation takes."""

WORK, LESS_WORK = 350_000_000, 200_000_000
"""The same among all sites that are left, if it came to its end there, and if not."""

LEAST, MOST = 4, 2_000
"""How often it may look at whether it shall go on, at the least and at most; the first three come before any cut."""

HARD = 3_500_000
"""Work of one such round above which they lead to little: it is a hitting set problem, or nearly."""

POPULAR = 24
"""Takers of a value from which on it is chosen anew to which sites it goes."""

MANY_CHOICES = 10_000
"""Choices above which messages rule out some before a program is stated."""

PASSES = 3
"""How often those are passed on forward and backward."""

SMALL = 3_000
"""Choices up to which programs are solved though prices differ."""

FEW_WAYS = 30
"""Ways of a shipment up to which flows are stated where all together would be too many."""

FINE_ENOUGH = 0.01
"""Gap, as a share, that is small enough then."""

NEXT_TO_NOTHING = 0.0001
"""Gap, as a share, that is left in problems of more than `SMALL` choices."""

LESS = 0.4
"""Share of the effort for charges that is made for more than `MANY` nodes."""


@dataclass(slots=True, kw_only=True)
class Cheapest(Standing):
    """A placement and a bound that approach one another.

    Attributes:
        domain: Sites that a cheaper placement may have, `[variable, site]`; also one that is charged the same, unless
            there are more than `MANY_CHOICES`.
        order: Of the variables, for messages.
        sweeps: Variables that may be looked at to move them one by one, each time; none where there are very many
            sites, since that keeps a table over all pairs of them per edge.
    """

    domain: Flags
    order: list[int]
    sweeps: int

    def run(self) -> None:
        """Look for the least charges and prove them."""
        self._gather()
        self.note_bound(int(np.where(self.domain, self.charges.own, self.total + 1).min(1).sum()))
        if self.domain.sum() > MANY_CHOICES:
            self._pass_on()
        self._improve(self.chosen)
        if self.is_within(0.0):
            return
        for ways in self._statements():
            stated = program(self.problem, self.charges, self.domain, ways)
            relaxed = relax(stated)
            self.note_bound(relaxed.bound)
            work = self._place_near(stated, relaxed, ways)
            if self._is_done():
                return
        if work:
            self._settle(program(self.problem, self.charges, self.domain, ways), work // max(1, relaxed.work))

    def look(self) -> None:
        """Do the same without going to the end, where the whole statement would be too large."""
        self._gather()
        self._pass_on()
        if self.is_within(FINE_ENOUGH):
            return
        stated = program(self.problem, self.charges, self.domain, FEW_WAYS)
        relaxed = relax(stated)
        self.note_bound(relaxed.bound)
        self._place_near(stated, relaxed, FEW_WAYS)

    def _is_done(self) -> bool:
        return self.is_within(0.0 if self.domain.sum() <= SMALL else NEXT_TO_NOTHING)

    def _gather(self) -> None:
        """Look at the placements with all that may be there at one site."""
        common = np.argsort(-self.domain.sum(0), kind="stable")[:GATHERED]
        for site in common.tolist():
            there = self.domain[:, site].tolist()
            self.consider([site if may else known for known, may in zip(self.chosen, there, strict=True)])

    def _pass_on(self) -> None:
        messages = Messages(self.problem, self.charges, self.order, self.domain)
        pass_on(self, messages, PASSES, np.inf, spread=1)
        self.domain = messages.domain()
        self.domain[np.arange(len(self.chosen)), self.chosen] = True

    def _statements(self) -> tuple[int, ...]:
        """Give up to how many ways flows are stated, each time."""
        if self.charges.is_uniform:
            return (0,)
        ways = ways_of(self.problem, self.domain)
        return (ways,) if ways <= FEW else (0, ways)

    def _place_near(self, stated: Program, relaxed: Relaxed, ways: int) -> int:
        """Place at sites that a relaxation takes, and rule out sites; give how much work more of that is worth."""
        self._improve(relaxed.likeliest)
        if self._is_done():
            return 0
        near = _only(stated, relaxed.share > TAKEN, self.domain)
        near[np.arange(len(near)), self.chosen] = True
        among = program(self.problem, self.charges, near, ways)
        each, worth = relax(among).work, 0
        if each <= HARD:
            solved = solve(among, _looks(NEAR_WORK // max(1, each)), heuristics=True)
            worth = WORK if self._try(solved) and solved.is_whole else LESS_WORK
            if solved.chosen is not None and not solved.is_whole:
                self._improve(solved.chosen)
        self.domain &= _only(stated, relaxed.dear + relaxed.bound <= self.total, self.domain)
        return worth

    def _improve(self, chosen: list[int]) -> None:
        """Move single variables, and choose anew to which sites values go that many take."""
        neighbours, scheduler = Neighbours(self.problem, self.charges), Scheduler(self.problem)
        for number in [None, *self._popular()]:
            if number is not None:
                chosen = resent(self.problem, neighbours, chosen, number)
            if self.sweeps:
                chosen = scheduler.improve(chosen, neighbours, np.inf, self.sweeps)
            self.consider(chosen)

    def _popular(self) -> list[int]:
        takers = [len(shipment.consumers) for shipment in self.problem.shipments]
        return sorted((number for number, count in enumerate(takers) if count >= POPULAR), key=lambda n: -takers[n])[:3]

    def _settle(self, stated: Program, looks: int) -> None:
        """Look for the best placement that is left."""
        solved = solve(stated, _looks(looks), heuristics=False)
        if self._try(solved):
            self.note_bound(solved.bound)

    def _try(self, solved: Solved) -> bool:
        """Take a placement; tell whether what was said of it is right."""
        if solved.chosen is None:
            return solved.is_sound
        total = self.consider(solved.chosen)
        return solved.is_sound and abs(total - solved.total) <= solved.margin


def find_cheapest(attempt: Attempt, charges: Charges) -> Cheapest:
    """Give a placement of least charges, what it is charged, and a bound of that; rule out sites that are dearer."""
    problem, neighbours = attempt.problem, Neighbours(attempt.problem, charges)
    chosen = attempt.scheduler.improve(attempt.start(charges), neighbours, np.inf, attempt.effort.sweeps)
    cheapest = Cheapest(
        problem=problem,
        charges=charges,
        chosen=chosen,
        total=charges.total(problem, chosen),
        domain=attempt.domain.copy(),
        order=attempt.free_order,
        sweeps=attempt.effort.sweeps,
    )
    if charges.is_uniform or attempt.domain.sum() <= SMALL:
        cheapest.run()
        if attempt.domain.sum() <= MANY_CHOICES:
            # Messages rule out also what is charged the same, which may be better in what is compared next.
            attempt.domain = cheapest.domain
    else:
        if hubs_of(problem) and attempt.domain.sum() <= MANY_CHOICES:
            cheapest.look()
        if not cheapest.is_within(FINE_ENOUGH):
            cheapening = Cheapening(problem, charges, cheapest.chosen, cheapest.total, cheapest.bound)
            cheapening.run(attempt.free_order, attempt.domain, LESS if len(problem.variable) > MANY else 1.0)
            cheapest.consider(cheapening.chosen)
            cheapest.note_bound(cheapening.bound)
    return cheapest


def _looks(looks: int) -> int:
    return max(LEAST, min(MOST, looks))


def _only(stated: Program, keep: Flags, domain: Flags) -> Flags:
    """Give the sites of some choices."""
    sites = np.zeros_like(domain)
    sites[stated.variable[keep], stated.site[keep]] = True
    return sites


__all__ = ["Cheapest", "find_cheapest"]
