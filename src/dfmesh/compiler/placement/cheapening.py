"""Placements of few charges, and a bound of them, in problems too large for a search tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.forests import MANY_TAKERS, Forests
from dfmesh.compiler.placement.hubs import resent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.problem import Flags, Problem
from dfmesh.compiler.placement.rounding import WHOLE, Parts, improved, rounded
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

FEW_ROUNDS = 3
"""Passes at most where a smoothed ascent follows."""

ASCENT = 3_000_000
"""Offers that a smoothed ascent may look at."""

MOST_ASCENT = 300
"""Steps of a smoothed ascent at most."""

WARM, COOL = 0.1, 0.005
"""Temperatures of a smoothed ascent, as shares of what a usual shipment is charged."""

REMADE = (20, 35)
"""How many parts of a placement are made anew at a time, and of how many variables."""

REPEATS = 3
"""How often that is done, each time without what is known to be too dear by then."""

AGAIN = 80
"""Steps by which the ascent is continued each time."""


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
        self._gather(domain)
        messages = Messages(self.problem, self.charges, order, domain)
        uniform = is_uniform(self.problem, self.charges)
        starts = self._pass_on(messages, FEW_ROUNDS if uniform else max(2, round(ROUNDS * work)))
        if uniform and not self._closed():
            self._smooth(messages, work)
        if not self._closed():
            self._replan(messages, [] if uniform else [*starts, (self.total, self.chosen)], work)

    def _replan(self, messages: Messages, starts: list[tuple[int, list[int]]], work: float) -> None:
        """Choose many variables anew at once, in the cheapest of some placements and then in the best that is known."""
        forests = Forests(self.problem, self.charges, messages.sites)
        neighbours = Neighbours(self.problem, self.charges)
        hubs = [
            number for number, shipment in enumerate(self.problem.shipments) if len(shipment.consumers) >= MANY_TAKERS
        ]
        for total, chosen in sorted(starts)[:STARTS]:
            self._consider(*self._cheaper(forests, neighbours, hubs, chosen, total, round(REPLANNED * work)))
        if not self._closed():
            rounds = round((LAST if starts else REPLANNED) * work)
            self._consider(*forests.improve(self.chosen, self.total, rounds))

    def _smooth(self, messages: Messages, work: float) -> None:
        """Raise the bound by a smoothed ascent, and make placements from what it tells."""
        domain = np.zeros_like(self.problem.domain)
        for variable, sites in enumerate(messages.sites):
            domain[variable, sites] = True
        smoothing = Smoothing.of(self.problem, self.charges, domain)
        scale = float(np.median(smoothing.cost)) if smoothing.size else 1.0
        rounds = min(MOST_ASCENT, round(ASCENT * work) // max(smoothing.size, 1))
        bound, dear = smoothing.certify(smoothing.ascend(rounds, WARM * scale, COOL * scale))
        self.bound = min(max(self.bound, bound), self.total)
        parts = Parts(self.problem, np.maximum.reduceat(smoothing.weights, smoothing.starts))
        for care in WHOLE:
            whole = rounded(smoothing.restricted(dear >= 0), scale, care)
            self._consider(whole, self._total(whole))
        trials, size = REMADE
        for _ in range(REPEATS):
            keep = dear + bound < self.total
            keep |= smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
            smoothing = smoothing.restricted(keep)
            offers = smoothing.ascend(round(AGAIN * work), COOL * scale, COOL * scale / 4)
            bound, dear = smoothing.certify(offers)
            # What was left out is dearer than the best placement.
            self.bound = min(max(self.bound, bound), self.total)
            if self._closed():
                return
            self._consider(
                *improved(smoothing, scale, parts, (self.chosen, self.total), self._total, round(trials * work), size)
            )

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
