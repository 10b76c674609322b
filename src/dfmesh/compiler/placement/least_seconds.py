"""The placement of least seconds, alone or among those of least charges, with its proof."""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.attempt import MANY, Attempt
from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.closing import Closing
from dfmesh.compiler.placement.diving import diving_order
from dfmesh.compiler.placement.least_charges import relax
from dfmesh.compiler.placement.mirror import mirrored
from dfmesh.compiler.placement.problem import Flags, Floats
from dfmesh.compiler.placement.propagation import Propagation
from dfmesh.compiler.placement.relaxation import Relaxation
from dfmesh.compiler.placement.schedule import Neighbours, Scheduler
from dfmesh.compiler.placement.search import Search
from dfmesh.compiler.placement.windows import NANOSECOND, Joins, Windows

PROBES = 8
"""Limits of seconds that are tried out on the way to the least possible."""

FEW_PROBES = 6
"""The same for more than `MANY` nodes."""

WORK = 100_000
"""Edges that closing the gap of seconds may update."""

LESS_WORK = 30_000
"""The same for more than `MANY` nodes."""


def least_seconds(
    attempt: Attempt, chosen: list[int], domain: Flags, charged: tuple[Charges, int] | None
) -> tuple[list[int], float, bool]:
    """Give a placement of least seconds, within a total of charges, a lower bound, and whether it is proven."""
    relaxation = None
    if charged is not None and attempt.searched:
        relaxation = relax(attempt, charged[0], domain, charged[1] + 1, attempt.problem.seconds(chosen))
        domain = relaxation.domain
    if charged is not None and not attempt.searched:
        return _better(attempt, chosen, chosen, charged), attempt.windows.bound(domain), False
    heads, tails, joins = attempt.windows.looking_ahead(domain)
    bound = attempt.windows.bound(domain, heads, tails)
    chosen = _better(attempt, chosen, chosen, charged)
    if not attempt.searched:
        if attempt.problem.seconds(chosen) > bound + NANOSECOND / 2:
            chosen, bound = _close_in(attempt, chosen, bound, domain, (heads, tails, joins))
        best = attempt.problem.seconds(chosen)
        return chosen, min(bound, best), best <= bound + NANOSECOND / 2
    if attempt.problem.seconds(chosen) > bound + NANOSECOND / 2:
        found = attempt.scheduler.dive(domain, heads, tails, 0.0, None, joins)
        chosen = _better(attempt, chosen, found, charged)
    if attempt.problem.seconds(chosen) > bound + NANOSECOND / 2:
        chosen = _better(attempt, chosen, _dive_back(attempt, domain), charged)
    chosen, bound = _probe(attempt, chosen, domain, bound, charged)
    best = attempt.problem.seconds(chosen)
    if best <= bound + NANOSECOND / 2:
        return chosen, best, True
    tight = attempt.windows.tighten(domain, best - NANOSECOND)
    if tight is None:
        return chosen, best, True
    return _search_seconds(attempt, chosen, tight, bound, relaxation, charged)


def _close_in(
    attempt: Attempt, chosen: list[int], bound: float, domain: Flags, ahead: tuple[Floats, Floats, Joins]
) -> tuple[list[int], float]:
    """Give a better placement and a higher bound, without a search tree."""
    heads, tails, joins = ahead
    propagation = Propagation(attempt.problem, [np.flatnonzero(may) for may in domain])
    propagation.sharpen(heads, tails)
    closing = Closing(
        attempt.problem, chosen, attempt.problem.seconds(chosen), bound, lambda plan: _hasten(attempt, plan)
    )
    work = LESS_WORK if len(attempt.problem.variable) > MANY else WORK
    closing.run(propagation, diving_order(attempt.problem, joins), work=work)
    return closing.chosen, closing.bound


def _hasten(attempt: Attempt, chosen: list[int]) -> list[int]:
    return attempt.scheduler.hasten(chosen, attempt.effort.sweeps)


def _search_seconds(
    attempt: Attempt,
    chosen: list[int],
    domain: Flags,
    bound: float,
    relaxation: Relaxation | None,
    charged: tuple[Charges, int] | None,
) -> tuple[list[int], float, bool]:
    if relaxation is None:
        relaxation = Relaxation(attempt.problem, None, attempt.order, domain, 1)
    else:
        for variable, site in zip(*np.nonzero(relaxation.domain & ~domain), strict=True):
            relaxation.remove(int(variable), int(site))
        relaxation.lean_back()
    search = Search(
        attempt.problem,
        relaxation,
        None if charged is None else charged[0].shipping.tolist(),
        attempt.order,
        attempt.windows.best(domain)[1],
        limit=attempt.problem.seconds(chosen) - NANOSECOND,
        floor=bound + NANOSECOND / 2,
        goal_seconds=True,
        budget=attempt.effort.steps if charged is None else attempt.effort.tie_steps,
    )
    search.run()
    attempt.steps += search.steps
    return search.best or chosen, bound, search.complete


def _probe(
    attempt: Attempt, chosen: list[int], domain: Flags, bound: float, charged: tuple[Charges, int] | None
) -> tuple[list[int], float]:
    """Try limits between bound and best: some raise the bound, in some a better placement is found."""
    best = attempt.problem.seconds(chosen)
    neighbours = None if charged is None else Neighbours(attempt.problem, charged[0])
    target, open_to = bound, best
    for _ in range(FEW_PROBES if len(attempt.problem.variable) > MANY else PROBES):
        if best <= bound + NANOSECOND / 2 or open_to <= bound + NANOSECOND:
            break
        tight = attempt.windows.tighten(domain, target)
        if tight is None:
            bound = target
        else:
            open_to = target
            bound = max(bound, attempt.windows.bound(tight))
            found = _dive_in(attempt, tight, target, neighbours)
            chosen = _better(attempt, chosen, found, charged)
            best = attempt.problem.seconds(chosen)
        open_to = min(open_to, best)
        target = (bound + open_to) / 2
    return chosen, bound


def _dive_in(attempt: Attempt, domain: Flags, limit: float, neighbours: Neighbours | None) -> list[int] | None:
    heads, tails = attempt.windows.best(domain)
    return attempt.scheduler.dive(domain, heads, tails, limit, neighbours)


def _dive_back(attempt: Attempt, domain: Flags) -> list[int] | None:
    """Fix receivers before senders."""
    other, ordered = mirrored(attempt.problem)
    domain = domain[ordered]
    heads, tails, joins = Windows(other).looking_ahead(domain)
    found = Scheduler(other).dive(domain, heads, tails, 0.0, None, joins)
    if found is None:
        return None
    chosen = [0] * len(found)
    for variable, site in zip(ordered, found, strict=True):
        chosen[variable] = site
    return chosen


def _better(
    attempt: Attempt, chosen: list[int], other: list[int] | None, charged: tuple[Charges, int] | None
) -> list[int]:
    """Give the one of two placements that takes less time, the other made faster, if that keeps the charges."""
    if other is None or not attempt.problem.allows(other):
        return chosen
    other = attempt.scheduler.hasten(other, attempt.effort.sweeps)
    if charged is not None and charged[0].total(attempt.problem, other) > charged[1]:
        return chosen
    return other if attempt.problem.seconds(other) < attempt.problem.seconds(chosen) else chosen


__all__ = ["least_seconds"]
