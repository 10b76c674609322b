"""Placements of few charges, and a bound of them, in problems too large for a search tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.forests import MANY_TAKERS, Forests
from dfmesh.compiler.placement.hubs import resent
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.problem import Flags, Problem
from dfmesh.compiler.placement.schedule import Neighbours

FINE = 0.0005
"""Gap, as a share, below which it is not worth more work."""

ROUNDS = 16
"""Passes forward and backward at most."""

GATHERED = 64
"""Sites at which as much as possible is put together, for a look."""

STARTS = 3
"""Placements that are made cheaper."""

REPLANNED = 10
"""How often the variables of one of them are chosen anew before it is looked at which is best."""

LAST = 20
"""How often those of the best are."""


@dataclass(slots=True)
class Cheapening:
    """A placement and a bound that approach one another.

    Attributes:
        chosen: Site of each variable.
        total: What that is charged.
        bound: What every placement is charged at the least.
    """

    problem: Problem
    charges: Charges
    chosen: list[int]
    total: int
    bound: int = 0

    def run(self, order: list[int], domain: Flags, work: float) -> None:
        """Raise the bound and look for better placements.

        Args:
            order: Of the variables.
            domain: Sites to choose from.
            work: Share of the usual effort.
        """
        self._gather(domain)
        messages = Messages(self.problem, self.charges, order, domain)
        starts = self._pass_on(messages, max(2, round(ROUNDS * work)))
        if self._closed():
            return
        neighbours = Neighbours(self.problem, self.charges)
        forests = Forests(self.problem, self.charges, messages.sites)
        starts.append((self.total, self.chosen))
        hubs = [
            number for number, shipment in enumerate(self.problem.shipments) if len(shipment.consumers) >= MANY_TAKERS
        ]
        for total, chosen in sorted(starts)[:STARTS]:
            self._consider(*self._cheaper(forests, neighbours, hubs, chosen, total, round(REPLANNED * work)))
        if not self._closed():
            self._consider(*forests.improve(self.chosen, self.total, round(LAST * work)))

    def _closed(self) -> bool:
        return self.total - self.bound <= FINE * self.total

    def _consider(self, chosen: list[int], total: int) -> None:
        if total < self.total and self.problem.allows(chosen):
            self.chosen, self.total = chosen, total

    def _gather(self, domain: Flags) -> None:
        """Look at the placements with all that may be there at one site."""
        common = np.argsort(-domain.sum(0), kind="stable")[:GATHERED]
        for site in common.tolist():
            chosen = [site if may else known for known, may in zip(self.chosen, domain[:, site].tolist(), strict=True)]
            self._consider(chosen, self.charges.total(self.problem, chosen))

    def _pass_on(self, messages: Messages, rounds: int) -> list[tuple[int, list[int]]]:
        """Pass messages, and give the placements that they lead to."""
        starts: list[tuple[int, list[int]]] = []
        known = -1
        for turn in range(rounds):
            for forward in (True, False):
                send = messages.forward if forward else messages.backward
                dear = send(self.total, everything=not forward and turn % 2 == 1)
                self.bound = min(max(self.bound, messages.bound), self.total)
                if not messages.remove(dear):
                    self.bound = self.total
                if self._closed():
                    return starts
                chosen = messages.placement(forward=not forward)
                total = self.charges.total(self.problem, chosen)
                starts.append((total, chosen))
                self._consider(chosen, total)
            if turn > 7 and self.bound - known <= (self.total - self.bound) // 100:
                break
            known = self.bound
            messages.even_out()
        return starts

    def _cheaper(
        self,
        forests: Forests,
        neighbours: Neighbours,
        hubs: list[int],
        chosen: list[int],
        total: int,
        rounds: int,
    ) -> tuple[list[int], int]:
        for number in hubs[:3]:
            other = resent(self.problem, neighbours, chosen, number)
            other, found = forests.improve(other, self.charges.total(self.problem, other), 2)
            if found < total:
                chosen, total = other, found
        return forests.improve(chosen, total, rounds)


__all__ = ["Cheapening"]
