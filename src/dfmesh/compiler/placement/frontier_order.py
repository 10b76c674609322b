"""In which order variables are fixed so that few partial placements differ in what still matters."""

from __future__ import annotations

import math
from operator import itemgetter

import numpy as np

from dfmesh.compiler.placement.ordering import neighbourhood
from dfmesh.compiler.placement.problem import Flags, Problem

TRIED = 4_000
"""Variables that are put in order, all trials with another first one together."""

TOGETHER = (1, 2, 3, 9)
"""Takers of a shipment up to which those count as neighbours of each other, for the orders that are compared."""

USUAL = 2
"""The same where only one is looked at."""

COMPARED = 4
"""Orders of each kind that are looked at more closely."""


def frontier_order(problem: Problem, domain: Flags, *, careful: bool = False) -> list[int]:
    """Order the variables so that open ends have few sites together: greedily, from several first ones.

    Args:
        problem: What is placed.
        domain: Sites that are left.
        careful: Whether to make orders of several kinds, and to compare them by what shipments add to the open ends.
    """
    weight = np.log2(np.maximum(domain.sum(1), 1)).tolist()
    if not careful:
        return _orders(_near(problem, USUAL), weight, TRIED)[0]
    kinds = [_orders(_near(problem, takers), weight, TRIED // len(TOGETHER))[:COMPARED] for takers in TOGETHER]
    return min((order for kind in kinds for order in kind), key=lambda order: _states(problem, domain, order))


def _near(problem: Problem, takers: int) -> list[set[int]]:
    near = neighbourhood(problem, timed=False)
    for shipment in problem.shipments:
        if 1 < len(shipment.consumers) <= takers:
            for consumer in shipment.consumers:
                near[consumer] |= {*shipment.consumers} - {consumer}
    return near


def _orders(near: list[set[int]], weight: list[float], tried: int) -> list[list[int]]:
    """Give orders from several first variables, the best first."""
    apart = max(1, -(-(len(near) ** 2) // tried))
    starts = sorted(range(len(near)), key=lambda v: (len(near[v]), v))[::apart]
    return [order for order, _ in sorted((_order(near, weight, start) for start in starts), key=itemgetter(1))]


def _order(near: list[set[int]], weight: list[float], start: int) -> tuple[list[int], float]:
    """Order from a first variable; give also how many open ends there may be, added up over all places."""
    left = [len(around) for around in near]  # Neighbours that are not fixed.
    closes = [0.0] * len(near)  # Weight of fixed variables of which each is the last open neighbour.
    fixed: set[int] = set()
    last = {start: 0}  # When a neighbour of an open variable was fixed last.
    size = total = 0.0
    order: list[int] = []
    while len(order) < len(near):
        if not last:
            last[min((v for v in range(len(near)) if v not in fixed), key=lambda v: (len(near[v]), v))] = 0
        chosen = min(last, key=lambda v: ((weight[v] if left[v] else 0.0) - closes[v], left[v], -last[v], v))
        size += (weight[chosen] if left[chosen] else 0.0) - closes[chosen]
        total += 2.0 ** min(size, 1_000)
        order.append(chosen)
        fixed.add(chosen)
        del last[chosen]
        for other in near[chosen]:
            left[other] -= 1
            if other not in fixed:
                last[other] = len(order)
            elif left[other] == 1:
                closes[next(v for v in near[other] if v not in fixed)] += weight[other]
        if left[chosen] == 1:
            closes[next(v for v in near[chosen] if v not in fixed)] += weight[chosen]
    return order, total


def _states(problem: Problem, domain: Flags, order: list[int]) -> float:
    """Estimate the logarithm of how many partial placements differ in their open ends, nothing being ruled out."""
    position = {variable: place for place, variable in enumerate(order)}
    near = neighbourhood(problem, timed=False)
    until = [max((position[other] for other in near[variable]), default=-1) for variable in range(len(order))]
    sizes = np.zeros(len(order))
    for variable, last in enumerate(until):
        sizes[position[variable] : max(last, position[variable])] += math.log2(max(1, domain[variable].sum()))
    for shipment in problem.shipments:
        takers = sorted(shipment.consumers, key=position.__getitem__)
        for count, following in enumerate(takers[1:], 1):
            # Takers whose site is not an open end still tell where the value has got to.
            there = domain[takers[count:]].any(0)
            bits = [math.log2(1 + (domain[taker] & there).sum()) for taker in takers[:count]]
            ends = [until[taker] for taker in takers[:count]]
            for place in range(max(position[takers[count - 1]], position[shipment.source]), position[following]):
                told = sum(bit for bit, end in zip(bits, ends, strict=True) if end <= place)
                sizes[place] += min(told, there.sum())
    return float(np.logaddexp2.reduce(sizes))


__all__ = ["frontier_order"]
