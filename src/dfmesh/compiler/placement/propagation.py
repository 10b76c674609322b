"""What the choices made so far leave possible within a limit of seconds.

For each node and site it is known how early the node can end there (*heads*) and how long what follows must take
(*tails*), as in `windows.py`. A site at which both together pass the limit is ruled out, which makes other heads and
tails longer, and so on along the edges until nothing changes. On a problem whose graph is a tree, whatever the
directions of its edges, every site that is left is part of a placement within the limit; elsewhere it need not be.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.problem import Flags, Floats, Indices, Problem, Whole
from dfmesh.compiler.placement.windows import TOLERANCE

UPDATE = 2_000
"""Table entries that take about as long as the rest of an update of one edge."""


class DeadEndError(Exception):
    """A variable has no site left; only used inside the placement."""


@dataclass(slots=True)
class State:
    """What changes. The arrays in lists are replaced, never written to, so a copy of the lists is a copy of it all."""

    alive: list[Flags]
    cost: list[Floats]
    start: list[Floats]
    heads: list[Floats]
    tails: list[Floats]
    rest: list[Floats]
    position: list[int]
    left: Whole

    def copy(self) -> State:
        """Give one that may change by itself."""
        return State(
            self.alive[:],
            self.cost[:],
            self.start[:],
            self.heads[:],
            self.tails[:],
            self.rest[:],
            self.position[:],
            self.left.copy(),
        )


class Propagation:
    """The sites that are left for each variable. All arrays are over the variable's own list of sites.

    Attributes:
        problem: The problem.
        sites: The sites of each variable that are looked at, in declared order.
        limit: Seconds within which placements are looked for.
        work: Edges that were updated, large tables counted several times.
        delay: Seconds of each edge, `[site of sender, site of receiver]`.
        compute: Seconds of each node, `[site]`.
        state: What is left; to take choices back, keep it and put it there again.
    """

    def __init__(self, problem: Problem, sites: Sequence[Indices]) -> None:
        """Find heads and tails under no limit."""
        self.problem = problem
        self.sites = list(sites)
        self.limit = np.inf
        self.work = 0
        self._own = problem.variable
        self.delay = [problem.delays(edge, self.sites) for edge in range(len(problem.source))]
        self._effort = [1 + delay.size // UPDATE for delay in self.delay]
        self.compute = [problem.compute[node][self.sites[own]] for node, own in enumerate(self._own)]
        self._rules: list[list[tuple[int, Flags]]] = [[] for _ in problem.members]
        for (first, second), allowed in problem.residency.items():
            table = allowed[np.ix_(self.sites[first], self.sites[second])]
            self._rules[first].append((second, table))
            self._rules[second].append((first, table.T))
        self.state = self._unlimited()
        self._root = self.state.copy()

    def _unlimited(self) -> State:
        start: list[Floats] = []
        heads: list[Floats] = []
        for node, incoming in enumerate(self.problem.incoming):
            begin = np.zeros(len(self.compute[node]))
            for edge, source in incoming:
                begin = np.maximum(begin, (heads[source][:, None] + self.delay[edge]).min(0))
            start.append(begin)
            heads.append(begin + self.compute[node])
        tails: list[Floats] = [np.zeros(0)] * len(heads)
        rest: list[Floats] = [np.zeros(0)] * len(heads)
        for node in reversed(range(len(heads))):
            after = np.zeros(len(self.compute[node]))
            for edge, target in self.problem.outgoing[node]:
                after = np.maximum(after, (self.delay[edge] + rest[target][None]).min(1))
            tails[node] = after
            rest[node] = after + self.compute[node]
        alive = [np.ones(len(sites), np.bool_) for sites in self.sites]
        return State(
            alive,
            self.compute[:],
            start,
            heads,
            tails,
            rest,
            position=[-1] * len(self.sites),
            left=np.array([len(sites) for sites in self.sites], np.int64),
        )

    def sharpen(self, heads: Floats, tails: Floats) -> None:
        """Note heads and tails known from elsewhere, `[node, site]`; infinite heads where a node may not be."""
        state = self._root
        for node, own in enumerate(self._own):
            known = heads[node][self.sites[own]] - self.compute[node]
            state.start[node] = np.maximum(state.start[node], np.where(np.isfinite(known), known, 0.0))
            state.heads[node] = state.start[node] + self.compute[node]
            state.tails[node] = np.maximum(state.tails[node], tails[node][self.sites[own]])
            state.rest[node] = state.tails[node] + self.compute[node]

    def bound(self) -> float:
        """Give seconds that every placement takes at the least, as far as heads and tails can tell."""
        state, longest = self._root, 0.0
        for members in self.problem.members:
            through = np.maximum.reduce([state.heads[node] + state.tails[node] for node in members])
            longest = max(longest, float(through.min()))
        return longest

    def settle(self, limit: float) -> bool:
        """Note that only placements within a limit will be looked for from now on; False if nothing is left."""
        found = self.begin(limit)
        if found:
            self._root = self.state.copy()
        return found

    def begin(self, limit: float) -> bool:
        """Take back all choices and rule out what does not keep a limit; False if nothing is left."""
        self.state = self._root.copy()
        self.limit = limit + TOLERANCE
        try:
            self._propagate(everywhere=True)
        except DeadEndError:
            return False
        return True

    def choose(self, variable: int, position: int) -> bool:
        """Fix a variable to one of its sites, by its position in the list; False, and nothing done, if it cannot be."""
        known = self.state
        self.state = known.copy()
        try:
            self._fix(variable, position)
        except DeadEndError:
            self.state = known
            return False
        return True

    def _fix(self, variable: int, position: int) -> None:
        state = self.state
        only = np.zeros(len(self.sites[variable]), np.bool_)
        only[position] = True
        state.position[variable] = position
        self._leave(variable, only)
        touched = [variable]
        for other, allowed in self._rules[variable]:
            left = state.alive[other] & allowed[position]
            if (left != state.alive[other]).any():
                self._leave(other, left)
                touched.append(other)
        self._propagate(touched)

    def chosen(self) -> list[int]:
        """Give the site of each variable, all of them being fixed."""
        return [int(sites[position]) for sites, position in zip(self.sites, self.state.position, strict=True)]

    def site(self, variable: int) -> int:
        """Give the site of a variable that is fixed."""
        return int(self.sites[variable][self.state.position[variable]])

    def promises(self, variable: int) -> tuple[Indices, Floats]:
        """Give the positions that are left for a variable, and the longest way that each of them leads to.

        The inputs that the receivers of its values have from elsewhere are taken into account.
        """
        state = self.state
        positions = np.flatnonzero(state.alive[variable])
        longest = np.zeros(len(positions))
        for node in self.problem.members[variable]:
            longest = np.maximum(longest, self.through(node, positions, state.heads[node][positions]))
        return positions, longest

    def through(self, node: int, positions: Indices, ends: Floats) -> Floats:
        """Give the longest way through a node for some positions of its variable, given when it ends there."""
        state, own = self.state, self._own[node]
        longest = ends + state.tails[node][positions]
        if len(positions) > 1:
            for edge, target in self.problem.outgoing[node]:
                if self._own[target] != own and len(self.problem.incoming[target]) > 1:
                    begin = np.maximum(ends[:, None] + self.delay[edge][positions], state.start[target])
                    longest = np.maximum(longest, (begin + state.rest[target]).min(1))
        return longest

    def allowed(self, variable: int, position: list[int]) -> Indices:
        """Give the positions left for a variable under the rules with others, whose positions are given if known."""
        may = self.state.alive[variable]
        for other, table in self._rules[variable]:
            if position[other] >= 0:
                may = may & table[:, position[other]]
        return np.flatnonzero(may)

    # Ruling out

    def _leave(self, variable: int, left: Flags) -> None:
        state = self.state
        if not left.any():
            raise DeadEndError
        state.alive[variable] = left
        state.left[variable] = np.count_nonzero(left)
        for node in self.problem.members[variable]:
            cost = state.cost[node] = np.where(left, self.compute[node], np.inf)
            state.heads[node] = state.start[node] + cost
            state.rest[node] = state.tails[node] + cost

    def _propagate(self, changed: Iterable[int] = (), *, everywhere: bool = False) -> None:
        forward, backward = _Queue(1), _Queue(-1)
        for variable in changed:
            self._wake(variable, forward, backward)
        for node in range(len(self._own)) if everywhere else ():
            self._look_at(node, forward, backward)
        while forward or backward:
            while forward:
                self._send_on(forward.pop(), forward, backward)
            while backward:
                self._send_back(backward.pop(), forward, backward)

    def _look_at(self, node: int, forward: _Queue, backward: _Queue) -> None:
        """Rule out sites at which a node is too late, after its head or tail has changed."""
        state, variable = self.state, self._own[node]
        left = state.heads[node] + state.tails[node] <= self.limit
        if np.count_nonzero(left) < state.left[variable]:
            self._leave(variable, left)
            self._wake(variable, forward, backward)

    def _wake(self, variable: int, forward: _Queue, backward: _Queue) -> None:
        for node in self.problem.members[variable]:
            forward.push(node)
            backward.push(node)

    def _send_on(self, node: int, forward: _Queue, backward: _Queue) -> None:
        state, own = self.state, self._own[node]
        heads, at = state.heads[node], state.position[own]
        for edge, target in self.problem.outgoing[node]:
            self.work += self._effort[edge] if at < 0 else 1
            variable = self._own[target]
            delay = self.delay[edge]
            arrivals = heads[at] + delay[at] if at >= 0 else (heads[:, None] + delay).min(0)
            later = state.alive[variable] & (arrivals > state.start[target])
            if later.any():
                state.start[target] = np.maximum(state.start[target], arrivals)
                state.heads[target] = state.start[target] + state.cost[target]
                forward.push(target)
                self._look_at(target, forward, backward)

    def _send_back(self, node: int, forward: _Queue, backward: _Queue) -> None:
        state, own = self.state, self._own[node]
        rest, at = state.rest[node], state.position[own]
        for edge, source in self.problem.incoming[node]:
            variable = self._own[source]
            if state.position[variable] >= 0 and len(self.problem.members[variable]) == 1:
                continue  # Its end is known; what follows it was looked at from there.
            self.work += self._effort[edge] if at < 0 else 1
            delay = self.delay[edge]
            follow = delay[:, at] + rest[at] if at >= 0 else (delay + rest[None]).min(1)
            longer = state.alive[variable] & (follow > state.tails[source])
            if longer.any():
                state.tails[source] = np.maximum(state.tails[source], follow)
                state.rest[source] = state.tails[source] + state.cost[source]
                backward.push(source)
                self._look_at(source, forward, backward)


class _Queue:
    """Nodes that wait, each once, first the earliest (direction 1) or the latest (direction -1)."""

    def __init__(self, direction: int) -> None:
        self._direction = direction
        self._heap: list[int] = []
        self._waiting: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, node: int) -> None:
        if node not in self._waiting:
            self._waiting.add(node)
            heapq.heappush(self._heap, node * self._direction)

    def pop(self) -> int:
        node = heapq.heappop(self._heap) * self._direction
        self._waiting.remove(node)
        return node


__all__ = ["DeadEndError", "Propagation", "State"]
