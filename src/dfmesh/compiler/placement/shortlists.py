"""Few sites per variable where a federation has very many, and what stands for all the others in a bound.

An operation keeps the sites that offer it. A node that may be anywhere is looked at where its neighbours may be, and
at the homesite. Every list that leaves something out gets one more site in the problem a bound is found for:
*elsewhere*, as near to every other site and as fast as the best of those left out. So the bound holds for all sites.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.ordering import neighbourhood
from dfmesh.compiler.placement.problem import Flags, Floats, Problem

LISTED = 64
"""Sites of one variable from which on only the best are kept."""


def shortlists(problem: Problem, prefer: Floats) -> Flags:
    """Choose the sites that are looked at for each variable, `[variable, site]`.

    Args:
        problem: The problem; its domains are respected.
        prefer: What a site costs a variable by itself, `[variable, site]`; the least are kept.
    """
    count, sites = problem.domain.shape
    offered = problem.domain.sum(1)
    free = offered == sites
    listed = np.zeros((count, sites), np.bool_)
    for variable in range(count):
        if not free[variable]:
            listed[variable] = _least(problem.domain[variable], prefer[variable])
    near = neighbourhood(problem)
    waiting = [variable for variable in range(count) if free[variable]]
    while waiting:
        known = [variable for variable in waiting if any(listed[other].any() for other in near[variable])]
        found: dict[int, Flags] = {variable: np.logical_or.reduce(listed[sorted(near[variable])]) for variable in known}
        if not found:
            found = {variable: np.zeros(sites, np.bool_) for variable in waiting}
        for variable, where in found.items():
            where[problem.home] = True
            cheapest = int(prefer[variable].argmin())
            where[cheapest] = True
            listed[variable] = _least(where, prefer[variable])
        waiting = [variable for variable in waiting if variable not in found]
    return listed


def _least(allowed: Flags, prefer: Floats) -> Flags:
    if allowed.sum() <= LISTED:
        return allowed
    order = np.argsort(np.where(allowed, prefer, np.inf), kind="stable")[:LISTED]
    kept = np.zeros_like(allowed)
    kept[order] = True
    return kept


def with_elsewhere(problem: Problem, listed: Flags) -> tuple[Problem, Flags]:
    """Give the problem with one more site that stands for all that is not listed, and the lists with it."""
    cut = problem.domain & ~listed
    # Among the sites left out may be that of the other end, so the way there may be none at all.
    latency, per_byte = _near_all(problem.latency), _near_all(problem.per_byte)
    own = np.array(problem.variable, np.intp)
    lists = np.column_stack([listed, cut.any(1)])
    relaxed = replace(
        problem,
        sites=[*problem.sites, ""],
        domain=lists,
        compute=_best_left_out(problem.compute, cut[own]),
        work=_best_left_out(problem.work, cut[own]),
        latency=latency,
        per_byte=per_byte,
        residency={pair: np.pad(allowed, (0, 1), constant_values=True) for pair, allowed in problem.residency.items()},
        capacity=np.append(problem.capacity, np.inf),
    )
    return relaxed, lists


def charges_with_elsewhere(charges: Charges, problem: Problem, listed: Flags) -> Charges:
    """Give the charges with the same site more; in whole numbers as they are."""
    cut = problem.domain & ~listed
    least = np.where(cut, charges.own, np.iinfo(np.int64).max).min(1)
    own = np.column_stack([charges.own, np.where(cut.any(1), least, 0)])
    return replace(charges, own=own, prices=_near_all(charges.prices))


def _near_all(table: Floats) -> Floats:
    """Add a site to and from which nothing is farther than from and to the nearest site, itself included."""
    near: Floats = np.zeros((len(table) + 1, len(table) + 1))
    near[:-1, :-1] = table
    return near


def _best_left_out(figures: Floats, cut: Flags) -> Floats:
    # Row by row: all at once would be one more table, of which nothing is kept.
    least = [row[left_out].min(initial=np.inf) for row, left_out in zip(figures, cut, strict=True)]
    return np.column_stack([figures, np.where(cut.any(1), least, 0.0)])


__all__ = ["LISTED", "charges_with_elsewhere", "shortlists", "with_elsewhere"]
