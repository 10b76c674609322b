"""Making a placement faster along its critical path: all sites on the path are chosen anew at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.problem import Flags, Floats, Problem
from dfmesh.compiler.placement.windows import NANOSECOND

HALVINGS = 8
"""How often the limit of a path is halved between what is possible at best and what it takes now."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A node of the path: when its other inputs are there, its time, what else must follow it; `[site]` each."""

    node: int
    start: Floats
    compute: Floats
    rest: Floats
    allowed: Flags
    delay: Floats | None


def critical_path(problem: Problem, chosen: list[int], ends: list[float]) -> list[tuple[int, int | None]]:
    """Give the nodes of the longest path, first to last, each with the edge by which it is reached."""
    node = max(range(len(ends)), key=lambda index: (ends[index], -index), default=None)
    path: list[tuple[int, int | None]] = []
    while node is not None:
        site, last, reached, source_node = chosen[problem.variable[node]], -1.0, None, None
        for edge, source in problem.incoming[node]:
            arrival = ends[source] + float(problem.delay[edge, chosen[problem.variable[source]], site])
            if arrival > last:
                last, reached, source_node = arrival, edge, source
        path.append((node, reached))
        node = source_node
    return path[::-1]


def rerouted(
    problem: Problem, chosen: list[int], ends: list[float], tails: list[float], allowed: list[Flags]
) -> list[int] | None:
    """Choose all sites along the critical path anew, everything else left where it is.

    Args:
        problem: What is placed.
        chosen: A placement.
        ends: When its nodes end.
        tails: How much follows each.
        allowed: Sites that each variable may have given the others.

    Returns:
        A placement whose path is shorter; None if there is none. Other paths may have become longer.
    """
    steps = _steps(problem, chosen, ends, tails, allowed)
    slow = max(ends)
    fast, best = 0.0, None
    limit = slow - NANOSECOND
    for _ in range(HALVINGS):
        found = _within(steps, limit)
        if found is None:
            if best is None:
                return None
            fast = limit
        else:
            best, slow = found, limit
        limit = (fast + slow) / 2
    if best is None:
        return None
    trial = list(chosen)
    for step, site in zip(steps, best, strict=True):
        trial[problem.variable[step.node]] = site
    return trial


def _steps(
    problem: Problem, chosen: list[int], ends: list[float], tails: list[float], allowed: list[Flags]
) -> list[_Step]:
    path = critical_path(problem, chosen, ends)
    on_path = [node for node, _ in path]
    steps = []
    for index, (node, edge) in enumerate(path):
        before = on_path[index - 1] if index else None
        after = on_path[index + 1] if index + 1 < len(path) else None
        variable = problem.variable[node]
        may = allowed[variable]
        if any(member != node and not _is_last(problem, member) for member in problem.members[variable]):
            may = np.arange(len(problem.sites)) == chosen[variable]
        steps.append(
            _Step(
                node,
                _start(problem, chosen, ends, node, before),
                problem.compute[node],
                _rest(problem, chosen, tails, node, after),
                may,
                None if edge is None else problem.delay[edge],
            )
        )
    return steps


def _is_last(problem: Problem, node: int) -> bool:
    """Tell whether a node only takes something from its own variable, as a yield does from what it stands beside."""
    own = problem.variable[node]
    return not problem.outgoing[node] and all(problem.variable[source] == own for _, source in problem.incoming[node])


def _start(problem: Problem, chosen: list[int], ends: list[float], node: int, before: int | None) -> Floats:
    start = np.zeros(len(problem.sites))
    for edge, source in problem.incoming[node]:
        if source != before and problem.variable[source] != problem.variable[node]:
            start = np.maximum(start, ends[source] + problem.delay[edge, chosen[problem.variable[source]]])
    return start


def _rest(problem: Problem, chosen: list[int], tails: list[float], node: int, after: int | None) -> Floats:
    rest = np.zeros(len(problem.sites))
    for edge, target in problem.outgoing[node]:
        if target == after:
            continue
        if problem.variable[target] == problem.variable[node]:
            rest = np.maximum(rest, problem.compute[target] + tails[target])
        else:
            site = chosen[problem.variable[target]]
            rest = np.maximum(rest, problem.delay[edge][:, site] + problem.compute[target, site] + tails[target])
    return rest


def _within(steps: list[_Step], limit: float) -> list[int] | None:
    """Find sites along the path with which nothing through it takes longer than a limit; None if there are none."""
    came: list[list[int]] = []
    ends = np.zeros(0)
    for step in steps:
        start = step.start
        if step.delay is not None:
            ways = ends[:, None] + step.delay
            best = ways.argmin(0)
            came.append(best.tolist())
            start = np.maximum(start, ways[best, np.arange(len(best))])
        ends = start + step.compute
        ends = np.where(step.allowed & (ends + step.rest <= limit), ends, np.inf)
        if not np.isfinite(ends).any():
            return None
    sites = [int(ends.argmin())]
    for back in reversed(came):
        sites.append(back[sites[-1]])
    return sites[::-1]


__all__ = ["critical_path", "rerouted"]
