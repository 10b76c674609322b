"""Solving a placement problem: one criterion after the other, each with its proof."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dfmesh.compiler.placement.charges import Charges, charge
from dfmesh.compiler.placement.cheapening import Cheapening
from dfmesh.compiler.placement.closing import Closing
from dfmesh.compiler.placement.consistency import consistent
from dfmesh.compiler.placement.diving import diving_order
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.mirror import mirrored
from dfmesh.compiler.placement.objective import Objective
from dfmesh.compiler.placement.ordering import decoupling_order, search_order
from dfmesh.compiler.placement.plan import SECOND_DIGITS, Certificate
from dfmesh.compiler.placement.problem import Flags, Floats, Problem
from dfmesh.compiler.placement.propagation import Propagation
from dfmesh.compiler.placement.relaxation import Relaxation
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler
from dfmesh.compiler.placement.search import Search
from dfmesh.compiler.placement.sweeping import ROUNDS, Swept, sweep
from dfmesh.compiler.placement.wide import WIDE, place_wide
from dfmesh.compiler.placement.windows import NANOSECOND, Joins, Windows, keep_residency

SEARCHED = 250
"""Variables up to which there is a search tree; one level each, on Python's stack."""

SWEPT, CROWDED = 120, 24
"""Variables up to which open ends are swept over in any case; above, if no shipment has as many takers."""

PROBES = 8
"""Limits of seconds that are tried out on the way to the least possible."""

FEW_PROBES = 6
"""The same for more than `MANY` nodes."""

MANY = 600
"""Nodes above which less is tried, so that compiling stays quick."""

TRIALS = 50_000
"""Choices that are tried to find some placement under the rules."""

WORK = 100_000
"""Edges that closing the gap of seconds may update."""

LESS_WORK = 30_000
"""The same for more than `MANY` nodes."""

LESS = 0.4
"""Share of the effort for charges that is made for more than `MANY` nodes."""

PASSES = 2_000
"""Batches of variables that a bound of charges may pass over, in one direction."""

ENTRIES = 60_000_000
"""Table entries that a bound of charges may pass over."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much may be done, in steps, so that the clock decides nothing.

    Attributes:
        steps: Choices that the search tree for the objective itself may look at.
        tie_steps: Choices that those for the criteria that decide between equals may look at.
        sweeps: Variables that local search may look at.
    """

    steps: int = 20_000
    tie_steps: int = 3_000
    sweeps: int = 4_000


@dataclass(slots=True)
class Solution:
    """A placement with what is proven about it, one site per variable."""

    chosen: list[int]
    certificate: Certificate


class InfeasibleError(Exception):
    """The rules of a problem leave no placement; only used inside the compiler."""


def solve(problem: Problem, objective: Objective, effort: Effort) -> Solution:
    """Find a best placement.

    Raises:
        InfeasibleError: the rules leave none.
    """
    if len(problem.sites) > WIDE:
        return _solve_wide(problem, objective)
    return _Solver(problem, objective, effort).solve()


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


def _solve_wide(problem: Problem, objective: Objective) -> Solution:
    domain = problem.domain.copy()
    if not keep_residency(problem, domain):
        raise InfeasibleError
    return Solution(*place_wide(replace(problem, domain=domain), objective, some_placement(problem, domain)))


class _Solver:
    def __init__(self, problem: Problem, objective: Objective, effort: Effort) -> None:
        self.problem = problem
        self.objective = objective
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

    def solve(self) -> Solution:
        if self.objective is Objective.TIME:
            return self.time_first()
        return self.charges_first()

    # Seconds first, then bytes and the rest in one

    def time_first(self) -> Solution:
        chosen, bound, complete = self.least_seconds(self.start(), self.domain, None)
        limit = self.problem.seconds(chosen)
        charges = charge(self.problem, Objective.TIME, tie_breaks=True)
        chosen, least, complete_charges = self.least_charges(chosen, charges, limit, self.effort.tie_steps)
        estimate = self.problem.estimate(chosen)
        moved = estimate.bytes_moved
        certificate = Certificate(
            self.objective,
            cost=estimate.seconds,
            bound=estimate.seconds if complete else min(round(bound, SECOND_DIGITS), estimate.seconds),
            tie_break=moved,
            tie_break_bound=moved if complete_charges else min(charges.first(least), moved),
            complete=complete and complete_charges,
            steps=self.steps,
        )
        return Solution(chosen, certificate)

    # Charges first, then seconds, then the tie-breaks

    def charges_first(self) -> Solution:
        problem = self.problem
        charges = charge(problem, self.objective, tie_breaks=False)
        chosen, least, complete = self.least_charges(self.start(charges), charges, np.inf, self.effort.steps)
        total = charges.total(problem, chosen)
        chosen, bound, complete_seconds = self.least_seconds(chosen, self.domain, (charges, total))
        limit = problem.seconds(chosen)
        both = charge(problem, self.objective, tie_breaks=True)
        chosen, _, complete_ties = self.least_charges(chosen, both, limit, self.effort.tie_steps)
        estimate = problem.estimate(chosen)
        cost = estimate.bytes_moved if self.objective is Objective.BYTES else estimate.money
        certificate = Certificate(
            self.objective,
            cost=cost,
            bound=cost if complete else min(charges.first(least), cost),
            tie_break=estimate.seconds,
            tie_break_bound=estimate.seconds if complete_seconds else min(bound, estimate.seconds),
            complete=complete and complete_seconds and complete_ties,
            steps=self.steps,
        )
        return Solution(chosen, certificate)

    # Parts

    def start(self, charges: Charges | None = None) -> list[int]:
        """Give some placement that keeps the rules."""
        heads, tails = self.windows.best(self.domain)
        neighbours = None if charges is None else Neighbours(self.problem, charges)
        limit = 0.0 if charges is None else np.inf
        chosen = self.scheduler.dive(self.domain, heads, tails, limit, neighbours)
        if chosen is None:
            chosen = self.any_placement()
        return chosen

    def any_placement(self) -> list[int]:
        return some_placement(self.problem, self.domain)

    def least_seconds(
        self, chosen: list[int], domain: Flags, charged: tuple[Charges, int] | None
    ) -> tuple[list[int], float, bool]:
        """Give a placement of least seconds, within a total of charges, a lower bound, and whether it is proven."""
        relaxation = None
        if charged is not None and self.searched:
            relaxation = self.relaxation(charged[0], domain, charged[1] + 1, self.problem.seconds(chosen))
            domain = relaxation.domain
        if charged is not None and not self.searched:
            return self.better(chosen, chosen, charged), self.windows.bound(domain), False
        heads, tails, joins = self.windows.looking_ahead(domain)
        bound = self.windows.bound(domain, heads, tails)
        chosen = self.better(chosen, chosen, charged)
        if not self.searched:
            if self.problem.seconds(chosen) > bound + NANOSECOND / 2:
                chosen, bound = self.close_in(chosen, bound, domain, (heads, tails, joins))
            best = self.problem.seconds(chosen)
            return chosen, min(bound, best), best <= bound + NANOSECOND / 2
        if self.problem.seconds(chosen) > bound + NANOSECOND / 2:
            found = self.scheduler.dive(domain, heads, tails, 0.0, None, joins)
            chosen = self.better(chosen, found, charged)
        if self.problem.seconds(chosen) > bound + NANOSECOND / 2:
            chosen = self.better(chosen, self.dive_back(domain), charged)
        chosen, bound = self.probe(chosen, domain, bound, charged)
        best = self.problem.seconds(chosen)
        if best <= bound + NANOSECOND / 2:
            return chosen, best, True
        tight = self.windows.tighten(domain, best - NANOSECOND)
        if tight is None:
            return chosen, best, True
        return self.search_seconds(chosen, tight, bound, relaxation, charged)

    def close_in(
        self, chosen: list[int], bound: float, domain: Flags, ahead: tuple[Floats, Floats, Joins]
    ) -> tuple[list[int], float]:
        """Give a better placement and a higher bound, without a search tree."""
        heads, tails, joins = ahead
        propagation = Propagation(self.problem, [np.flatnonzero(may) for may in domain])
        propagation.sharpen(heads, tails)
        closing = Closing(self.problem, chosen, self.problem.seconds(chosen), bound, self.hasten)
        work = LESS_WORK if len(self.problem.variable) > MANY else WORK
        closing.run(propagation, diving_order(self.problem, joins), work=work)
        return closing.chosen, closing.bound

    def hasten(self, chosen: list[int]) -> list[int]:
        return self.scheduler.hasten(chosen, self.effort.sweeps)

    def search_seconds(
        self,
        chosen: list[int],
        domain: Flags,
        bound: float,
        relaxation: Relaxation | None,
        charged: tuple[Charges, int] | None,
    ) -> tuple[list[int], float, bool]:
        if relaxation is None:
            relaxation = Relaxation(self.problem, None, self.order, domain, 1)
        else:
            for variable, site in zip(*np.nonzero(relaxation.domain & ~domain), strict=True):
                relaxation.remove(int(variable), int(site))
            relaxation.lean_back()
        search = Search(
            self.problem,
            relaxation,
            None if charged is None else charged[0].shipping.tolist(),
            self.order,
            self.windows.best(domain)[1],
            limit=self.problem.seconds(chosen) - NANOSECOND,
            floor=bound + NANOSECOND / 2,
            goal_seconds=True,
            budget=self.effort.steps if charged is None else self.effort.tie_steps,
        )
        search.run()
        self.steps += search.steps
        return search.best or chosen, bound, search.complete

    def probe(
        self, chosen: list[int], domain: Flags, bound: float, charged: tuple[Charges, int] | None
    ) -> tuple[list[int], float]:
        """Try limits between bound and best: some raise the bound, in some a better placement is found."""
        best = self.problem.seconds(chosen)
        neighbours = None if charged is None else Neighbours(self.problem, charged[0])
        target, open_to = bound, best
        for _ in range(FEW_PROBES if len(self.problem.variable) > MANY else PROBES):
            if best <= bound + NANOSECOND / 2 or open_to <= bound + NANOSECOND:
                break
            tight = self.windows.tighten(domain, target)
            if tight is None:
                bound = target
            else:
                open_to = target
                bound = max(bound, self.windows.bound(tight))
                found = self.dive_in(tight, target, neighbours)
                chosen = self.better(chosen, found, charged)
                best = self.problem.seconds(chosen)
            open_to = min(open_to, best)
            target = (bound + open_to) / 2
        return chosen, bound

    def dive_in(self, domain: Flags, limit: float, neighbours: Neighbours | None) -> list[int] | None:
        heads, tails = self.windows.best(domain)
        return self.scheduler.dive(domain, heads, tails, limit, neighbours)

    def dive_back(self, domain: Flags) -> list[int] | None:
        """Fix receivers before senders."""
        other, ordered = mirrored(self.problem)
        domain = domain[ordered]
        heads, tails, joins = Windows(other).looking_ahead(domain)
        found = Scheduler(other).dive(domain, heads, tails, 0.0, None, joins)
        if found is None:
            return None
        chosen = [0] * len(found)
        for variable, site in zip(ordered, found, strict=True):
            chosen[variable] = site
        return chosen

    def better(self, chosen: list[int], other: list[int] | None, charged: tuple[Charges, int] | None) -> list[int]:
        """Give the one of two placements that takes less time, the other made faster, if that keeps the charges."""
        if other is None or not self.problem.allows(other):
            return chosen
        other = self.scheduler.hasten(other, self.effort.sweeps)
        if charged is not None and charged[0].total(self.problem, other) > charged[1]:
            return chosen
        return other if self.problem.seconds(other) < self.problem.seconds(chosen) else chosen

    def least_charges(
        self, chosen: list[int], charges: Charges, limit: float, budget: int
    ) -> tuple[list[int], int, bool]:
        """Give a placement of least charges within a limit of seconds, a lower bound, and whether it is proven."""
        problem = self.problem
        neighbours = Neighbours(problem, charges)
        chosen = self.scheduler.improve(chosen, neighbours, limit, self.effort.sweeps)
        total = charges.total(problem, chosen)
        if not self.searched and not np.isfinite(limit):
            cheapening = Cheapening(problem, charges, chosen, total)
            cheapening.run(self.free_order, self.domain, LESS if len(problem.variable) > MANY else 1.0)
            return cheapening.chosen, cheapening.bound, cheapening.bound >= cheapening.total
        domain = self.windows.tighten(self.domain, limit) if np.isfinite(limit) else self.domain
        if domain is None:
            domain = self.domain
        if not self.searched:
            messages = Messages(problem, charges, self.free_order, domain)
            messages.forward(None)
            messages.backward(None, everything=True)
            return chosen, min(messages.bound, total), messages.bound >= total
        relaxation = self.relaxation(charges, domain, total, limit)
        if relaxation.base >= total:
            return chosen, total, True
        known = 0
        if not np.isfinite(limit) and self.can_be_swept():
            swept = sweep(problem, charges, Swept(chosen, total, relaxation.base), relaxation, budget)
            self.steps += swept.steps
            if swept.bound >= swept.total:
                return swept.chosen, swept.bound, True
            chosen, known = swept.chosen, swept.bound
            relaxation.reorder(self.free_order)
            relaxation.lower_ceiling(swept.total)
            relaxation.ascend(ROUNDS, even_out=True)
        relaxation.lean_back()
        search = Search(
            problem,
            relaxation,
            charges.shipping.tolist(),
            self.order if np.isfinite(limit) else self.free_order,
            self.windows.best(domain)[1] if np.isfinite(limit) else np.zeros_like(problem.compute),
            limit=limit,
            goal_seconds=False,
            longest=self.windows.longest(domain) if np.isfinite(limit) else None,
            budget=budget,
        )
        search.run()
        self.steps += search.steps
        return search.best or chosen, max(known, relaxation.base), search.complete

    def can_be_swept(self) -> bool:
        """Tell whether sweeping over the open ends takes no longer than a search."""
        takers = max((len(shipment.consumers) for shipment in self.problem.shipments), default=0)
        return len(self.order) <= SWEPT or takers < CROWDED

    def relaxation(self, charges: Charges, domain: Flags, ceiling: int, limit: float = np.inf) -> Relaxation:
        timed = bool(np.isfinite(limit))
        order = self.order if timed else self.free_order
        relaxation = Relaxation(self.problem, charges, order, domain, ceiling, timed=timed)
        if timed:
            relaxation.forbid_slow(*self.windows.best(domain), limit)
        rounds = min(40, ENTRIES // (2 * relaxation.tables.size + 1), PASSES // relaxation.batches)
        relaxation.ascend(rounds, even_out=True)
        return relaxation


__all__ = ["Effort", "InfeasibleError", "Solution", "solve"]
