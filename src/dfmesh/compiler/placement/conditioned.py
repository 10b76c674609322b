"""Least times that take into account that a node has one site only, however many ways lead from it.

Where several ways from a node x join again, each by itself might want x at another site. So for a node w whose ways all
come through x (its *dominator*, the nearest such node), the time from x to w is kept for each site of x: the longest
of the ways, each at its shortest. On graphs of series and parallel parts the least time of the whole is thereby exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dfmesh.compiler.placement.problem import Floats

ENTRIES = 400_000_000
"""Sums that may be made for it; beyond, only one of several ways is taken into account."""


class Conditioned:
    """Least times in one direction.

    Attributes:
        arrivals: When each node can have all its inputs at the least, `[node, site]`.
    """

    def __init__(
        self,
        order: Sequence[int],
        before: list[list[tuple[int, int]]],
        delay: Callable[[int], Floats],
        weight: Floats,
    ) -> None:
        """Compute them.

        Args:
            order: The nodes, each after those before it.
            before: For each node the edges from earlier nodes, as edge and node.
            delay: Gives the seconds of an edge, `[earlier site, site]`.
            weight: Seconds of each node, infinite where it may not be, `[node, site]`.
        """
        self._before = before
        self._delay = delay
        self._weight = weight
        self._left = ENTRIES
        self.arrivals = np.zeros_like(weight)
        self._dominator: dict[int, int | None] = {}
        self._depth: dict[int | None, int] = {None: 0}
        self._from: dict[tuple[int, int], Floats] = {}
        for node in order:
            self._visit(node)

    def _visit(self, node: int) -> None:
        dominator = self._common([other for _, other in self._before[node]])
        self._dominator[node] = dominator
        self._depth[node] = self._depth[dominator] + 1
        if not self._before[node]:
            return
        if dominator is None:
            ways = [self._total(other)[:, None] + self._delay(edge) for edge, other in self._before[node]]
            self.arrivals[node] = np.maximum.reduce([way.min(0) for way in ways])
            return
        between = self._between(dominator, node)
        self.arrivals[node] = (self._total(dominator)[:, None] + between).min(0)
        self._from[dominator, node] = between + self._weight[node][None]

    def _total(self, node: int) -> Floats:
        total: Floats = self.arrivals[node] + self._weight[node]
        return total

    def _common(self, nodes: list[int]) -> int | None:
        """Give the nearest node through which all ways to some nodes lead, itself one of them or not; None if none."""
        found: int | None = nodes[0] if nodes else None
        for node in nodes[1:]:
            other: int | None = node
            while found != other:
                if self._depth[found] >= self._depth[other]:
                    found = None if found is None else self._dominator[found]
                else:
                    other = None if other is None else self._dominator[other]
        return found

    def _between(self, dominator: int, node: int) -> Floats:
        longest: Floats | None = None
        for edge, other in self._before[node]:
            delay = self._delay(edge)
            if other != dominator:
                if longest is not None and self._left <= 0:
                    continue
                delay = self._product(self._ways(dominator, other), delay)
            longest = delay if longest is None else np.maximum(longest, delay)
        if longest is None:
            raise ValueError(f"node {node} has a dominator but nothing before it")
        return longest

    def _ways(self, start: int, node: int) -> Floats:
        """Give the least time from the start of one node's successors to the end of another, per pair of sites."""
        known = self._from.get((start, node))
        if known is not None:
            return known
        chain = [node]
        while (start, chain[-1]) not in self._from:
            above = self._dominator[chain[-1]]
            if above is None:
                raise ValueError(f"node {start} does not dominate node {node}")
            chain.append(above)
        ways = self._from[start, chain[-1]]
        for above, below in zip(chain[:0:-1], chain[-2::-1], strict=True):
            ways = self._product(ways, self._from[above, below])
            self._from[start, below] = ways
        return ways

    def _product(self, first: Floats, second: Floats) -> Floats:
        self._left -= first.size * second.shape[1]
        product: Floats = (first[:, :, None] + second[None]).min(1)
        return product


__all__ = ["ENTRIES", "Conditioned"]
