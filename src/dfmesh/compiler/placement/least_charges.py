"""The placement of least charges, alone or within a limit of seconds, with its proof."""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.attempt import MANY, Attempt
from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.cheapening import Cheapening
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.problem import Flags
from dfmesh.compiler.placement.relaxation import Relaxation
from dfmesh.compiler.placement.schedule import Neighbours
from dfmesh.compiler.placement.search import Search
from dfmesh.compiler.placement.sweeping import ROUNDS, Swept, sweep

SWEPT, CROWDED = 120, 24
"""Variables up to which open ends are swept over in any case; above, if no shipment has as many takers."""

LESS = 0.4
"""Share of the effort for charges that is made for more than `MANY` nodes."""

PASSES = 2_000
"""Batches of variables that a bound of charges may pass over, in one direction."""

ENTRIES = 60_000_000
"""Table entries that a bound of charges may pass over."""


def least_charges(
    attempt: Attempt, chosen: list[int], charges: Charges, limit: float, budget: int
) -> tuple[list[int], int, bool]:
    """Give a placement of least charges within a limit of seconds, a lower bound, and whether it is proven."""
    problem = attempt.problem
    neighbours = Neighbours(problem, charges)
    chosen = attempt.scheduler.improve(chosen, neighbours, limit, attempt.effort.sweeps)
    total = charges.total(problem, chosen)
    if not attempt.searched and not np.isfinite(limit):
        cheapening = Cheapening(problem, charges, chosen, total)
        cheapening.run(attempt.free_order, attempt.domain, LESS if len(problem.variable) > MANY else 1.0)
        return cheapening.chosen, cheapening.bound, cheapening.bound >= cheapening.total
    domain = attempt.windows.tighten(attempt.domain, limit) if np.isfinite(limit) else attempt.domain
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
    known = 0
    if not np.isfinite(limit) and _can_be_swept(attempt):
        swept = sweep(problem, charges, Swept(chosen, total, relaxation.base), relaxation, budget)
        attempt.steps += swept.steps
        if swept.bound >= swept.total:
            return swept.chosen, swept.bound, True
        chosen, known = swept.chosen, swept.bound
        relaxation.reorder(attempt.free_order)
        relaxation.lower_ceiling(swept.total)
        relaxation.ascend(ROUNDS, even_out=True)
    relaxation.lean_back()
    search = Search(
        problem,
        relaxation,
        charges.shipping.tolist(),
        attempt.order if np.isfinite(limit) else attempt.free_order,
        attempt.windows.best(domain)[1] if np.isfinite(limit) else np.zeros_like(problem.compute),
        limit=limit,
        goal_seconds=False,
        longest=attempt.windows.longest(domain) if np.isfinite(limit) else None,
        budget=budget,
    )
    search.run()
    attempt.steps += search.steps
    return search.best or chosen, max(known, relaxation.base), search.complete


def _can_be_swept(attempt: Attempt) -> bool:
    """Tell whether sweeping over the open ends takes no longer than a search."""
    takers = max((len(shipment.consumers) for shipment in attempt.problem.shipments), default=0)
    return len(attempt.order) <= SWEPT or takers < CROWDED


def relax(attempt: Attempt, charges: Charges, domain: Flags, ceiling: int, limit: float = np.inf) -> Relaxation:
    """Bound what is below a ceiling, within a limit of seconds."""
    timed = bool(np.isfinite(limit))
    order = attempt.order if timed else attempt.free_order
    relaxation = Relaxation(attempt.problem, charges, order, domain, ceiling, timed=timed)
    if timed:
        relaxation.forbid_slow(*attempt.windows.best(domain), limit)
    rounds = min(40, ENTRIES // (2 * relaxation.tables.size + 1), PASSES // relaxation.batches)
    relaxation.ascend(rounds, even_out=True)
    return relaxation


__all__ = ["least_charges", "relax"]
