"""How early each node can end and how much must follow it, at each site, and which sites that rules out.

`heads[n, s]` is the least time at which node n can end at site s, `tails[n, s]` the least time that passes after it.
Both let every receiver of a value choose the sender's site for itself, so they are never too large. A site at which
the two add up to more than a limit cannot be part of a placement within that limit.
"""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.conditioned import ENTRIES, Conditioned
from dfmesh.compiler.placement.problem import Flags, Floats, Problem

ROUNDS = 12
"""How often ruling out is repeated at most while it still finds something."""

NANOSECOND = 1e-9
"""Least difference of times that counts."""

OFTEN = 2_000_000
"""Sums per look at all edges up to which times are conditioned (`conditioned.py`) wherever they are used."""

TOLERANCE = 4e-10
"""Seconds by which a limit may be passed: sums of times are inexact, and are compared to a nanosecond."""


class Windows:
    """Heads and tails for one problem, whatever its domains."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.own = np.array(problem.variable, np.intp)
        self.forward, self.backward = problem.levels
        sums = len(problem.source) * len(problem.sites) ** 3
        self._often_conditioned = sums <= OFTEN
        self._once_conditioned = sums <= ENTRIES

    def heads(self, domain: Flags) -> Floats:
        """Give the least end of each node at each site, `[node, site]`; infinite where it may not be."""
        problem = self.problem
        heads = np.where(domain[self.own], problem.compute, np.inf)
        for level in self.forward:
            arrivals = (heads[problem.source[level.edges]][:, :, None] + problem.delay[level.edges]).min(1)
            heads[level.nodes] += np.maximum.reduceat(arrivals, level.starts, axis=0)
        return heads

    def tails(self, domain: Flags) -> Floats:
        """Give the least time that follows each node at each site, `[node, site]`."""
        problem = self.problem
        rest = np.where(domain[self.own], problem.compute, np.inf)
        tails = np.zeros_like(rest)
        for level in self.backward:
            follow = (problem.delay[level.edges] + rest[problem.target[level.edges]][:, None, :]).min(2)
            tails[level.nodes] = np.maximum.reduceat(follow, level.starts, axis=0)
            rest[level.nodes] += tails[level.nodes]
        return tails

    def longest(self, domain: Flags) -> Floats:
        """Give the most time that can follow each node at each site, `[node, site]`."""
        problem = self.problem
        rest = np.where(domain[self.own], problem.compute, -np.inf)
        longest = np.zeros_like(rest)
        for level in self.backward:
            delay = problem.delay[level.edges]
            delay = np.where(np.isinf(delay), -np.inf, delay)
            follow = (delay + rest[problem.target[level.edges]][:, None, :]).max(2)
            longest[level.nodes] = np.maximum(np.maximum.reduceat(follow, level.starts, axis=0), 0.0)
            rest[level.nodes] += longest[level.nodes]
        return longest

    def both(self, domain: Flags, *, conditioned: bool) -> tuple[Floats, Floats]:
        """Give heads and tails; larger, closer to the truth, and dearer to find if they are conditioned."""
        if not conditioned:
            return self.heads(domain), self.tails(domain)
        return self.once(domain)

    def once(self, domain: Flags) -> tuple[Floats, Floats]:
        """Give heads and tails as well as can be afforded once."""
        if not self._once_conditioned:
            return self.heads(domain), self.tails(domain)
        problem = self.problem
        weight = np.where(domain[self.own], problem.compute, np.inf)
        nodes = range(len(self.own))
        heads = Conditioned(nodes, problem.incoming, problem.delay.__getitem__, weight).arrivals + weight
        tails = Conditioned(nodes[::-1], problem.outgoing, lambda edge: problem.delay[edge].T, weight).arrivals
        return heads, tails

    def best(self, domain: Flags) -> tuple[Floats, Floats]:
        """Give heads and tails as well as can be afforded often."""
        return self.both(domain, conditioned=self._often_conditioned)

    def through(self, domain: Flags, *, conditioned: bool = False) -> Floats:
        """Give the least length of a path through each variable at each site, `[variable, site]`."""
        heads, tails = self.both(domain, conditioned=conditioned)
        return self._by_variable(heads + tails)

    def _by_variable(self, seconds: Floats) -> Floats:
        longest = np.zeros(self.problem.domain.shape)
        np.maximum.at(longest, self.own, seconds)
        return longest

    def bound(self, domain: Flags, heads: Floats | None = None, tails: Floats | None = None) -> float:
        """Give seconds that every placement in the domains takes at the least; heads and tails if they are known."""
        if heads is None or tails is None:
            heads, tails = self.best(domain)
        return max(float(self._by_variable(heads + tails).min(1).max(initial=0.0)), self.load_bound(domain))

    def load_bound(self, domain: Flags) -> float:
        """Give seconds that some site of limited capacity is busy at the least."""
        problem = self.problem
        if not problem.limited:
            return 0.0
        fixed = domain.sum(1) == 1
        busiest = float(np.where(domain[fixed], problem.load[fixed], 0.0).sum(0).max(initial=0.0))
        limited = np.isfinite(problem.capacity)
        bound_there = ~(domain & ~limited).any(1)
        least = np.where(domain, problem.together, np.inf)[bound_there][:, limited].min(1, initial=np.inf)
        shared = float(least.sum() / problem.capacity[limited].sum())
        return max(busiest, shared)

    def tighten(self, domain: Flags, limit: float) -> Flags | None:
        """Rule out sites that no placement within a limit of seconds uses; None if there is no such placement."""
        domain = domain.copy()
        conditioned = False
        for _ in range(ROUNDS):
            if not keep_residency(self.problem, domain):
                return None
            tight = domain & (self.through(domain, conditioned=conditioned) <= limit + TOLERANCE)
            self.keep_capacity(tight, limit)
            if not tight.any(1).all():
                return None
            if (tight == domain).all():
                if conditioned or not self._often_conditioned:
                    break
                conditioned = True
            else:
                conditioned = False
            domain = tight
        return domain if self.load_bound(domain) <= limit + TOLERANCE else None

    def keep_capacity(self, domain: Flags, limit: float) -> None:
        """Rule out sites that would be too busy with what is there already."""
        load = self.problem.load
        if not self.problem.limited:
            return
        fixed = domain.sum(1) == 1
        busy = np.where(domain[fixed], load[fixed], 0.0).sum(0)
        domain[~fixed] &= busy[None] + load[~fixed] <= limit + TOLERANCE
        domain[fixed] &= (busy <= limit + TOLERANCE)[None] | (load[fixed] == 0)


def keep_residency(problem: Problem, domain: Flags) -> bool:
    """Rule out sites that residency forbids whatever the other side does; False if nothing is left somewhere."""
    changed = bool(problem.residency)
    while changed:
        changed = False
        for (first, second), allowed in problem.residency.items():
            for variable, reachable in (
                (second, allowed[domain[first]].any(0)),
                (first, allowed[:, domain[second]].any(1)),
            ):
                if (domain[variable] & ~reachable).any():
                    domain[variable] &= reachable
                    changed = True
    return bool(domain.any(1).all())


__all__ = ["NANOSECOND", "TOLERANCE", "Windows", "keep_residency"]
