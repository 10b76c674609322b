"""Placements of few charges, and a bound of them, in problems too large for a search tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.forests import MANY_TAKERS, Forests
from dfmesh.compiler.placement.hubs import resent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.pair_smoothing import PairSmoothing, is_paired, scale_of, ways_of
from dfmesh.compiler.placement.problem import Flags, Problem
from dfmesh.compiler.placement.rounding import PAIRED_PART, PART, WHOLE, Care, Parts, improved, rounded
from dfmesh.compiler.placement.schedule import Neighbours
from dfmesh.compiler.placement.smoothing import Smoothing, is_uniform

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

SOME_ROUNDS = 8
"""Passes where one follows for which prices differ."""

FEW_ROUNDS = 3
"""Passes at most where a smoothed ascent follows."""

WAYS = 400_000
"""Ways up to which there is a smoothed ascent where prices differ."""


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
        worthwhile: How much dearer than the best a site may look to be part of a placement, as such a share.
        cares: How carefully placements are made as a whole.
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
    worthwhile: float
    cares: tuple[Care, ...]
    care: Care


UNIFORM = Ascent(
    3_000_000, 300, 0.1, 0.005, again=80, repeats=3, parts=20, part=35, worthwhile=np.inf, cares=WHOLE, care=PART
)
PAIRED = Ascent(
    6_500_000, 200, 0.5, 0.005, again=8, repeats=2, parts=24, part=35, worthwhile=1.0, cares=(), care=PAIRED_PART
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
        paired = not uniform and is_paired(problem)
        rounds = FEW_ROUNDS if uniform else max(2, round((SOME_ROUNDS if paired else ROUNDS) * work))
        starts = self._pass_on(messages, rounds)
        if not uniform and not self._closed():
            known = [(self.total, self.chosen)]
            self._replan(messages, hubs, known if paired else [*starts, *known], work)
        if (uniform or paired) and not self._closed():
            left = np.zeros_like(problem.domain)
            for variable, sites in enumerate(messages.sites):
                left[variable, sites] = True
            if uniform:
                self._smooth(Smoothing.of(problem, charges, left), UNIFORM, work)
            elif ways_of(problem, left) <= WAYS:
                self._smooth(PairSmoothing.of(problem, charges, left), PAIRED, work)
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

    def _smooth(self, smoothing: Smoothing | PairSmoothing, ascent: Ascent, work: float) -> None:
        """Raise the bound by a smoothed ascent, and make placements from what it tells."""
        scale = scale_of(self.charges)
        rounds = min(ascent.rounds, round(ascent.effort * work) // max(smoothing.size, 1))
        bound, dear = smoothing.raised(rounds, ascent.warm * scale, ascent.cool * scale)
        self.bound = min(max(self.bound, bound), self.total)
        parts = Parts(self.problem, np.maximum.reduceat(smoothing.weights, smoothing.starts))
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
            trials = round(ascent.parts * work)
            start = self.chosen, self.total
            promising = dear <= ascent.worthwhile * scale
            promising |= smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
            worthwhile = smoothing.restricted(promising)
            self._consider(*improved(worthwhile, scale, parts, start, self._total, trials, ascent.part, ascent.care))

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
