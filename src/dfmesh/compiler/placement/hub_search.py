"""Branch and bound over the few variables on which most others depend, with the bound of `messages.py`.

A *hub* is a variable with many neighbours: it sends a value to many others, or takes values from many. Once it is known
where the hubs are, a bound by messages is close to the truth, and what a value with many takers costs at each site is
known. So hubs are fixed to one site after the other, always going on where the bound is lowest.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from dfmesh.compiler.placement.concentrating import ascended
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.passing import SPREAD
from dfmesh.compiler.placement.problem import Problem
from dfmesh.compiler.placement.standing import Standing

HUB = 24
"""Neighbours from which on a variable is a hub."""

FIXED = 6
"""Hubs that are fixed at most."""

ENOUGH = 0.003
"""Share of the best by which a bound may stay below it."""

STUCK = 0.03
"""Share of a gap: where a round closes less of it, messages are stuck."""


@dataclass(order=True, slots=True)
class _Branch:
    """Placements with some hubs fixed, messages among which are passed on when it is their turn.

    Attributes:
        bound: What they are charged at the least.
        number: Of two with equal bounds the earlier one is first.
        messages: Those of this branch, or of the one it is part of.
        fix: Hub and position of its site, if that has still to be fixed.
        rounds: How often messages were passed on since.
        is_done: Whether nothing more is to be had.
    """

    bound: int
    number: int
    messages: Messages = field(compare=False)
    fix: tuple[int, int] | None = field(compare=False)
    rounds: int = field(default=0, compare=False)
    is_done: bool = field(default=False, compare=False)


@dataclass(slots=True)
class HubSearch:
    """Looks at the sites of hubs.

    Attributes:
        standing: Takes placements and the bound.
        hubs: In the order in which they are fixed.
    """

    standing: Standing
    hubs: list[int]

    def run(self, messages: Messages, work: float) -> Messages:
        """Look at one branch after the other, and give the messages of the one where the bound is lowest.

        Args:
            messages: Of the whole problem, after some rounds in which the hubs were watched.
            work: Up to which count of the messages' work it may go on.
        """
        standing = self.standing
        branches = [_Branch(messages.bound, 0, messages, None, SPREAD)]
        number, spent = 0, 0
        while branches[0].bound < standing.total * (1 - ENOUGH) and spent < work and not branches[0].is_done:
            branch = heapq.heappop(branches)
            hub = self._next(branch)
            if hub is not None:
                for position, least in enumerate(branch.messages.least[hub].tolist()):
                    number += 1
                    heapq.heappush(
                        branches, _Branch(max(branch.bound, least), number, branch.messages, (hub, position))
                    )
                continue
            if branch.fix is not None:
                branch.messages = branch.messages.fixed(*branch.fix)
                branch.fix = None
            before = branch.messages.work
            branch.bound = max(branch.bound, self._go_on(branch))
            spent += branch.messages.work - before
            heapq.heappush(branches, branch)
        lowest = heapq.heappop(branches)
        standing.note_bound(lowest.bound)
        standing.elsewhere = min(branches[0].bound, standing.total) if branches else standing.total
        return lowest.messages if lowest.fix is None else lowest.messages.fixed(*lowest.fix)

    def _next(self, branch: _Branch) -> int | None:
        if branch.fix is not None or not branch.rounds:
            return None
        left = branch.messages.least
        return next((hub for hub in self.hubs if hub in left and len(left[hub]) > 1), None)

    def _go_on(self, branch: _Branch) -> int:
        """Pass messages on in a branch, or ascend where they are stuck; give a bound of its placements."""
        messages, standing = branch.messages, self.standing
        messages.even_out(quickly=branch.rounds % SPREAD > 0)
        for forward in (True, False):
            send = messages.forward if forward else messages.backward
            dear = send(standing.total, everything=not forward and branch.rounds % 2 == 0)
            standing.consider(messages.placement(forward=not forward))
            if not messages.remove(dear):
                return standing.total
        branch.rounds += 1
        if branch.rounds > 1 and messages.bound - branch.bound <= STUCK * (standing.total - messages.bound):
            bound = ascended(standing, messages)
            branch.is_done = bound > 0
            return max(messages.bound, bound)
        return messages.bound


def hubs_of(problem: Problem) -> list[int]:
    """Give the hubs of a problem: first those whose values most others take, then those with most neighbours."""
    near: list[set[int]] = [set() for _ in problem.members]
    takers = [0] * len(near)
    for shipment in problem.shipments:
        takers[shipment.source] = max(takers[shipment.source], len(shipment.consumers))
        near[shipment.source].update(shipment.consumers)
        for consumer in shipment.consumers:
            near[consumer].add(shipment.source)
    hubs = [variable for variable, others in enumerate(near) if len(others) >= HUB]
    return sorted(hubs, key=lambda hub: (-takers[hub], -len(near[hub]), hub))[:FIXED]


__all__ = ["ENOUGH", "HubSearch", "hubs_of"]
