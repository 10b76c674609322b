"""What the next best site of each variable would cost."""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.charges import charge
from dfmesh.compiler.placement.objective import Objective
from dfmesh.compiler.placement.plan import Alternative
from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler, allowed_sites, rules_of
from dfmesh.compiler.placement.solver import Effort, InfeasibleError, solve
from dfmesh.compiler.placement.wide import WIDE

LOOKED_AT = 4
"""Sites, best first as far as can be seen from the neighbours, for which the whole is added up."""

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
    replaced = len(problem.variable) <= REPLACED and len(problem.sites) <= WIDE
    moving = _Moving(problem, chosen, objective)
    for variable, members in enumerate(problem.members):
        if problem.domain[variable].sum() < 2:
            continue
        other = _placed_anew(problem, chosen, variable, objective) if replaced else None
        other = other or moving.moved(variable)
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


class _Moving:
    """Finds the best placement that differs in one variable alone."""

    def __init__(self, problem: Problem, chosen: list[int], objective: Objective) -> None:
        self._problem = problem
        self._chosen = chosen
        self._objective = objective
        self._scheduler = Scheduler(problem)
        self._rules = rules_of(problem)
        self._ends = problem.finishes(chosen)
        self._tails = problem.following(chosen)
        self._neighbours = Neighbours(problem, charge(problem, objective, tie_breaks=False))

    def moved(self, variable: int) -> list[int] | None:
        allowed = allowed_sites(self._problem, self._rules, variable, self._chosen)
        allowed[self._chosen[variable]] = False
        sites = np.flatnonzero(allowed)
        seconds = self._scheduler.late(variable, self._chosen, self._ends, self._tails)[sites]
        # What is not on the longest path makes no difference to the whole.
        seconds = np.maximum(seconds, max(self._ends, default=0.0))
        charges = self._neighbours.at(variable, self._chosen)[sites]
        criteria = (charges, seconds) if self._objective is Objective.TIME else (seconds, charges)
        trials = []
        for site in sites[np.lexsort((sites, *criteria))[:LOOKED_AT]].tolist():
            trial = list(self._chosen)
            trial[variable] = site
            trials.append(trial)
        return min(trials, key=lambda trial: self._problem.estimate(trial).key(self._objective), default=None)


__all__ = ["next_best"]
