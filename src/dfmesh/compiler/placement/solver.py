"""Solving a placement problem: one criterion after the other, each with its proof."""

from __future__ import annotations

from dataclasses import replace

from dfmesh.compiler.placement.attempt import Attempt, Effort, InfeasibleError, Solution, some_placement
from dfmesh.compiler.placement.charges import charge
from dfmesh.compiler.placement.cheapest import find_cheapest
from dfmesh.compiler.placement.least_charges import least_charges
from dfmesh.compiler.placement.least_seconds import least_seconds, least_seconds_within
from dfmesh.compiler.placement.needed import without_needless_edges
from dfmesh.compiler.placement.objective import Objective
from dfmesh.compiler.placement.plan import SECOND_DIGITS, Certificate
from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.wide import WIDE, place_wide
from dfmesh.compiler.placement.windows import keep_residency

TIE_STEPS = 60_000
"""Choices that are looked at to decide between equals after bytes or money, times the variables."""

FEW_TIE_STEPS, FEW_TIE_ROUNDS = 1_200, 4
"""The same after seconds, and rounds of the bound: mostly neither proves anything more there."""


def solve(problem: Problem, objective: Objective, effort: Effort) -> Solution:
    """Find a best placement.

    Raises:
        InfeasibleError: the rules leave none.
    """
    if len(problem.sites) > WIDE:
        return _solve_wide(problem, objective)
    first = _time_first if objective is Objective.TIME else _charges_first
    return first(problem, objective, effort)


def _solve_wide(problem: Problem, objective: Objective) -> Solution:
    domain = problem.domain.copy()
    if not keep_residency(problem, domain):
        raise InfeasibleError
    return Solution(*place_wide(problem.within(domain), objective, some_placement(problem, domain)))


def _time_first(problem: Problem, objective: Objective, effort: Effort) -> Solution:
    """Seconds first, then bytes and the rest in one."""
    problem = without_needless_edges(problem)
    few = min(effort.tie_steps, FEW_TIE_STEPS)
    attempt = Attempt(problem, replace(effort, tie_rounds=min(effort.tie_rounds, FEW_TIE_ROUNDS)))
    chosen, bound, complete = least_seconds(attempt)
    limit = problem.seconds(chosen)
    charges = charge(problem, Objective.TIME, tie_breaks=True)
    chosen, least, complete_charges = least_charges(attempt, chosen, charges, limit, few)
    estimate = problem.estimate(chosen)
    moved = estimate.bytes_moved
    certificate = Certificate(
        objective,
        cost=estimate.seconds,
        bound=estimate.seconds if complete else min(round(bound, SECOND_DIGITS), estimate.seconds),
        tie_break=moved,
        tie_break_bound=moved if complete_charges else min(charges.first(least), moved),
        complete=complete and complete_charges,
        steps=attempt.steps,
    )
    return Solution(chosen, certificate)


def _charges_first(problem: Problem, objective: Objective, effort: Effort) -> Solution:
    """Bytes or money first, then seconds, then the rest."""
    few = min(effort.tie_steps, TIE_STEPS // max(1, len(problem.members)))
    attempt = Attempt(problem, replace(effort, tie_steps=few))
    charges = charge(problem, objective, tie_breaks=False)
    cheapest = find_cheapest(attempt, charges)
    chosen, bound, complete_seconds = least_seconds_within(attempt, cheapest.chosen, charges, cheapest.total)
    limit = problem.seconds(chosen)
    both = charge(problem, objective, tie_breaks=True)
    chosen, _, complete_ties = least_charges(attempt, chosen, both, limit, few)
    estimate = problem.estimate(chosen)
    complete = cheapest.bound >= cheapest.total
    cost = estimate.bytes_moved if objective is Objective.BYTES else estimate.money
    certificate = Certificate(
        objective,
        cost=cost,
        bound=cost if complete else min(charges.first(cheapest.bound), cost),
        tie_break=estimate.seconds,
        tie_break_bound=estimate.seconds if complete_seconds else min(bound, estimate.seconds),
        complete=complete and complete_seconds and complete_ties,
        steps=attempt.steps,
    )
    return Solution(chosen, certificate)


__all__ = ["Effort", "InfeasibleError", "Solution", "solve"]
