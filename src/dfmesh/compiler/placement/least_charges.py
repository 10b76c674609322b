"""The placement of least charges within a limit of seconds, with its proof."""

from __future__ import annotations

from dfmesh.compiler.placement.attempt import MANY, Attempt
from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.problem import Flags
from dfmesh.compiler.placement.relaxation import Relaxation
from dfmesh.compiler.placement.schedule import Neighbours
from dfmesh.compiler.placement.search import Search

PASSES = 2_000
"""Batches of variables that a bound of charges may pass over, in one direction."""

ENTRIES = 60_000_000
"""Table entries that a bound of charges may pass over."""


def least_charges(
    attempt: Attempt, chosen: list[int], charges: Charges, limit: float, budget: int
) -> tuple[list[int], int, bool]:
    """Give a placement of least charges within a limit of seconds, a lower bound, and whether it is proven."""
    problem = attempt.problem
    sweeps = attempt.effort.sweeps // (3 if len(problem.variable) > MANY else 1)
    chosen = attempt.scheduler.improve(chosen, Neighbours(problem, charges), limit, sweeps)
    total = charges.total(problem, chosen)
    domain = attempt.windows.tighten(attempt.domain, limit)
    if domain is None:
        domain = attempt.domain
    if not attempt.searched:
        messages = Messages(problem, charges, attempt.free_order, domain)
        messages.forward(None)
        messages.backward(None, everything=True)
        return chosen, min(messages.bound, total), messages.bound >= total
    relaxation = relax(attempt, charges, domain, total, limit)
    if relaxation.base >= total:
        return chosen, total, True
    relaxation.lean_back()
    search = Search(
        problem,
        relaxation,
        charges.shipping.tolist(),
        attempt.order,
        attempt.windows.best(domain)[1],
        limit=limit,
        goal_seconds=False,
        longest=attempt.windows.longest(domain),
        budget=budget,
    )
    search.run()
    attempt.steps += search.steps
    return search.best or chosen, relaxation.base, search.complete


def relax(attempt: Attempt, charges: Charges, domain: Flags, ceiling: int, limit: float) -> Relaxation:
    """Bound what is below a ceiling, within a limit of seconds."""
    relaxation = Relaxation(attempt.problem, charges, attempt.order, domain, ceiling, timed=True)
    relaxation.forbid_slow(*attempt.windows.best(domain), limit)
    most = attempt.effort.tie_rounds
    rounds = min(most, ENTRIES // (2 * relaxation.tables.size + 1), PASSES // relaxation.batches)
    relaxation.ascend(rounds, even_out=True)
    return relaxation


__all__ = ["least_charges", "relax"]
