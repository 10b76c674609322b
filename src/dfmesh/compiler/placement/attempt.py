"""What the search for a placement starts with, whatever it is to be good at."""

from __future__ import annotations

from dataclasses import dataclass

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.consistency import consistent
from dfmesh.compiler.placement.ordering import decoupling_order, search_order
from dfmesh.compiler.placement.plan import Certificate
from dfmesh.compiler.placement.problem import Flags, Problem
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler
from dfmesh.compiler.placement.windows import Windows, keep_residency

SEARCHED = 250
"""Variables up to which there is a search tree; one level each, on Python's stack."""

MANY = 600
"""Nodes above which less is tried, so that compiling stays quick."""

TRIALS = 50_000
"""Choices that are tried to find some placement under the rules."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much may be done, in steps, so that the clock decides nothing.

    Attributes:
        steps: Choices that the search tree for the objective itself may look at.
        tie_steps: Choices that those for the criteria that decide between equals may look at.
        tie_rounds: Rounds of a bound of those criteria.
        sweeps: Variables that local search may look at.
    """

    steps: int = 20_000
    tie_steps: int = 3_000
    tie_rounds: int = 12
    sweeps: int = 4_000


@dataclass(slots=True)
class Solution:
    """A placement with what is proven about it, one site per variable."""

    chosen: list[int]
    certificate: Certificate


class InfeasibleError(Exception):
    """The rules of a problem leave no placement; only used inside the compiler."""


def some_placement(problem: Problem, domain: Flags) -> list[int]:
    """Give some placement that keeps the rules.

    Raises:
        InfeasibleError: there is none, or none was found.
    """
    rules = {
        pair: {site: row for site, row in enumerate(allowed) if not row.all()}
        for pair, allowed in problem.residency.items()
    }
    found = consistent(dict(enumerate(domain)), rules, TRIALS).sites
    if found is None:
        raise InfeasibleError
    return [found[variable] for variable in range(len(domain))]


class Attempt:
    """A problem with what all searches need.

    Attributes:
        problem: What is placed.
        effort: How much may be done.
        windows: When nodes can end.
        scheduler: Makes and improves placements.
        order: Of the variables, for searches that look at seconds.
        free_order: The same for those that look at charges alone.
        searched: Whether there are few enough variables for a search tree.
        steps: Choices looked at in search trees so far.
        domain: Sites that the rules leave, `[variable, site]`.

    Raises:
        InfeasibleError: the rules leave none.
    """

    def __init__(self, problem: Problem, effort: Effort) -> None:
        self.problem = problem
        self.effort = effort
        self.windows = Windows(problem)
        self.scheduler = Scheduler(problem)
        self.order = search_order(problem)
        self.free_order = decoupling_order(problem)
        self.searched = len(self.order) <= SEARCHED
        self.steps = 0
        self.domain = problem.domain.copy()
        if not keep_residency(problem, self.domain):
            raise InfeasibleError

    def start(self, charges: Charges) -> list[int]:
        """Give some placement of few charges that keeps the rules."""
        heads, tails = self.windows.best(self.domain)
        chosen = self.scheduler.dive(self.domain, heads, tails, Neighbours(self.problem, charges))
        if chosen is None:
            chosen = some_placement(self.problem, self.domain)
        return chosen


__all__ = ["MANY", "Attempt", "Effort", "InfeasibleError", "Solution", "some_placement"]
