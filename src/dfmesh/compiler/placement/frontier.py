"""The placement of least charges, layer by layer over the open ends of partial placements.

What lies ahead of a partial placement is charged by its *open ends* alone: the sites of variables with neighbours
that are still open, and the sites that a value with open takers has got to. So of all partial placements with the same
open ends only the cheapest is kept (the dynamic program over a path decomposition; Dechter's bucket elimination is
its form for trees). The relaxation's tables are what is charged: those that cannot stay below the ceiling are dropped,
and where too many are left, only the most promising are kept, the least bound of the others being a bound.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from dfmesh.compiler.placement.problem import Indices, Whole
from dfmesh.compiler.placement.relaxation import Relaxation

WORD = 2**62
"""Keys of open ends below this are kept in one number."""

REST = 3
"""Part of what is left of the budget that a layer may need."""

CALL, MADE = 1_500, 40
"""Entries of tables that could be looked at in the time of beginning with a table, and of making a placement."""

TABLES = 3
"""Tables that tell what a variable adds, usually."""

LEAST = 32
"""Partial placements that are followed even if the budget is spent."""


@dataclass(slots=True)
class _Shared:
    """A shipment with several takers.

    Attributes:
        source: Its variable.
        whole: What is charged for it, `[source site, site]`.
        shares: What of that each taker's table has, `[source site, site]`.
    """

    source: int
    whole: Whole
    shares: dict[int, Whole]


@dataclass(slots=True)
class _Stage:
    """What is to be done when one variable of the order is fixed.

    Attributes:
        variable: The variable.
        fixed: Neighbours that are fixed already.
        sent: Shipments with several takers that it sends, with those takers that are fixed already.
        taken: Those that it takes from variables that are fixed already.
        ahead: Open variables for which the choice always matters.
        beyond: Those for which it matters what a shipment is charged for, by shipment.
        following: Entries of tables that the next variable needs at most, for each partial placement.
        open_variables: Fixed variables that still matter afterwards.
        open_shared: Shipments that still have open takers afterwards, with the sites at which those may be.
    """

    variable: int
    fixed: list[int]
    sent: list[tuple[int, list[int]]]
    taken: list[int]
    ahead: list[int]
    beyond: dict[int, list[int]]
    following: int
    open_variables: list[int]
    open_shared: list[tuple[int, list[int]]]


@dataclass(slots=True)
class _Layer:
    """Partial placements of the same variables.

    Attributes:
        paid: What each is charged for what is fixed.
        least: What open variables add at the least, by variable.
        bound: The sum of both.
        at: Sites of variables that matter, by variable.
        reached: For shipments with open takers at which sites it is charged for already, as bits, by shipment.
    """

    paid: Whole
    bound: Whole
    at: dict[int, Indices]
    reached: dict[int, Whole]
    least: dict[int, Whole] = field(default_factory=dict)

    def only(self, rows: Indices) -> _Layer:
        return _Layer(
            self.paid[rows],
            self.bound[rows],
            {variable: at[rows] for variable, at in self.at.items()},
            {shared: bits[rows] for shared, bits in self.reached.items()},
            {variable: least[rows] for variable, least in self.least.items()},
        )


class Frontier:
    """Finds the placement of least charges below the ceiling of a relaxation.

    Attributes:
        best: The best placement found, one site per variable; None if there is none below the ceiling.
        charges: What it is charged, or the ceiling.
        bound: What every placement is charged at the least.
        steps: Partial placements looked at.
    """

    def __init__(self, relaxation: Relaxation, shipping: Whole, order: list[int], width: int, budget: int) -> None:
        """Prepare it.

        Args:
            relaxation: It gives the tables; charges should lean towards variables that are early in the order.
            shipping: Charge of each shipment, `[shipment, site, site]`.
            order: Of all variables.
            width: Partial placements of the same variables that are followed at most.
            budget: Entries of tables that are looked at, roughly.
        """
        self.best: list[int] | None = None
        self.charges = self.bound = relaxation.ceiling
        self.steps = 0
        self._width = width
        self._budget = budget
        self._work = 0
        self._ceiling = relaxation.ceiling
        self._base = relaxation.base
        self._own = relaxation.own
        self._domain = relaxation.domain
        self._sites = [np.flatnonzero(may) for may in relaxation.domain]
        self._tables: list[dict[int, Whole]] = [{} for _ in order]
        for (first, second), table in zip(relaxation.pairs, relaxation.tables, strict=True):
            self._tables[first][second] = table.T
            self._tables[second][first] = table
        self._shared = {
            number: _Shared(
                shipment.source,
                shipping[number],
                {consumer: relaxation.shares[number, consumer] for consumer in shipment.consumers},
            )
            for number, shipment in enumerate(relaxation.problem.shipments)
            if len(shipment.consumers) > 1
        }
        self._takes: list[list[int]] = [[] for _ in order]
        for number, shared in self._shared.items():
            for taker in shared.shares:
                self._takes[taker].append(number)
        self._stages = self._staged(order)

    def run(self) -> None:
        """Look at all layers."""
        if not self._domain.any(1).all():
            return
        none = np.zeros(1, np.int64)
        layer = _Layer(none + self._base, none + self._base, {}, {})
        layer.least = {stage.variable: none + self._lowest(stage.variable) for stage in self._stages}
        layer.bound = layer.paid + sum(layer.least.values())
        trail: list[tuple[Indices, Indices]] = []
        for stage in self._stages:
            layer, came_from, sites = self._follow(layer, stage)
            if not layer.paid.size:
                return
            trail.append((came_from, sites))
        self.charges = int(layer.paid[0])
        self.bound = min(self.bound, self.charges)
        row, chosen = 0, [0] * len(self._stages)
        for stage, (came_from, sites) in zip(reversed(self._stages), reversed(trail), strict=True):
            chosen[stage.variable] = int(sites[row])
            row = int(came_from[row])
        self.best = chosen

    def _lowest(self, variable: int) -> int:
        return int(self._own[variable, self._sites[variable]].min())

    def _staged(self, order: list[int]) -> list[_Stage]:
        position = {variable: index for index, variable in enumerate(order)}
        stages = []
        for here, variable in enumerate(order):
            taken = [n for n in self._takes[variable] if position[self._shared[n].source] < here]
            sent = [
                (number, [taker for taker in shared.shares if position[taker] < here])
                for number, shared in self._shared.items()
                if shared.source == variable
            ]
            known = order[: here + 1]
            open_variables = [v for v in known if any(position[other] > here for other in self._tables[v])]
            stages.append(
                _Stage(
                    variable,
                    [other for other in self._tables[variable] if position[other] < here],
                    sent,
                    taken,
                    [other for other in self._tables[variable] if position[other] > here],
                    {n: [other for other in self._shared[n].shares if position[other] > here] for n in taken},
                    1,
                    open_variables,
                    [
                        (number, np.flatnonzero(self._domain[ahead].any(0)).tolist())
                        for number, shared in self._shared.items()
                        if position[shared.source] <= here
                        and (ahead := [taker for taker in shared.shares if position[taker] > here])
                    ],
                )
            )
        for stage, following in itertools.pairwise(stages):
            others = [*following.ahead, *itertools.chain.from_iterable(following.beyond.values())]
            entries = MADE + sum(TABLES * len(self._sites[other]) for other in others)
            stage.following = entries * len(self._sites[following.variable])
        return stages

    def _follow(self, layer: _Layer, stage: _Stage) -> tuple[_Layer, Indices, Indices]:
        """Fix one more variable; give the layer, of which partial placement each is made, and with which site."""
        sites = self._sites[stage.variable]
        cost = self._row(layer, stage.variable, stage.fixed)
        # A payment for a shipment may relieve other takers of as much: it counts when what those add is known.
        bound = layer.bound[:, None] - layer.least[stage.variable][:, None] + cost
        rows, columns = np.nonzero(bound < self._ceiling)
        payment = self._payment(layer, stage, sites)
        self.steps += len(rows)
        self._work += MADE * len(rows)
        chosen = sites[columns]
        after = layer.only(rows)
        after.paid += (cost + payment)[rows, columns]
        after.bound = (bound + payment)[rows, columns]
        ahead = dict.fromkeys(stage.ahead) | dict.fromkeys(self._note(after, stage, chosen))
        keep = _cheapest(after.paid, self._key(after, stage))
        after, rows, chosen = after.only(keep), rows[keep], chosen[keep]
        for other in ahead:
            fixed = [near for near in self._tables[other] if near in after.at]
            least = self._row(after, other, fixed).min(1)
            after.bound += least - after.least[other]
            after.least[other] = least
        keep = self._promising(after.bound, stage.following)
        return after.only(keep), rows[keep], chosen[keep]

    def _row(self, layer: _Layer, variable: int, fixed: list[int]) -> Whole:
        """Give what each site of a variable adds, `[partial placement, site]`."""
        sites = self._sites[variable]
        row = np.repeat(self._own[variable, sites][None], layer.paid.size, axis=0)
        tables = 1 + len(fixed) + len(self._takes[variable])
        self._work += CALL * tables + row.size * tables
        for other in fixed:
            row += self._tables[variable][other][:, sites][layer.at[other]]
        for number in self._takes[variable]:
            shared = self._shared[number]
            if number in layer.reached:
                paid = layer.reached[number][:, None] >> sites & 1
                row -= paid * shared.shares[variable][:, sites][layer.at[shared.source]]
        return row

    def _payment(self, layer: _Layer, stage: _Stage, sites: Indices) -> Whole:
        """Give what is charged for shipments beyond the shares of their takers, `[partial placement, site]`."""
        payment = np.zeros((layer.paid.size, len(sites)), np.int64)
        for number in stage.taken:
            shared = self._shared[number]
            rest = (shared.whole - shared.shares[stage.variable])[:, sites][layer.at[shared.source]]
            payment += (1 - (layer.reached[number][:, None] >> sites & 1)) * rest
        for number, takers in stage.sent:
            shared = self._shared[number]
            bits = np.zeros(layer.paid.size, np.int64)
            for taker in takers:
                at = layer.at[taker]
                is_first = 1 - (bits >> at & 1)
                payment += is_first[:, None] * shared.whole[sites].T[at] - shared.shares[taker][sites].T[at]
                bits |= np.int64(1) << at
        return payment

    def _note(self, layer: _Layer, stage: _Stage, chosen: Indices) -> list[int]:
        """Enter a choice in the open ends, leave out what matters no more; give takers that may pay less by it."""
        relieved = []
        for number, takers in stage.sent:
            # Where it costs nothing to send, it makes no difference whether it has been sent.
            free = ((self._shared[number].whole == 0) << np.arange(self._domain.shape[1])).sum(1)
            bits = free[chosen]
            for taker in takers:
                bits |= np.int64(1) << layer.at[taker]
            layer.reached[number] = bits
        for number in stage.taken:
            known = layer.reached[number]
            layer.reached[number] = known | np.int64(1) << chosen
            new = np.bincount(chosen[layer.reached[number] != known], minlength=self._domain.shape[1]) > 0
            relieved += [other for other in stage.beyond[number] if (self._domain[other] & new).any()]
        layer.at[stage.variable] = chosen
        layer.at = {variable: layer.at[variable] for variable in stage.open_variables}
        layer.reached = {number: layer.reached[number] for number, _ in stage.open_shared}
        del layer.least[stage.variable]
        return relieved

    def _key(self, layer: _Layer, stage: _Stage) -> list[Whole]:
        """Number the open ends: equal numbers for equal ones."""
        parts = [(layer.at[variable], self._domain.shape[1]) for variable in stage.open_variables]
        for number, sites in stage.open_shared:
            parts += [(layer.reached[number] >> site & 1, 2) for site in sites]
        words, room = [np.zeros(layer.paid.size, np.int64)], WORD
        for value, count in parts:
            if room < count:
                words.append(np.zeros(layer.paid.size, np.int64))
                room = WORD
            words[-1] = words[-1] * count + value
            room //= count
        return words

    def _promising(self, bound: Whole, work: int) -> Indices:
        keep = np.flatnonzero(bound < self._ceiling)
        width = min(self._width, max(LEAST, (self._budget - self._work) // (REST * work)))
        if len(keep) > width:
            keep = keep[np.argsort(bound[keep], kind="stable")]
            self.bound = min(self.bound, int(bound[keep[width]]))
            keep = keep[:width]
        return keep


def _cheapest(paid: Whole, key: list[Whole]) -> Indices:
    """Give the cheapest of each key."""
    order = np.lexsort((paid, *key))
    if not len(order):
        return order
    is_new = np.zeros(len(order), np.bool_)
    is_new[0] = True
    for word in key:
        is_new[1:] |= word[order[1:]] != word[order[:-1]]
    return order[is_new]


__all__ = ["Frontier"]
