"""Criteria that add up, in whole units so that equal costs are equal.

A charge has a part per variable and a part per shipment and destination. Several criteria become one number per part,
the first weighted so that no sum of the following ones outweighs a unit of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dfmesh.compiler.placement.objective import Objective
from dfmesh.compiler.placement.problem import Floats, Indices, Problem, Whole

ROOM = 2**61
"""What all charges of a problem together stay below."""

MONEY_UNIT = 1e-6
"""Least difference of money that counts."""


SMALL = 4_000_000
"""Entries up to which the charges of all shipments between all sites are kept."""


@dataclass(frozen=True, eq=False)
class Charges:
    """What a placement is charged.

    Attributes:
        own: Charge of each variable at each site, `[variable, site]`.
        amounts: Bytes of each shipment.
        prices: First criterion per byte from site to site, `[site, site]`; nothing within a site.
        unit: Amount of the first criterion (bytes, money) that counts as one.
        weight: Charge of one unit of the first criterion.
    """

    own: Whole
    amounts: Floats
    prices: Floats
    unit: float
    weight: int

    @cached_property
    def shipping(self) -> Whole:
        """Charge of each shipment from site to site, `[shipment, site, site]`: large where there are many sites."""
        return self._whole(self.amounts[:, None, None] * self.prices)

    def between(self, shipment: int, sources: Indices, destinations: Indices) -> Whole:
        """Give the charge of one shipment from some sites to some, `[source, destination]`."""
        between = np.ix_(sources, destinations)
        if self._is_small:
            known: Whole = self.shipping[shipment][between]
            return known
        return self._whole(self.amounts[shipment] * self.prices[between])

    def sending(self, shipment: int, source: int) -> Whole:
        """Give the charge of one shipment from one site to each."""
        if self._is_small:
            known: Whole = self.shipping[shipment, source].copy()
            return known
        return self._whole(self.amounts[shipment] * self.prices[source])

    @cached_property
    def is_uniform(self) -> bool:
        """Whether a shipment is charged the same between any two sites."""
        sites = len(self.prices)
        price = self.prices[0, -1]
        same = np.count_nonzero(self.prices == price)
        return sites < 2 or bool(price > 0 and not self.prices.diagonal().any() and same == sites * (sites - 1))

    @cached_property
    def _is_small(self) -> bool:
        return self.amounts.size * self.prices.size <= SMALL

    def _whole(self, amounts: Floats) -> Whole:
        return np.rint(amounts / self.unit).astype(np.int64) * self.weight

    def total(self, problem: Problem, chosen: list[int]) -> int:
        """Add up the charges of a complete placement."""
        total = self.own[np.arange(len(chosen)), chosen].sum().item()
        starts, ends, amounts = [], [], []
        for shipment, amount in zip(problem.shipments, self.amounts.tolist(), strict=True):
            for end in {chosen[consumer] for consumer in shipment.consumers}:
                starts.append(chosen[shipment.source])
                ends.append(end)
                amounts.append(amount)
        return int(total + self._whole(np.array(amounts) * self.prices[starts, ends]).sum().item()) if starts else total

    def first(self, total: int) -> float:
        """Give the first criterion of a total, in bytes or money."""
        return total // self.weight * self.unit


def charge(problem: Problem, objective: Objective, *, tie_breaks: bool) -> Charges:
    """State what a placement is charged under an objective.

    Args:
        problem: What is placed.
        objective: Of BYTES and TIME bytes are the first criterion, of MONEY money.
        tie_breaks: Whether nodes away from home and declared order follow.
    """
    own, prices = _money(problem) if objective is Objective.MONEY else _bytes(problem)
    least = MONEY_UNIT if objective is Objective.MONEY else 1.0
    nodes, sites = len(problem.variable), len(problem.sites)
    ranks = nodes * sites + 1
    weight = ranks * (nodes + 1) if tie_breaks else 1
    amounts = np.array([shipment.amount for shipment in problem.shipments], np.float64)
    largest = own.max(1, initial=0.0).sum() + amounts.sum() * prices.max(initial=0.0) * sites
    unit = max(least, largest.item() * weight / (ROOM // (8 * (len(problem.shipments) + 1))))
    whole = np.rint(own / unit).astype(np.int64) * weight
    if tie_breaks:
        counts = np.array([len(members) for members in problem.members], np.int64)[:, None]
        away = np.ones(sites, np.int64)
        away[problem.home] = 0
        whole += counts * (away * ranks + np.arange(sites))
    return Charges(whole, amounts, prices, unit, weight)


def _per_variable(problem: Problem, per_node: Floats) -> Floats:
    own = np.zeros(problem.domain.shape)
    np.add.at(own, np.array(problem.variable, np.intp), per_node)
    return own


def _bytes(problem: Problem) -> tuple[Floats, Floats]:
    elsewhere = 1.0 - np.eye(len(problem.sites))
    own = problem.yielded[:, None] * elsewhere[:, problem.home]
    return _per_variable(problem, own), elsewhere


def _money(problem: Problem) -> tuple[Floats, Floats]:
    own = problem.work_price + problem.yielded[:, None] * problem.send_price[:, problem.home]
    return _per_variable(problem, own), problem.send_price


__all__ = ["Charges", "charge"]
