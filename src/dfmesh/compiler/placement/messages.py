"""A lower bound of all charges by messages between neighbours, for problems too large for `relaxation.py`.

It is the same bound: charges are moved between variables and tables over pairs of them without changing any sum, in
whole numbers, so that as much as possible collects at the variables. Here the tables are kept as they are and what was
moved is noted beside them, each variable has its own short list of sites, and what several takers of a shipment share
is shared out anew in every round. Method: sequential tree-reweighted message passing (Kolmogorov, IEEE PAMI 2006); the
sharing out is the dual ascent for facility location (Erlenkotter, Operations Research 1978), by rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.problem import Flags, Indices, Problem, Whole

FORBIDDEN = 2**50
"""Charge of what a rule forbids: more than any placement is charged, little enough to be added up."""

PARTS = (4, 2, 1)
"""Parts of what could still be shared out that one taker may have at a time, so that the first does not get it all."""


@dataclass(slots=True, eq=False)
class Link:
    """What two variables are charged together, the one that comes first in the order first.

    Attributes:
        first: A variable.
        second: Another.
        table: Charge, `[site of first, site of second]`, before what was moved out of it.
        to_first: Charges moved to the first variable, per site of it.
        to_second: Charges moved to the second.
        shares: The parts of the table that are shares of shipments with several takers.
    """

    first: int
    second: int
    table: Whole
    to_first: Whole
    to_second: Whole
    shares: list[Whole] = field(default_factory=list)

    def left(self) -> Whole:
        """Give what is still in the table."""
        return self.table - self.to_first[:, None] - self.to_second[None]


@dataclass(frozen=True, slots=True, eq=False)
class _Taker:
    """One of several takers of a shipment: its link with the source, which of the link's shares is this shipment's."""

    variable: int
    link: Link
    source_first: bool
    share: int


class Messages:
    """Charges on their way through one problem.

    Attributes:
        problem: The problem.
        charges: What is charged.
        order: The variables, in the order of the passes.
        sites: The sites of each variable that may be part of a placement below the ceiling.
        bound: What every placement is charged at the least.
    """

    def __init__(self, problem: Problem, charges: Charges, order: list[int], domain: Flags) -> None:
        self.problem = problem
        self.charges = charges
        self.order = order
        self.sites: list[Indices] = [np.flatnonzero(may) for may in domain]
        self.own: list[Whole] = [charges.own[variable][sites] for variable, sites in enumerate(self.sites)]
        self.sums: list[Whole] = [own.copy() for own in self.own]
        self.bound = sum(int(own.min()) for own in self.own)
        self.after: list[list[Link]] = [[] for _ in order]
        self.before: list[list[Link]] = [[] for _ in order]
        self._position = {variable: position for position, variable in enumerate(order)}
        self._links: dict[tuple[int, int], Link] = {}
        self._shared: list[list[_Taker]] = []
        for number, shipment in enumerate(problem.shipments):
            if len(shipment.consumers) == 1:
                table = charges.between(number, self.sites[shipment.source], self.sites[shipment.consumers[0]])
                self._add(shipment.source, shipment.consumers[0], table)
            else:
                self._shared.append(self._share_out(number, shipment.source, shipment.consumers))
        for (first, second), allowed in problem.residency.items():
            self._add(first, second, np.where(allowed[np.ix_(self.sites[first], self.sites[second])], 0, FORBIDDEN))

    def _add(self, first: int, second: int, table: Whole) -> tuple[Link, bool]:
        ordered = self._position[first] < self._position[second]
        if not ordered:
            first, second, table = second, first, table.T
        link = self._links.get((first, second))
        if link is None:
            nothing = np.zeros(len(self.sites[first]), np.int64), np.zeros(len(self.sites[second]), np.int64)
            link = self._links[first, second] = Link(first, second, np.zeros_like(table), *nothing)
            self.after[first].append(link)
            self.before[second].append(link)
        link.table = link.table + table
        return link, ordered

    def _share_out(self, number: int, source: int, consumers: tuple[int, ...]) -> list[_Taker]:
        everywhere = np.unique(np.concatenate([self.sites[consumer] for consumer in consumers]))
        whole = self.charges.between(number, self.sites[source], everywhere)
        among = np.zeros(len(everywhere), np.int64)
        for consumer in consumers:
            among[np.searchsorted(everywhere, self.sites[consumer])] += 1
        takers = []
        for consumer in consumers:
            at = np.searchsorted(everywhere, self.sites[consumer])
            share = whole[:, at] // among[at]
            link, source_first = self._add(source, consumer, share)
            link.shares.append(share if source_first else share.T)
            takers.append(_Taker(consumer, link, source_first, len(link.shares) - 1))
        return takers

    # Passes

    def forward(self, ceiling: int | None, *, everything: bool = False) -> list[tuple[int, Flags]]:
        """Move charges to later variables; give the sites that no placement below the ceiling has, by variable.

        Args:
            ceiling: Charges that a placement of interest stays below; None to rule out nothing.
            everything: Whether a variable keeps nothing for the way back.
        """
        dear: list[tuple[int, Flags]] = []
        for variable in self.order:
            self._judge(variable, ceiling, dear)
            links = self.after[variable]
            if links:
                given = self._given(variable, len(links), everything=everything)
                for link in links:
                    link.to_first = link.to_first - given
                    moved = (link.table - link.to_first[:, None]).min(0)
                    self.sums[link.second] += moved - link.to_second
                    link.to_second = moved
        self._note_bound()
        return dear

    def backward(self, ceiling: int | None, *, everything: bool = False) -> list[tuple[int, Flags]]:
        """Move charges to earlier variables; as `forward`."""
        dear: list[tuple[int, Flags]] = []
        for variable in reversed(self.order):
            self._judge(variable, ceiling, dear)
            links = self.before[variable]
            if links:
                given = self._given(variable, len(links), everything=everything)
                for link in links:
                    link.to_second = link.to_second - given
                    moved = (link.table - link.to_second[None]).min(1)
                    self.sums[link.first] += moved - link.to_first
                    link.to_first = moved
        self._note_bound()
        return dear

    def _judge(self, variable: int, ceiling: int | None, dear: list[tuple[int, Flags]]) -> None:
        sums = self.sums[variable]
        if ceiling is not None and len(sums) > 1:
            found = sums - sums.min() + self.bound >= ceiling
            if found.any():
                dear.append((variable, found))

    def _given(self, variable: int, links: int, *, everything: bool) -> Whole:
        among = links if everything else max(len(self.after[variable]), len(self.before[variable]))
        given = self.sums[variable] // among
        self.sums[variable] = self.sums[variable] - given * links
        return given

    def _note_bound(self) -> None:
        self.bound = max(self.bound, sum(int(sums.min()) for sums in self.sums))

    def remove(self, dear: list[tuple[int, Flags]]) -> bool:
        """Rule out sites; False if a variable has none left, so that nothing is below the ceiling."""
        for variable, found in dear:
            keep = ~found
            if not keep.any():
                return False
            self.sites[variable] = self.sites[variable][keep]
            self.own[variable] = self.own[variable][keep]
            self.sums[variable] = self.sums[variable][keep]
            for link in self.after[variable]:
                link.table, link.to_first = link.table[keep], link.to_first[keep]
                link.shares = [share[keep] for share in link.shares]
            for link in self.before[variable]:
                link.table, link.to_second = link.table[:, keep], link.to_second[keep]
                link.shares = [share[:, keep] for share in link.shares]
        return True

    # Sharing out anew

    def even_out(self) -> None:
        """Take back what takers of a shipment do not need of their shares, and give it to whom it helps most."""
        for takers in self._shared:
            self._even_out(takers)

    def _even_out(self, takers: list[_Taker]) -> None:
        everywhere = np.unique(np.concatenate([self.sites[taker.variable] for taker in takers]))
        columns = [np.searchsorted(everywhere, self.sites[taker.variable]) for taker in takers]
        among = np.zeros(len(everywhere), np.int64)
        needs, spares = [], []
        for taker, at in zip(takers, columns, strict=True):
            left, share = taker.link.left(), taker.link.shares[taker.share]
            if not taker.source_first:
                left, share = left.T, share.T
            spare = np.minimum(left, share)
            needs.append(left - spare)
            spares.append(spare)
            among[at] += 1
        pool = np.zeros((len(spares[0]), len(everywhere)), np.int64)
        for spare, at in zip(spares, columns, strict=True):
            pool[:, at] += spare
        given = _raised(needs, columns, pool)
        rest = pool // among
        for taker, at, spare, more in zip(takers, columns, spares, given, strict=True):
            change = more + rest[:, at] - spare
            if not taker.source_first:
                change = change.T
            taker.link.table = taker.link.table + change
            taker.link.shares[taker.share] = taker.link.shares[taker.share] + change

    # Placements

    def placement(self, *, forward: bool) -> list[int]:
        """Choose one variable after the other, as the messages tell what lies ahead; after a pass the other way."""
        chosen = [-1] * len(self.order)
        taken, sent = self.shipments_of
        for variable in self.order if forward else self.order[::-1]:
            cost = self.own[variable].copy()
            for link in self.after[variable] if forward else self.before[variable]:
                cost += link.to_first if forward else link.to_second
            for number in taken[variable]:
                shipment = self.problem.shipments[number]
                if chosen[shipment.source] >= 0:
                    row = self.charges.sending(number, chosen[shipment.source])
                    row[[site for other in shipment.consumers if (site := chosen[other]) >= 0]] = 0
                    cost += row[self.sites[variable]]
            for number in sent[variable]:
                ends = sorted({chosen[other] for other in self.problem.shipments[number].consumers} - {-1})
                if ends:
                    cost += self.charges.between(number, self.sites[variable], np.array(ends, np.intp)).sum(1)
            chosen[variable] = int(self.sites[variable][cost.argmin()])
        return chosen

    @property
    def shipments_of(self) -> tuple[list[list[int]], list[list[int]]]:
        """Shipments that each variable takes, and that it sends."""
        taken: list[list[int]] = [[] for _ in self.order]
        sent: list[list[int]] = [[] for _ in self.order]
        for number, shipment in enumerate(self.problem.shipments):
            sent[shipment.source].append(number)
            for consumer in shipment.consumers:
                taken[consumer].append(number)
        return taken, sent


def _raised(needs: list[Whole], columns: list[Indices], pool: Whole) -> list[Whole]:
    """Raise what each taker pays at the least, per site of the source, out of a pool per site; the pool is used up."""
    given = [np.zeros_like(need) for need in needs]
    for part in PARTS:
        for which, at in enumerate(columns):
            free = pool[:, at]
            least = needs[which].min(1)
            level = least + ((needs[which] + free).min(1) - least) // part
            more = np.minimum(np.maximum(level[:, None] - needs[which], 0), free)
            pool[:, at] -= more
            needs[which] = needs[which] + more
            given[which] += more
    return given


__all__ = ["Link", "Messages"]
