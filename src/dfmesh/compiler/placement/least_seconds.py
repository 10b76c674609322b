"""The placement of least seconds, alone or among those of least charges, with its proof."""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.attempt import MANY, Attempt, some_placement
from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.closing import Closing
from dfmesh.compiler.placement.descent import Descent
from dfmesh.compiler.placement.least_charges import relax
from dfmesh.compiler.placement.propagation import Propagation
from dfmesh.compiler.placement.relaxation import Relaxation
from dfmesh.compiler.placement.search import Search
from dfmesh.compiler.placement.windows import NANOSECOND

FINE, COARSE = 0.001, 0.002
"""Gap, as a share, below which it is not worth more work in problems too large for a search tree, and for `MANY`."""

WORK = 5
"""Edges that may be updated per step of the effort."""

LESS = 0.35
"""Share of the effort that is made for more than `MANY` nodes."""


def least_seconds(attempt: Attempt) -> tuple[list[int], float, bool]:
    """Give a placement of least seconds, a lower bound, and whether it is proven."""
    problem, windows, domain = attempt.problem, attempt.windows, attempt.domain
    heads, tails = windows.once(domain)
    propagation = Propagation(problem, [np.flatnonzero(may) for may in domain])
    propagation.sharpen(heads, tails)
    chosen = Descent(propagation).completed()
    if chosen is None or not problem.allows(chosen):
        chosen = some_placement(problem, domain)
    chosen = _hasten(attempt, chosen)
    bound, work, fine = windows.bound(domain, heads, tails), WORK * attempt.effort.steps, FINE
    if len(problem.variable) > MANY:
        work, fine = int(LESS * work), COARSE
    closing = Closing(
        problem,
        chosen,
        problem.seconds(chosen),
        bound,
        lambda plan: _hasten(attempt, plan),
        fine=0.0 if attempt.searched else fine,
    )
    closing.run(propagation, work=work)
    attempt.steps += closing.steps
    is_proven = closing.seconds <= closing.bound + NANOSECOND / 2
    if not is_proven and attempt.searched and problem.limited:  # Who is where matters more than in which order.
        relaxation = Relaxation(problem, None, attempt.order, domain, 1)
        return _search(attempt, closing.chosen, closing.bound, relaxation, None, attempt.effort.steps)
    return closing.chosen, closing.seconds if is_proven else min(closing.bound, closing.seconds), is_proven


def least_seconds_within(
    attempt: Attempt, chosen: list[int], charges: Charges, total: int
) -> tuple[list[int], float, bool]:
    """The same among placements that are charged no more than a total; one of them is given."""
    problem, windows = attempt.problem, attempt.windows
    hastened = _hasten(attempt, chosen)
    if charges.total(problem, hastened) <= total:
        chosen = hastened
    if not attempt.searched:
        return chosen, windows.bound(attempt.domain), False
    relaxation = relax(attempt, charges, attempt.domain, total + 1, problem.seconds(chosen))
    bound = windows.bound(relaxation.domain)
    return _search(attempt, chosen, bound, relaxation, charges, attempt.effort.tie_steps)


def _search(
    attempt: Attempt, chosen: list[int], bound: float, relaxation: Relaxation, charges: Charges | None, budget: int
) -> tuple[list[int], float, bool]:
    problem, windows = attempt.problem, attempt.windows
    best = problem.seconds(chosen)
    tight = windows.tighten(relaxation.domain, best - NANOSECOND)
    if best <= bound + NANOSECOND / 2 or tight is None:
        return chosen, best, True
    for variable, site in zip(*np.nonzero(relaxation.domain & ~tight), strict=True):
        relaxation.remove(int(variable), int(site))
    relaxation.lean_back()
    search = Search(
        problem,
        relaxation,
        None if charges is None else charges.shipping.tolist(),
        attempt.order,
        windows.best(tight)[1],
        limit=best - NANOSECOND,
        floor=bound + NANOSECOND / 2,
        goal_seconds=True,
        budget=budget,
    )
    search.run()
    attempt.steps += search.steps
    return search.best or chosen, bound, search.complete


def _hasten(attempt: Attempt, chosen: list[int]) -> list[int]:
    return attempt.scheduler.hasten(chosen, attempt.effort.sweeps)


__all__ = ["least_seconds", "least_seconds_within"]
