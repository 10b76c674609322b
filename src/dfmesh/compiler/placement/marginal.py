"""What the next best site of each variable would cost."""

from __future__ import annotations

from dfmesh.compiler.placement.objective import Objective
from dfmesh.compiler.placement.plan import Alternative
from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.solver import Effort, InfeasibleError, solve

REPLACED = 24
"""Nodes up to which everything else is placed anew."""


def next_best(problem: Problem, chosen: list[int], objective: Objective) -> list[Alternative | None]:
    """Find the next best site of the first node of each variable; None for the others, and where there is no choice.

    Args:
        problem: What was placed.
        chosen: Site of each variable.
        objective: What comes first.
    """
    found: list[Alternative | None] = [None] * len(problem.variable)
    here = problem.estimate(chosen)
    replaced = len(problem.variable) <= REPLACED
    for variable, members in enumerate(problem.members):
        if problem.domain[variable].sum() < 2:
            continue
        other = _placed_anew(problem, chosen, variable, objective) if replaced else None
        other = other or _moved(problem, chosen, variable, objective)
        if other is not None:
            estimate = problem.estimate(other)
            found[members[0]] = Alternative(
                problem.sites[other[variable]],
                estimate.seconds - here.seconds,
                estimate.bytes_moved - here.bytes_moved,
                estimate.money - here.money,
                replaced,
            )
    return found


def _placed_anew(problem: Problem, chosen: list[int], variable: int, objective: Objective) -> list[int] | None:
    try:
        return solve(problem.without(variable, chosen[variable]), objective, Effort(steps=2_000, tie_steps=500)).chosen
    except InfeasibleError:
        return None


def _moved(problem: Problem, chosen: list[int], variable: int, objective: Objective) -> list[int] | None:
    """Give the best placement that differs in one variable alone."""
    trials = []
    for site in range(len(problem.sites)):
        if site != chosen[variable]:
            trial = list(chosen)
            trial[variable] = site
            if problem.allows(trial):
                trials.append(trial)
    return min(trials, key=lambda trial: problem.estimate(trial).key(objective), default=None)


__all__ = ["next_best"]
