"""Placements of few charges, and a bound of them, in problems too large for a search tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.crowds import CROWD
from dfmesh.compiler.placement.forests import MANY_TAKERS, Forests
from dfmesh.compiler.placement.hubs import resent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.pair_smoothing import PairSmoothing
from dfmesh.compiler.placement.problem import Flags, Problem, Whole
from dfmesh.compiler.placement.rounding import PAIRED_PART, PART, WHOLE, Care, Parts, improved, likeliest, rounded
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler
from dfmesh.compiler.placement.smoothing import Smoothing, is_uniform
from dfmesh.compiler.placement.ways import is_paired, scale_of, ways_of

FINE = 0.0005
"""Gap, as a share, below which it is not worth more work."""

ROUNDS = 16
"""Passes forward and backward at most."""

GATHERED = 64
"""Sites at which as much as possible is put together, for a look."""

STARTS = 3
"""Placements that are made cheaper."""

REPLANNED = 10
"""How often the variables of one of them are chosen anew before it is looked at which is best."""

LAST = 20
"""How often those of the best are."""

FEW_ROUNDS = 3
"""Passes at most where a smoothed ascent follows."""

TRIED, STEPS = 3, 12
"""Sites that are tried for a value that many take, and by how many steps the ascent is continued there."""

MOVES = 4_000
"""Variables that may be looked at to move them one by one."""

WAYS = 400_000
"""Ways up to which there is a smoothed ascent where prices differ."""

LESS_WAYS = 100_000
"""Ways that may be left of more than that, after as many passes as without an ascent."""


@dataclass(frozen=True, slots=True)
class Ascent:
    """How much is made of a smoothed relaxation.

    Attributes:
        effort: Offers or ways that the ascent may look at, at the beginning.
        rounds: Steps of it at most.
        warm: Temperature at the beginning, as a share of what a usual shipment is charged.
        cool: At the end.
        again: Steps by which it is continued each time.
        repeats: How often that is done, each time without what is known to be too dear by then.
        parts: How many parts of a placement are made anew each time.
        part: Variables of a part.
        doubtful: Share of the variables from which parts start.
        worthwhile: How much dearer than the best a site may look to be part of a placement, as such a share.
        cares: How carefully placements are made as a whole; none to take the likeliest sites and move single variables.
        care: How carefully a part is.
    """

    effort: int
    rounds: int
    warm: float
    cool: float
    again: int
    repeats: int
    parts: int
    part: int
    doubtful: float
    worthwhile: float
    cares: tuple[Care, ...]
    care: Care


UNIFORM = Ascent(
    3_000_000,
    300,
    0.1,
    0.005,
    again=80,
    repeats=3,
    parts=20,
    part=35,
    doubtful=0.6,
    worthwhile=np.inf,
    cares=WHOLE,
    care=PART,
)
PAIRED = Ascent(
    7_000_000,
    200,
    0.5,
    0.005,
    again=4,
    repeats=4,
    parts=12,
    part=35,
    doubtful=0.1,
    worthwhile=1.0,
    cares=(),
    care=PAIRED_PART,
)


@dataclass(slots=True)
class Cheapening:
    """A placement and a bound that approach one another.

    Attributes:
        chosen: Site of each variable.
        total: What that is charged.
        bound: What every placement is charged at the least.
    """

    problem: Problem
    charges: Charges
    chosen: list[int]
    total: int
    bound: int = 0

    def run(self, order: list[int], domain: Flags, work: float) -> None:
        """Raise the bound and look for better placements.

        Args:
            order: Of the variables.
            domain: Sites to choose from.
            work: Share of the usual effort.
        """
        problem, charges = self.problem, self.charges
        self._gather(domain)
        messages = Messages(problem, charges, order, domain)
        hubs = [number for number, shipment in enumerate(problem.shipments) if len(shipment.consumers) >= MANY_TAKERS]
        uniform = is_uniform(problem, charges)
        smoothed = not uniform and is_paired(problem)
        paired = smoothed and ways_of(problem, domain) <= WAYS
        few = uniform or paired
        rounds = FEW_ROUNDS if few else max(2, round(ROUNDS * work))
        starts = self._pass_on(messages, rounds)
        if not few and not self._closed():
            self._replan(messages, hubs, [*starts, (self.total, self.chosen)], work)
        if (uniform or smoothed) and not self._closed():
            left = np.zeros_like(problem.domain)
            for variable, sites in enumerate(messages.sites):
                left[variable, sites] = True
            if uniform:
                smoothing = Smoothing.of(problem, charges, left)
                scale = float(np.median(smoothing.cost)) if smoothing.size else 1.0
                self._smooth(smoothing, UNIFORM, scale, work)
            elif ways_of(problem, left) <= (WAYS if paired else LESS_WAYS):
                self._smooth(PairSmoothing.of(problem, charges, left), PAIRED, scale_of(charges), work)
        if uniform and not self._closed():
            self._replan(messages, hubs, [], work)

    def _replan(self, messages: Messages, hubs: list[int], starts: list[tuple[int, list[int]]], work: float) -> None:
        """Choose many variables anew at once, in the cheapest of some placements and then in the best that is known."""
        forests = Forests(self.problem, self.charges, messages.sites)
        neighbours = Neighbours(self.problem, self.charges)
        for total, chosen in sorted(starts)[:STARTS]:
            self._consider(*self._cheaper(forests, neighbours, hubs, chosen, total, round(REPLANNED * work)))
        if not self._closed():
            rounds = round((LAST if starts else REPLANNED) * work)
            self._consider(*forests.improve(self.chosen, self.total, rounds))

    def _smooth(self, smoothing: Smoothing | PairSmoothing, ascent: Ascent, scale: float, work: float) -> None:
        """Raise the bound by a smoothed ascent, and make placements from what it tells."""
        rounds = min(ascent.rounds, round(ascent.effort * work) // max(smoothing.size, 1))
        bound, dear = smoothing.raised(rounds, ascent.warm * scale, ascent.cool * scale)
        self.bound = min(max(self.bound, bound), self.total)
        parts = Parts(self.problem, np.maximum.reduceat(smoothing.weights, smoothing.starts), ascent.doubtful)
        if isinstance(smoothing, PairSmoothing):
            neighbours = Neighbours(self.problem, self.charges)
            likely = Scheduler(self.problem).improve(likeliest(smoothing), neighbours, np.inf, MOVES)
            self._consider(likely, self._total(likely))
            self._place_hub(smoothing, dear, ascent, scale, neighbours)
        for care in ascent.cares:
            whole = rounded(smoothing.restricted(dear <= ascent.worthwhile * scale), scale, care)
            self._consider(whole, self._total(whole))
        for _ in range(ascent.repeats):
            keep = dear + bound < self.total
            keep |= smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
            smoothing = smoothing.restricted(keep)
            bound, dear = smoothing.raised(round(ascent.again * work), ascent.cool * scale, ascent.cool * scale / 4)
            # What was left out is dearer than the best placement.
            self.bound = min(max(self.bound, bound), self.total)
            if self._closed():
                return
            if not ascent.cares:
                here = smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
                parts.look_at(-np.maximum.reduceat(np.where(here, dear, 0), smoothing.starts).astype(np.float64))
            trials = round(ascent.parts * work)
            start = self.chosen, self.total
            promising = dear <= ascent.worthwhile * scale
            promising |= smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
            worthwhile = smoothing.restricted(promising)
            self._consider(*improved(worthwhile, scale, parts, start, self._total, trials, ascent.part, ascent.care))

    def _place_hub(
        self, smoothing: PairSmoothing, dear: Whole, ascent: Ascent, scale: float, neighbours: Neighbours
    ) -> None:
        """Try the sites of the variable whose value most others take: all the rest depends on it."""
        shipment = max(self.problem.shipments, key=lambda other: len(other.consumers))
        if len(shipment.consumers) < CROWD:
            return
        scheduler, number = Scheduler(self.problem), self.problem.shipments.index(shipment)
        choices = np.flatnonzero(smoothing.variable == shipment.source)
        for choice in choices[np.argsort(dear[choices], kind="stable")][:TRIED].tolist():
            keep = smoothing.variable != shipment.source
            keep[choice] = True
            there = smoothing.restricted(keep)
            there.ascend(STEPS, 4 * ascent.cool * scale, ascent.cool * scale)
            chosen = scheduler.improve(likeliest(there), neighbours, np.inf, MOVES)
            chosen = resent(self.problem, neighbours, chosen, number)
            chosen = scheduler.improve(chosen, neighbours, np.inf, MOVES)
            self._consider(chosen, self._total(chosen))

    def _total(self, chosen: list[int]) -> int:
        return self.charges.total(self.problem, chosen)

    def _closed(self) -> bool:
        return self.total - self.bound <= FINE * self.total

    def _consider(self, chosen: list[int], total: int) -> None:
        if total < self.total and self.problem.allows(chosen):
            self.chosen, self.total = chosen, total

    def _gather(self, domain: Flags) -> None:
        """Look at the placements with all that may be there at one site."""
        common = np.argsort(-domain.sum(0), kind="stable")[:GATHERED]
        for site in common.tolist():
            chosen = [site if may else known for known, may in zip(self.chosen, domain[:, site].tolist(), strict=True)]
            self._consider(chosen, self.charges.total(self.problem, chosen))

    def _pass_on(self, messages: Messages, rounds: int) -> list[tuple[int, list[int]]]:
        """Pass messages, and give the placements that they lead to."""
        starts: list[tuple[int, list[int]]] = []
        known = -1
        for turn in range(rounds):
            for forward in (True, False):
                send = messages.forward if forward else messages.backward
                dear = send(self.total, everything=not forward and turn % 2 == 1)
                self.bound = min(max(self.bound, messages.bound), self.total)
                if not messages.remove(dear):
                    self.bound = self.total
                if self._closed():
                    return starts
                chosen = messages.placement(forward=not forward)
                total = self.charges.total(self.problem, chosen)
                starts.append((total, chosen))
                self._consider(chosen, total)
            if turn > 7 and self.bound - known <= (self.total - self.bound) // 100:
                break
            known = self.bound
            messages.even_out()
        return starts

    def _cheaper(
        self,
        forests: Forests,
        neighbours: Neighbours,
        hubs: list[int],
        chosen: list[int],
        total: int,
        rounds: int,
    ) -> tuple[list[int], int]:
        for number in hubs[:3]:
            other = resent(self.problem, neighbours, chosen, number)
            other, found = forests.improve(other, self.charges.total(self.problem, other), 2)
            if found < total:
                chosen, total = other, found
        return forests.improve(chosen, total, rounds)


__all__ = ["Cheapening"]
