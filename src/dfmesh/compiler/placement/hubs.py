"""Making a placement cheaper around values that many take: to which sites such a value is sent is chosen anew.

All else left where it is, that is facility location without capacities. Sites are opened, closed and exchanged one by
one as long as that helps.
"""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.problem import Flags, Problem, Whole
from dfmesh.compiler.placement.schedule import Neighbours, allowed_sites, rules_of

EXCHANGES = 40
"""Sites opened, closed or exchanged at most per value."""

ENTRIES = 2_000_000
"""Entries, takers times pairs of sites, up to which exchanges are looked at; beyond, only openings and closings."""

NEVER = 2**50
"""Charge of a site that a variable may not have."""


def resent(problem: Problem, neighbours: Neighbours, chosen: list[int], number: int) -> list[int]:
    """Choose the destinations of one shipment anew, and its takers' sites among them.

    Args:
        problem: The problem.
        neighbours: What is charged.
        chosen: A placement.
        number: The shipment.

    Returns:
        A placement; where takers depend on one another it may be charged more than the one given.
    """
    shipment, start = problem.shipments[number], chosen[problem.shipments[number].source]
    opening = neighbours.charges.sending(number, start)
    rules = rules_of(problem)
    apart = np.array(
        [_apart(problem, neighbours, rules, consumer, chosen, number) for consumer in shipment.consumers], np.int64
    )
    open_sites = np.zeros(len(opening), np.bool_)
    open_sites[[chosen[consumer] for consumer in shipment.consumers]] = True
    open_sites = _located(apart, opening, open_sites)
    found = list(chosen)
    sites = np.flatnonzero(open_sites)
    for consumer, at in zip(shipment.consumers, apart[:, sites].argmin(1).tolist(), strict=True):
        found[consumer] = int(sites[at])
    return found


def _apart(
    problem: Problem,
    neighbours: Neighbours,
    rules: list[list[tuple[int, Flags]]],
    variable: int,
    chosen: list[int],
    number: int,
) -> Whole:
    """Give a taker's charge per site without what the shipment itself costs."""
    charge = neighbours.at(variable, chosen, but=number)
    return np.where(allowed_sites(problem, rules, variable, chosen), charge, NEVER)


def _located(apart: Whole, opening: Whole, open_sites: Flags) -> Flags:
    everywhere = np.arange(len(opening))
    for _ in range(EXCHANGES):
        now = np.where(open_sites[None], apart, NEVER)
        nearest = now.argmin(1)
        best = now[np.arange(len(now)), nearest]
        now[np.arange(len(now)), nearest] = NEVER
        loss = np.zeros(len(opening), np.int64)
        np.add.at(loss, nearest, np.minimum(now.min(1), NEVER) - best)
        close = np.where(open_sites, loss - opening, NEVER)
        gain = np.maximum(best[:, None] - apart, 0).sum(0)
        open_up = np.where(open_sites, NEVER, opening - gain)
        change = int(min(close.min(), open_up.min()))
        if change < 0:
            site = int(close.argmin() if close.min() <= open_up.min() else open_up.argmin())
            open_sites = open_sites ^ (everywhere == site)
            continue
        pair = _exchange(apart, opening, open_sites) if apart.size * len(opening) <= ENTRIES else None
        if pair is None:
            break
        open_sites = open_sites.copy()
        open_sites[list(pair)] = [False, True]
    return open_sites


def _exchange(apart: Whole, opening: Whole, open_sites: Flags) -> tuple[int, int] | None:
    """Find the best site to close and to open at once; None if none saves anything."""
    now = np.where(open_sites[None], apart, NEVER)
    total = int(now.min(1).sum() + opening[open_sites].sum())
    best: tuple[int, tuple[int, int]] | None = None
    for close in np.flatnonzero(open_sites).tolist():
        others = now.copy()
        others[:, close] = NEVER
        left = (
            np.minimum(others.min(1)[:, None], apart).sum(0) + int(opening[open_sites].sum()) - opening[close] + opening
        )
        left[open_sites] = NEVER
        site = int(left.argmin())
        if left[site] < total and (best is None or left[site] < best[0]):
            best = (int(left[site]), (close, site))
    return None if best is None else best[1]


__all__ = ["resent"]
