"""The placement of least charges and its proof, for problems small enough to look at all open ends."""

from __future__ import annotations

from dataclasses import dataclass

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.frontier import Frontier
from dfmesh.compiler.placement.frontier_order import frontier_order
from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.relaxation import Relaxation

WIDTHS = (1 / 64, 5.0)
"""Partial placements that are followed at once in the first sweep and in the last, as shares of the steps."""

LOOKED_AT = (1_500, 8_000)
"""Entries of tables that each may look at, likewise."""

ROUNDS = 6
"""Rounds in which the bound is raised between the sweeps, with what the first has found."""


@dataclass(slots=True)
class Swept:
    """A placement with what is proven about it.

    Attributes:
        chosen: Site of each variable.
        total: What it is charged.
        bound: What every placement is charged at the least.
        steps: Partial placements looked at.
    """

    chosen: list[int]
    total: int
    bound: int
    steps: int = 0


def sweep(problem: Problem, charges: Charges, known: Swept, relaxation: Relaxation, steps: int) -> Swept:
    """Find a placement of least charges: a narrow sweep over the open ends finds a good one, a wide one the best.

    Args:
        problem: What is placed.
        charges: What is charged.
        known: The best placement so far.
        relaxation: Of the problem, with the charges of that as its ceiling; it is changed.
        steps: How much may be done.
    """
    for turn, (width, entries) in enumerate(zip(WIDTHS, LOOKED_AT, strict=True)):
        order = frontier_order(problem, relaxation.domain, careful=turn > 0)
        relaxation.reorder(order)
        if turn:
            relaxation.lower_ceiling(known.total)
            relaxation.ascend(ROUNDS, even_out=True)
            known.bound = min(max(known.bound, relaxation.base), known.total)
            if known.bound >= known.total:
                break
        relaxation.lean_back()
        frontier = Frontier(relaxation, charges.shipping, order, max(1, round(width * steps)), entries * steps)
        frontier.run()
        if frontier.best is not None:
            known.chosen, known.total = frontier.best, frontier.charges
        known.bound = min(max(known.bound, frontier.bound), known.total)
        known.steps += frontier.steps
        if known.bound >= known.total:
            break
    return known


__all__ = ["ROUNDS", "Swept", "sweep"]
