"""A lower bound of all charges by messages between neighbours, for problems too large for `relaxation.py`.

It is the same bound: charges are moved between variables and tables over pairs of them without changing any sum, in
whole numbers, so that as much as possible collects at the variables. Here the tables are kept as they are and what was
moved is noted beside them, each variable has its own short list of sites, and what several takers of a shipment share
is shared out anew in every round. Method: sequential tree-reweighted message passing (Kolmogorov, IEEE PAMI 2006); the
sharing out is the dual ascent for facility location (Erlenkotter, Operations Research 1978), by rounds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.problem import Flags, Indices, Problem, Whole
from dfmesh.compiler.placement.sharing import raised, raised_together

FORBIDDEN = 2**50
"""Charge of what a rule forbids: more than any placement is charged, little enough to be added up."""

MANY = 24
"""Takers from which on that is done, if the source is at one site."""

OVERHEAD = 1_500
"""Entries of a table that take about as long as the rest of passing a message."""

EVENING = 8
"""How much longer than a message evening out takes, per taker."""


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
        least: What a placement with each site is charged at the least, for variables that are watched.
        work: Entries of tables looked at so far, what an edge takes besides counted as entries, too.
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
        self.least: dict[int, Whole] = {}
        self.work = 0
        self._position = {variable: position for position, variable in enumerate(order)}
        self._links: dict[tuple[int, int], Link] = {}
        self._shared: dict[int, list[_Taker]] = {}
        for number, shipment in enumerate(problem.shipments):
            if len(shipment.consumers) == 1:
                table = charges.between(number, self.sites[shipment.source], self.sites[shipment.consumers[0]])
                self._add(shipment.source, shipment.consumers[0], table)
            else:
                self._shared[number] = self._share_out(number, shipment.source, shipment.consumers)
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

    def watch(self, variables: Collection[int]) -> None:
        """Note from now on what some variables cost at each of their sites at the least."""
        self.least = {variable: np.zeros(len(self.sites[variable]), np.int64) for variable in variables}

    def fixed(self, variable: int, position: int) -> Messages:
        """Give the same messages with one variable fixed, by the position of its site in the list."""
        other = object.__new__(Messages)
        other.__dict__.update(self.__dict__)
        other.sites, other.own = list(self.sites), list(self.own)
        other.sums = [sums.copy() for sums in self.sums]
        other.least = {watched: least for watched, least in self.least.items() if watched != variable}
        copies = {id(link): replace(link, shares=list(link.shares)) for links in self.after for link in links}
        other.after = [[copies[id(link)] for link in links] for links in self.after]
        other.before = [[copies[id(link)] for link in links] for links in self.before]
        other._links = {pair: copies[id(link)] for pair, link in self._links.items()}
        other._shared = {
            number: [replace(taker, link=copies[id(taker.link)]) for taker in takers]
            for number, takers in self._shared.items()
        }
        other.bound = 0
        other.remove([(variable, np.arange(len(self.sites[variable])) != position)])
        return other

    def domain(self) -> Flags:
        """Give the sites that may be part of a placement below the ceiling, `[variable, site]`."""
        left = np.zeros_like(self.problem.domain)
        for variable, sites in enumerate(self.sites):
            left[variable, sites] = True
        return left

    # Passes

    def forward(self, ceiling: int | None, *, everything: bool = False) -> list[tuple[int, Flags]]:
        """Move charges to later variables; give the sites that no placement below the ceiling has, by variable.

        Args:
            ceiling: Charges that a placement of interest stays below; None to rule out nothing.
            everything: Whether a variable keeps nothing for the way back.
        """
        dear: list[tuple[int, Flags]] = []
        self.work += self._entries()
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
        self.work += self._entries()
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

    def _entries(self) -> int:
        return sum(link.table.size + OVERHEAD for links in self.after for link in links)

    def _judge(self, variable: int, ceiling: int | None, dear: list[tuple[int, Flags]]) -> None:
        sums = self.sums[variable]
        if variable in self.least:
            self.least[variable] = np.maximum(self.least[variable], sums - sums.min() + self.bound)
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
            if variable in self.least:
                self.least[variable] = self.least[variable][keep]
            for link in self.after[variable]:
                link.table, link.to_first = link.table[keep], link.to_first[keep]
                link.shares = [share[keep] for share in link.shares]
            for link in self.before[variable]:
                link.table, link.to_second = link.table[:, keep], link.to_second[keep]
                link.shares = [share[:, keep] for share in link.shares]
        return True

    # Sharing out anew

    def even_out(self, *, quickly: bool = False) -> None:
        """Take back what takers of a shipment do not need of their shares, and give it to whom it helps most.

        Args:
            quickly: Whether only shipments with many takers and their source at one site are looked at.
        """
        for takers in self._shared.values():
            if len(takers) >= MANY and len(self._source_sites(takers[0])) == 1:
                self._even_out_together(takers)
            elif not quickly:
                self.work += sum(EVENING * (taker.link.table.size + OVERHEAD) for taker in takers)
                self._even_out(takers)

    def _source_sites(self, taker: _Taker) -> Indices:
        return self.sites[taker.link.first if taker.source_first else taker.link.second]

    def _even_out_together(self, takers: list[_Taker]) -> None:
        """Do the same for all takers at once, where the source is at one site."""
        everywhere = np.unique(np.concatenate([self.sites[taker.variable] for taker in takers]))
        columns = [np.searchsorted(everywhere, self.sites[taker.variable]) for taker in takers]
        left = np.full((len(takers), len(everywhere)), FORBIDDEN)
        share = np.zeros_like(left)
        there = np.zeros(left.shape, np.bool_)
        for row, (taker, at) in enumerate(zip(takers, columns, strict=True)):
            left[row, at] = taker.link.left().ravel()
            share[row, at] = taker.link.shares[taker.share].ravel()
            there[row, at] = True
        spare = np.where(there, np.minimum(left, share), 0)
        pool = spare.sum(0)
        given = raised_together(left - spare, pool)
        change = given + (pool - given.sum(0)) // there.sum(0) - spare
        for row, (taker, at) in enumerate(zip(takers, columns, strict=True)):
            more = change[row, at].reshape(taker.link.table.shape)
            taker.link.table = taker.link.table + more
            taker.link.shares[taker.share] = taker.link.shares[taker.share] + more

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
        given = raised(needs, columns, pool)
        rest = pool // among
        for taker, at, spare, more in zip(takers, columns, spares, given, strict=True):
            change = more + rest[:, at] - spare
            if not taker.source_first:
                change = change.T
            taker.link.table = taker.link.table + change
            taker.link.shares[taker.share] = taker.link.shares[taker.share] + change

    def borne(self, number: int, which: int) -> tuple[Whole, Whole, Whole | None]:
        """Give what was moved out of a taker's share of a shipment: to its source, to it; and the share itself.

        Args:
            number: The shipment.
            which: Which of its takers.

        Returns:
            Charges per site of the source, per site of the taker, and per pair of them; None for a single taker.
        """
        shipment = self.problem.shipments[number]
        source, taker = shipment.source, shipment.consumers[which]
        source_first = (source, taker) in self._links
        link = self._links[(source, taker) if source_first else (taker, source)]
        moved = (link.to_first, link.to_second) if source_first else (link.to_second, link.to_first)
        if number not in self._shared:
            return *moved, None
        share = link.shares[self._shared[number][which].share]
        return *moved, share if source_first else share.T

    # Placements

    def placement(self, *, forward: bool) -> list[int]:
        """Choose one variable after the other, as the messages tell what lies ahead; after a pass the other way."""
        chosen = [-1] * len(self.order)
        taken, sent = self.shipments_of
        reached: list[set[int]] = [set() for _ in self.problem.shipments]
        for variable in self.order if forward else self.order[::-1]:
            cost = self.own[variable].copy()
            for link in self.after[variable] if forward else self.before[variable]:
                cost += link.to_first if forward else link.to_second
            for number in taken[variable]:
                shipment = self.problem.shipments[number]
                if chosen[shipment.source] >= 0:
                    row = self.charges.sending(number, chosen[shipment.source])
                    row[list(reached[number])] = 0
                    cost += row[self.sites[variable]]
            for number in sent[variable]:
                if reached[number]:
                    ends = np.array(sorted(reached[number]), np.intp)
                    cost += self.charges.between(number, self.sites[variable], ends).sum(1)
            site = chosen[variable] = int(self.sites[variable][cost.argmin()])
            for number in taken[variable]:
                reached[number].add(site)
        return chosen

    @cached_property
    def shipments_of(self) -> tuple[list[list[int]], list[list[int]]]:
        """Shipments that each variable takes, and that it sends."""
        taken: list[list[int]] = [[] for _ in self.order]
        sent: list[list[int]] = [[] for _ in self.order]
        for number, shipment in enumerate(self.problem.shipments):
            sent[shipment.source].append(number)
            for consumer in shipment.consumers:
                taken[consumer].append(number)
        return taken, sent


__all__ = ["Link", "Messages"]
