"""The same problem without the edges that never decide when anything starts.

An edge from u to v is *needless* if other ways from u to v take at least as long wherever their nodes are. Without it
every placement takes the same time, and often ways part and join in an order that `conditioned.py` is exact for.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from dfmesh.compiler.placement.problem import Flags, Floats, Problem

VISITED = 64
"""Nodes after the start of an edge that are looked at before it counts as needed."""


def without_needless_edges(problem: Problem) -> Problem:
    """Leave out edges whose inputs are always there before others of the same node."""
    if not problem.domain.any(1).all():
        return problem
    needed = _Needed(problem).needed()
    if needed.all():
        return problem
    other = replace(problem, source=problem.source[needed], target=problem.target[needed], size=problem.size[needed])
    other.__dict__["delay"] = problem.delay[needed]
    return other


class _Needed:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._alive = [np.flatnonzero(problem.domain[variable]) for variable in problem.variable]
        self._leads_to = _descendants(problem)
        self._left_out: set[int] = set()

    def needed(self) -> Flags:
        """Tell for each edge whether it is to be kept."""
        problem, own = self._problem, self._problem.variable
        for edge, (source, target) in enumerate(zip(problem.source.tolist(), problem.target.tolist(), strict=True)):
            others = len(problem.incoming[target]) > 1 and len(problem.outgoing[source]) > 1
            if others and own[source] != own[target] and self._is_needless(edge, source, target):
                self._left_out.add(edge)
        needed = np.ones(len(problem.source), np.bool_)
        needed[list(self._left_out)] = False
        return needed

    def _is_needless(self, edge: int, source: int, target: int) -> bool:
        """Follow the other ways until one certainly takes longer."""
        problem, alive = self._problem, self._alive
        most = float(problem.delay[edge][np.ix_(alive[source], alive[target])].max())
        starts: dict[int, Floats] = {source: np.zeros(len(alive[source]))}
        waiting, visited = [source], 0
        while waiting and visited < VISITED:
            node = heapq.heappop(waiting)
            visited += 1
            if node == target:
                return float(starts[node].min()) >= most
            ends = starts[node] if node == source else starts[node] + problem.compute[node][alive[node]]
            if node != source and float(ends.min()) >= most:
                return True
            for other, after in problem.outgoing[node]:
                if other == edge or other in self._left_out:
                    continue
                if after != target and not self._leads_to[after] >> target & 1:
                    continue
                delay = problem.delay[other][alive[node]][:, alive[after]]
                arrivals = (ends[:, None] + delay).min(0)
                if after in starts:
                    arrivals = np.maximum(arrivals, starts[after])
                else:
                    heapq.heappush(waiting, after)
                starts[after] = arrivals
        return False


def _descendants(problem: Problem) -> list[int]:
    """Give for each node those that depend on it, as bits."""
    found = [0] * len(problem.variable)
    for node in reversed(range(len(found))):
        for _, after in problem.outgoing[node]:
            found[node] |= found[after] | 1 << after
    return found


__all__ = ["without_needless_edges"]
