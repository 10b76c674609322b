"""The same problem without the edges that never decide when anything starts.

An edge from u to v is *needless* if other ways from u to v take at least as long wherever their nodes are. Without it
every placement takes the same time, and often ways part and join in an order that `conditioned.py` is exact for.
"""

from __future__ import annotations

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
    """Sets of nodes are whole numbers, a bit for each node."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._alive = [np.flatnonzero(problem.domain[variable]) for variable in problem.variable]
        self._edge = {
            pair: edge for edge, pair in enumerate(zip(problem.source.tolist(), problem.target.tolist(), strict=True))
        }
        count = len(problem.variable)
        self._after, self._on_the_way = [0] * count, [0] * count
        for node, incoming in enumerate(problem.incoming):
            self._on_the_way[node] = 1 << node
            for _, source in incoming:
                self._after[source] |= 1 << node
                self._on_the_way[node] |= self._on_the_way[source]

    def needed(self) -> Flags:
        """Tell for each edge whether it is to be kept."""
        own, needed = self._problem.variable, np.ones(len(self._edge), np.bool_)
        for (source, target), edge in self._edge.items():
            others = self._after[source] & self._on_the_way[target] & ~(1 << target)
            if others and own[source] != own[target]:
                self._after[source] ^= 1 << target
                if self._is_needless(edge, source, target):
                    needed[edge] = False
                else:
                    self._after[source] ^= 1 << target
        return needed

    def _is_needless(self, edge: int, source: int, target: int) -> bool:
        """Follow the other ways until one certainly takes longer."""
        problem, alive = self._problem, self._alive
        most = float(problem.delay[edge][np.ix_(alive[source], alive[target])].max())
        starts: dict[int, Floats] = {source: np.zeros(len(alive[source]))}
        waiting = 1 << source
        for _ in range(VISITED):
            node = _first(waiting)
            if node == target:
                return float(starts[node].min()) >= most
            waiting ^= 1 << node
            ends = starts[node]
            if node != source:
                ends = ends + problem.compute[node][alive[node]]
                if float(ends.min()) >= most:
                    return True
            following = self._after[node] & self._on_the_way[target]
            waiting |= following
            while following:
                after = _first(following)
                following ^= 1 << after
                delay = problem.delay[self._edge[node, after]]
                arrivals = (ends[:, None] + delay[alive[node]][:, alive[after]]).min(0)
                starts[after] = np.maximum(arrivals, starts[after]) if after in starts else arrivals
        return False


def _first(nodes: int) -> int:
    return (nodes & -nodes).bit_length() - 1


__all__ = ["without_needless_edges"]
