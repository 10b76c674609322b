"""Placements of few charges, and a bound of them, in problems too large for a search tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.ascents import CONTINUED, PAIRED, Ascent
from dfmesh.compiler.placement.concentrating import LESS_WAYS, MOVES, concentrate, concentrate_where_free
from dfmesh.compiler.placement.crowds import CROWD
from dfmesh.compiler.placement.forests import MANY_TAKERS, Forests
from dfmesh.compiler.placement.hub_search import ENOUGH, HubSearch, hubs_of
from dfmesh.compiler.placement.hubs import resent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.pair_smoothing import PairSmoothing
from dfmesh.compiler.placement.passing import FINE, pass_on
from dfmesh.compiler.placement.problem import Flags, Whole
from dfmesh.compiler.placement.rounding import Parts, improved, likeliest
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler
from dfmesh.compiler.placement.standing import Standing
from dfmesh.compiler.placement.ways import is_paired, scale_of, ways_of

FEW_ROUNDS = 3
"""Passes at most where a smoothed ascent follows that begins from nothing."""

STAGE, STAGES = 9, 4
"""Passes forward and backward before placements are made from the sites that look best, and how often that is done."""

WORK = 350_000_000
"""Entries of tables that messages may look at."""

GATHERED = 64
"""Sites at which as much as possible is put together, for a look."""

STARTS = 3
"""Placements that are made cheaper."""

REPLANNED = 10
"""How often the variables of one of them are chosen anew before it is looked at which is best."""

LAST = 20
"""How often those of the best are."""

TRIED, STEPS = 3, 12
"""Sites that are tried for a value that many take, and by how many steps the ascent is continued there."""

WAYS, FEW_WAYS = 400_000, 20_000
"""Ways, without those of hubs, between which an ascent with all sites of the hubs is better than one for each."""

USUAL = 2.0
"""Temperatures are shares of what a usual shipment is charged, but of no more than so often the cost per variable."""


@dataclass(slots=True)
class Cheapening(Standing):
    """A placement and a bound that are made to approach one another."""

    def run(self, order: list[int], domain: Flags, work: float) -> None:
        """Raise the bound and look for better placements.

        Args:
            order: Of the variables.
            domain: Sites to choose from.
            work: Share of the usual effort.
        """
        self._gather(domain)
        messages = Messages(self.problem, self.charges, order, domain)
        if is_paired(self.problem):
            self._run_paired(messages, work)
        else:
            starts = pass_on(self, messages, STAGE * STAGES, WORK * work)
            if not self.is_within(FINE):
                self._replan(messages, [*starts, (self.total, self.chosen)], work)

    def _run_paired(self, messages: Messages, work: float) -> None:
        problem, hubs = self.problem, hubs_of(self.problem)
        if hubs and FEW_WAYS < ways_of(problem, messages.domain(), but=hubs) <= WAYS:
            pass_on(self, messages, FEW_ROUNDS, np.inf, spread=1)
            if not self.is_within(ENOUGH):
                smoothing = PairSmoothing.of(problem, self.charges, messages.domain())
                self._smooth(smoothing, PAIRED, scale_of(self.charges), work)
            return
        messages = self._at_hubs(messages, hubs, work) if hubs else self._in_stages(messages, work)
        if self.is_within(ENOUGH):
            return
        left = messages.domain()
        if ways_of(problem, left) <= LESS_WAYS:
            scale = min(scale_of(self.charges), max(1.0, USUAL * self.total / len(self.chosen)))
            self._smooth(PairSmoothing.of(problem, self.charges, left, messages), CONTINUED, scale, work)

    def _at_hubs(self, messages: Messages, hubs: list[int], work: float) -> Messages:
        """Pass messages, then with hubs fixed; give those where the bound is lowest."""
        messages.watch(hubs)
        pass_on(self, messages, STAGE, WORK * work)
        if not self.is_within(ENOUGH):
            concentrate_where_free(self, messages, hubs[0])
        if not self.is_within(ENOUGH):
            messages = HubSearch(self, hubs).run(messages, WORK * work - messages.work)
        if not self.is_within(ENOUGH):
            concentrate(self, messages)
        return messages

    def _in_stages(self, messages: Messages, work: float) -> Messages:
        """Pass messages and make placements in turns, until few enough ways are left."""
        for _ in range(STAGES):
            pass_on(self, messages, STAGE, WORK * work)
            if self.is_within(ENOUGH):
                break
            concentrate(self, messages)
            if messages.work > WORK * work or ways_of(self.problem, messages.domain()) <= LESS_WAYS:
                break
        return messages

    def _replan(self, messages: Messages, starts: list[tuple[int, list[int]]], work: float) -> None:
        """Choose many variables anew at once, in the cheapest of some placements and then in the best that is known."""
        shipments = enumerate(self.problem.shipments)
        hubs = [number for number, shipment in shipments if len(shipment.consumers) >= MANY_TAKERS]
        forests = Forests(self.problem, self.charges, messages.sites)
        neighbours = Neighbours(self.problem, self.charges)
        for total, chosen in sorted(starts)[:STARTS]:
            self.consider(self._cheaper(forests, neighbours, hubs, chosen, total, round(REPLANNED * work)))
        if not self.is_within(FINE):
            rounds = round((LAST if starts else REPLANNED) * work)
            self.consider(forests.improve(self.chosen, self.total, rounds)[0])

    def _smooth(self, smoothing: PairSmoothing, ascent: Ascent, scale: float, work: float) -> None:
        """Raise the bound by a smoothed ascent, and make placements from what it tells."""
        rounds = min(ascent.rounds, round(ascent.effort * work) // max(smoothing.size, 1))
        bound, dear = smoothing.raised(rounds, ascent.warm * scale, ascent.cool * scale)
        self.note_bound(bound)
        parts = Parts(self.problem, np.maximum.reduceat(smoothing.weights, smoothing.starts), ascent.doubtful)
        neighbours = Neighbours(self.problem, self.charges)
        self.consider(Scheduler(self.problem).improve(likeliest(smoothing), neighbours, np.inf, MOVES))
        self._place_hub(smoothing, dear, ascent, scale, neighbours)
        for _ in range(ascent.repeats):
            keep = dear + bound < self.total
            keep |= smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
            if not np.logical_or.reduceat(keep, smoothing.starts).all():
                self.note_bound(self.total)
                return
            smoothing = smoothing.restricted(keep)
            bound, dear = smoothing.raised(round(ascent.again * work), ascent.cool * scale, ascent.cool * scale / 4)
            # What was left out is dearer than the best placement.
            self.note_bound(bound)
            if self.is_within(ENOUGH):
                return
            here = smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
            parts.look_at(-np.maximum.reduceat(np.where(here, dear, 0), smoothing.starts).astype(np.float64))
            trials = round(ascent.parts * work)
            start = self.chosen, self.total
            promising = dear <= ascent.worthwhile * scale
            promising |= smoothing.site == np.array(self.chosen, np.intp)[smoothing.variable]
            worthwhile = smoothing.restricted(promising)
            chosen, _ = improved(worthwhile, scale, parts, start, self.total_of, trials, ascent.part, ascent.care)
            self.consider(chosen)

    def _place_hub(
        self, smoothing: PairSmoothing, dear: Whole, ascent: Ascent, scale: float, neighbours: Neighbours
    ) -> None:
        """Try the sites of the variable whose value most others take: all the rest depends on it."""
        shipment = max(self.problem.shipments, key=lambda other: len(other.consumers))
        if len(shipment.consumers) < CROWD:
            return
        scheduler, number = Scheduler(self.problem), self.problem.shipments.index(shipment)
        choices = np.flatnonzero(smoothing.variable == shipment.source)
        if len(choices) == 1:
            return
        for choice in choices[np.argsort(dear[choices], kind="stable")][:TRIED].tolist():
            keep = smoothing.variable != shipment.source
            keep[choice] = True
            there = smoothing.restricted(keep)
            there.ascend(STEPS, 4 * ascent.cool * scale, ascent.cool * scale)
            chosen = scheduler.improve(likeliest(there), neighbours, np.inf, MOVES)
            chosen = resent(self.problem, neighbours, chosen, number)
            chosen = scheduler.improve(chosen, neighbours, np.inf, MOVES)
            self.consider(chosen)

    def _gather(self, domain: Flags) -> None:
        """Look at the placements with all that may be there at one site."""
        common = np.argsort(-domain.sum(0), kind="stable")[:GATHERED]
        for site in common.tolist():
            chosen = [site if may else known for known, may in zip(self.chosen, domain[:, site].tolist(), strict=True)]
            self.consider(chosen)

    def _cheaper(
        self,
        forests: Forests,
        neighbours: Neighbours,
        hubs: list[int],
        chosen: list[int],
        total: int,
        rounds: int,
    ) -> list[int]:
        for number in hubs[:3]:
            other = resent(self.problem, neighbours, chosen, number)
            other, found = forests.improve(other, self.charges.total(self.problem, other), 2)
            if found < total:
                chosen, total = other, found
        return forests.improve(chosen, total, rounds)[0]


__all__ = ["Cheapening"]
