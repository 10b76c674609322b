"""Placements of few seconds: fix one variable after the other, each time noting what that leaves of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.propagation import Propagation
from dfmesh.compiler.placement.windows import Joins

TRIED = 3
"""Sites of a variable that are tried before the limit is raised."""

RAISE = 0.002
"""Share by which the limit is raised at first where no site keeps it; twice as much each time after."""


@dataclass(frozen=True, slots=True)
class Dive:
    """A placement, or None if the ceiling was reached first."""

    chosen: list[int] | None
    limit: float


def diving_order(problem: Problem, joins: Joins) -> list[int]:
    """Order the variables: senders before receivers, but where ways from a node join again right after that node."""
    order: dict[int, None] = {}
    for variable, members in enumerate(problem.members):
        order[variable] = None
        for node in members:
            for join, _ in reversed(joins.get(node, [])):  # The farthest first.
                order[problem.variable[join]] = None
    return list(order)


def dive(propagation: Propagation, order: list[int], ceiling: float, work: int) -> Dive:
    """Fix all variables, from what `begin` has left, with the limit raised as little as seems needed.

    Args:
        propagation: With a limit that has left something.
        order: Of the variables.
        ceiling: Seconds; placements that take as long are of no use.
        work: Up to which count of the propagation's work it may go on.
    """
    problem = propagation.problem
    busy = np.zeros(len(problem.capacity))
    for variable in order:
        positions, longest = propagation.promises(variable)
        sites = propagation.sites[variable][positions]
        if problem.limited:
            longest = np.maximum(longest, busy[sites] + problem.load[variable, sites])
        best = np.argsort(longest, kind="stable")
        if not _choose(propagation, variable, positions[best[:TRIED]].tolist(), ceiling, work):
            return Dive(None, propagation.limit)
        site = propagation.site(variable)
        busy[site] += problem.load[variable, site]
    return Dive(propagation.chosen(), propagation.limit)


def _choose(propagation: Propagation, variable: int, positions: list[int], ceiling: float, work: int) -> bool:
    if any(propagation.choose(variable, position) for position in positions):
        return True
    share = RAISE
    while propagation.limit * (1 + share) < ceiling and propagation.work < work:
        propagation.limit *= 1 + share
        share *= 2
        if propagation.choose(variable, positions[0]):
            return True
    return False


__all__ = ["Dive", "dive", "diving_order"]
