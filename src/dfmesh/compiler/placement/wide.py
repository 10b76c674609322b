"""Placement over very many sites, in time and memory that grow with the sites that each node may have."""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.charges import charge
from dfmesh.compiler.placement.cheapening import Cheapening
from dfmesh.compiler.placement.cheapest import Cheapest
from dfmesh.compiler.placement.closing import Closing
from dfmesh.compiler.placement.descent import Descent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.objective import Objective
from dfmesh.compiler.placement.ordering import decoupling_order
from dfmesh.compiler.placement.plan import SECOND_DIGITS, Certificate
from dfmesh.compiler.placement.problem import Flags, Floats, Problem
from dfmesh.compiler.placement.propagation import Propagation
from dfmesh.compiler.placement.shortlists import charges_with_elsewhere, shortlists, with_elsewhere
from dfmesh.compiler.placement.standing import Standing

WIDE = 160
"""Sites above which each variable has its own short list of them."""

WORK = 60_000
"""Edges that may be updated on the way to a good placement."""

PASSES = 4
"""Passes of messages for a bound."""


def place_wide(problem: Problem, objective: Objective, known: list[int]) -> tuple[list[int], Certificate]:
    """Find a good placement and a bound.

    Args:
        problem: What is placed, its domains without what residency forbids in any case.
        objective: What comes first.
        known: Some placement that keeps the rules.

    Returns:
        Site of each variable, and what is proven.
    """
    listed = shortlists(problem, _preference(problem, objective))
    listed[np.arange(len(known)), known] = True
    narrow = problem.within(listed)
    first = _first(narrow) or known
    if objective is Objective.TIME:
        chosen, bound = _least_seconds(problem, narrow, listed, first)
        estimate = problem.estimate(chosen)
        certificate = Certificate(
            objective,
            estimate.seconds,
            min(round(bound, SECOND_DIGITS), estimate.seconds),
            estimate.bytes_moved,
            0.0,
            False,
        )
    else:
        chosen, bound = _least_charges(problem, narrow, listed, first, objective)
        estimate = problem.estimate(chosen)
        cost = estimate.bytes_moved if objective is Objective.BYTES else estimate.money
        certificate = Certificate(objective, cost, min(bound, cost), estimate.seconds, 0.0, False)
    return chosen, certificate


def _preference(problem: Problem, objective: Objective) -> Floats:
    if objective is Objective.TIME:
        return problem.summed(problem.compute)
    return charge(problem, objective, tie_breaks=False).own.astype(np.float64)


def _first(problem: Problem) -> list[int] | None:
    propagation = Propagation(problem, [np.flatnonzero(may) for may in problem.domain])
    if not propagation.begin(np.inf):
        return None
    return Descent(propagation).within(np.inf, np.inf, WORK, WORK).chosen


def _least_seconds(problem: Problem, narrow: Problem, listed: Flags, first: list[int]) -> tuple[list[int], float]:
    bound = 0.0
    if (problem.domain & ~listed).any():
        relaxed, lists = with_elsewhere(problem, listed)
        below = Closing(relaxed, first, problem.seconds(first), 0.0)
        below.raise_bound(Propagation(relaxed, [np.flatnonzero(may) for may in lists]), WORK // 2)
        bound = below.bound
    propagation = Propagation(narrow, [np.flatnonzero(may) for may in listed])
    closing = Closing(narrow, first, problem.seconds(first), bound)
    is_whole = not (problem.domain & ~listed).any()
    closing.run(propagation, work=WORK)
    return closing.chosen, closing.bound if is_whole else bound


def _least_charges(
    problem: Problem, narrow: Problem, listed: Flags, first: list[int], objective: Objective
) -> tuple[list[int], float]:
    charges = charge(problem, objective, tie_breaks=False)
    order = decoupling_order(problem)
    total = charges.total(problem, first)
    cheapening: Standing
    if charges.is_uniform:
        cheapening = Cheapest(
            problem=narrow, charges=charges, chosen=first, total=total, domain=listed.copy(), order=order, sweeps=0
        )
        cheapening.run()
    else:
        cheapening = Cheapening(narrow, charges, first, total)
        cheapening.run(order, listed, 0.4)
    if not (problem.domain & ~listed).any():
        return cheapening.chosen, charges.first(cheapening.bound)
    relaxed, lists = with_elsewhere(problem, listed)
    messages = Messages(relaxed, charges_with_elsewhere(charges, problem, listed), order, lists)
    for _ in range(PASSES):
        messages.forward(None)
        messages.backward(None)
        messages.even_out()
    return cheapening.chosen, charges.first(min(messages.bound, cheapening.total))


__all__ = ["WIDE", "place_wide"]
