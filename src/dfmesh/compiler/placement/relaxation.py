"""A lower bound of the charges of all placements, and what each choice adds to it at the least.

The charge of a shipment is shared out among those who take it: per destination, equally among all that may be there.
That turns it into tables over pairs of variables, whose sum is never more than the charge. Then charges are moved
between the tables without changing any sum (sequential message passing, in whole numbers), so that as much as
possible collects in `base`, which every placement pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.problem import Flags, Floats, Indices, Problem, Whole
from dfmesh.compiler.placement.windows import TOLERANCE


@dataclass(frozen=True, slots=True)
class _Batch:
    """Variables without tables between them, and their tables with variables before and after them in the order."""

    variables: Indices
    before: Indices
    after: Indices
    sharing: tuple[Whole, Whole]


class Relaxation:
    """Reduced charges.

    Attributes:
        base: What every placement in the domains is charged at the least.
        own: What a choice adds to it at the least, `[variable, site]`.
        pairs: Pairs of variables, the one that comes first in the order first.
        tables: What two choices together add, `[pair, site, site]`.
        shares: Each shipment's charge as it was shared out, by shipment and consumer, `[site, site]`; where more
            than one variable takes it.
        domain: Sites that may be part of a placement below the ceiling.
    """

    def __init__(
        self,
        problem: Problem,
        charges: Charges | None,
        order: list[int],
        domain: Flags,
        ceiling: int,
        *,
        timed: bool = False,
    ) -> None:
        self.problem = problem
        self.position = {variable: position for position, variable in enumerate(order)}
        self.ceiling = ceiling
        self.domain = domain.copy()
        self.base = 0
        self.own = np.zeros(domain.shape, np.int64) if charges is None else charges.own.copy()
        self.shares: dict[tuple[int, int], Whole] = {}
        self.index: dict[tuple[int, int], int] = {}
        self._wanted(charged=charges is not None, timed=timed)
        self.pairs = list(self.index)
        ends = np.array(self.pairs, np.intp).reshape(-1, 2)
        self._ends = (ends[:, 0].copy(), ends[:, 1].copy())
        sites = len(problem.sites)
        self.tables = np.zeros((len(self.pairs), sites, sites), np.int64)
        if charges is not None:
            for number, shipment in enumerate(problem.shipments):
                self._share_out(number, shipment.source, shipment.consumers, charges.shipping[number])
        for (first, second), allowed in problem.residency.items():
            self._add(first, second, np.where(allowed, 0, ceiling))
        self.own[~self.domain] = ceiling
        at = self._ends
        self.tables[~(self.domain[at[0]][:, :, None] & self.domain[at[1]][:, None, :])] = ceiling
        self._batches = self._in_batches(order)

    def _wanted(self, *, charged: bool, timed: bool) -> None:
        pairs = list(self.problem.residency)
        if charged:
            pairs += [(s.source, consumer) for s in self.problem.shipments for consumer in s.consumers]
        own = self.problem.variable
        pairs += [
            (own[a], own[b])
            for a, b in zip(self.problem.source.tolist(), self.problem.target.tolist(), strict=True)
            if timed and own[a] != own[b]
        ]
        for first, second in pairs:
            if self.position[first] > self.position[second]:
                first, second = second, first
            self.index.setdefault((first, second), len(self.index))

    def _add(self, first: int, second: int, table: Whole) -> None:
        index = self.index.get((first, second))
        if index is None:
            index = self.index[second, first]
            table = table.T
        self.tables[index] += table

    def _share_out(self, number: int, source: int, consumers: tuple[int, ...], shipping: Whole) -> None:
        may = self.domain[list(consumers)]
        among = np.maximum(may.sum(0), 1)
        share, rest = np.divmod(shipping, among[None])
        turn = may.cumsum(0)
        for which, consumer in enumerate(consumers):
            taken = may[which]
            table = np.where(taken[None], share + (rest * ((turn[which] == 1) & taken)[None]), 0)
            if len(consumers) > 1:
                self.shares[number, consumer] = table
            self._add(source, consumer, table)

    def forbid_slow(self, heads: Floats, tails: Floats, limit: float) -> None:
        """Forbid pairs of choices through which every path is longer than a limit of seconds."""
        problem, own = self.problem, self.problem.variable
        rest = problem.compute + tails
        for edge, (source, target) in enumerate(zip(problem.source.tolist(), problem.target.tolist(), strict=True)):
            if own[source] != own[target]:
                through = heads[source][:, None] + problem.delay[edge] + rest[target][None, :]
                slow = through > limit + TOLERANCE
                if slow.any():
                    self._add(own[source], own[target], np.where(slow, self.ceiling, 0))

    def _in_batches(self, order: list[int]) -> list[_Batch]:
        before: dict[int, list[int]] = {variable: [] for variable in order}
        after: dict[int, list[int]] = {variable: [] for variable in order}
        for index, (first, second) in enumerate(self.pairs):
            after[first].append(index)
            before[second].append(index)
        depth: dict[int, int] = {}
        for variable in order:
            depth[variable] = 1 + max((depth[self.pairs[index][0]] for index in before[variable]), default=-1)
        groups: list[list[int]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for variable in order:
            groups[depth[variable]].append(variable)
        return [_batch(group, before, after) for group in groups]

    @property
    def batches(self) -> int:
        """How many batches of variables a pass in one direction goes through."""
        return len(self._batches)

    def ascend(self, rounds: int, *, even_out: bool) -> None:
        """Raise the base by passing charges forward and backward, until nothing more comes of it."""
        for _ in range(rounds):
            known = self.base
            for batch in self._batches:
                self._pass(batch, forward=True)
            for batch in reversed(self._batches):
                self._pass(batch, forward=False)
            if even_out:
                self._even_out()
            if self.base >= self.ceiling or self.base - known <= (self.ceiling - self.base) // 200:
                break

    def _even_out(self) -> None:
        """Share out anew what those who take a shipment do not need of their shares of it.

        A share never falls below nothing: else the shares of some of the takers might be more than the whole.
        """
        for number, shipment in enumerate(self.problem.shipments):
            if len(shipment.consumers) < 2:
                continue
            tables = [self._table(shipment.source, consumer) for consumer in shipment.consumers]
            shares = [self.shares[number, consumer] for consumer in shipment.consumers]
            may = self.domain[list(shipment.consumers)]
            spare = [
                np.where(there[None], np.minimum(table, share), share)
                for there, table, share in zip(may, tables, shares, strict=True)
            ]
            each, rest = np.divmod(np.sum(spare, axis=0), np.maximum(may.sum(0), 1)[None])
            first = may.argmax(0)
            for which, (table, share, given) in enumerate(zip(tables, shares, spare, strict=True)):
                more = np.where(may[which][None], each + np.where(first == which, rest, 0), 0)
                table += np.where(may[which][None], more - given, 0)
                share += more - given

    def _table(self, first: int, second: int) -> Whole:
        index = self.index.get((first, second))
        table: Whole = self.tables[self.index[second, first]].T if index is None else self.tables[index]
        return table

    def lean_back(self) -> None:
        """Move all charges to the variables that come first, which a search in the order fixes first."""
        for batch in reversed(self._batches):
            self._pass(batch, forward=False, everything=True)

    def _pass(self, batch: _Batch, *, forward: bool, everything: bool = False) -> None:
        self._collect(batch.before, 1)
        self._collect(batch.after, 0)
        here = batch.variables
        least = np.where(self.domain[here], self.own[here], self.ceiling).min(1)
        self.own[here] -= least[:, None]
        self.base += int(least.sum())
        if self.base >= self.ceiling:
            return
        self._rule_out(here)
        to, axis = (batch.after, 0) if forward else (batch.before, 1)
        if len(to):
            self._distribute(batch, to, axis, everything=everything)

    def _collect(self, pairs: Indices, axis: int) -> None:
        if len(pairs):
            least = self.tables[pairs].min(2 - axis)
            self.tables[pairs] -= least[:, :, None] if axis == 0 else least[:, None, :]
            np.add.at(self.own, self._ends[axis][pairs], least)

    def _distribute(self, batch: _Batch, to: Indices, axis: int, *, everything: bool) -> None:
        here = batch.variables
        outwards, backwards = batch.sharing if axis == 0 else batch.sharing[::-1]
        among = np.maximum(outwards if everything else np.maximum(outwards, backwards), 1)
        share = np.zeros_like(self.own)
        share[here] = np.where(self.domain[here], self.own[here] // among[:, None], 0)
        self.own[here] -= share[here] * outwards[:, None]
        given = share[self._ends[axis][to]]
        self.tables[to] += given[:, :, None] if axis == 0 else given[:, None, :]

    def _rule_out(self, variables: Indices) -> None:
        dear = self.domain[variables] & (self.own[variables] + self.base >= self.ceiling)
        if dear.any():
            for row, site in zip(*np.nonzero(dear), strict=True):
                self.remove(int(variables[row]), int(site))

    def remove(self, variable: int, site: int) -> None:
        """Rule out a site for a variable."""
        self.domain[variable, site] = False
        self.own[variable, site] = self.ceiling
        first, second = self._ends
        self.tables[first == variable, site, :] = self.ceiling
        self.tables[second == variable, :, site] = self.ceiling

    def solution(self) -> Iterator[int]:
        """Give each variable's cheapest site on its own."""
        yield from np.where(self.domain, self.own, self.ceiling).argmin(1).tolist()


def _batch(group: list[int], before: dict[int, list[int]], after: dict[int, list[int]]) -> _Batch:
    return _Batch(
        np.array(group, np.intp),
        np.array([index for variable in group for index in before[variable]], np.intp),
        np.array([index for variable in group for index in after[variable]], np.intp),
        (
            np.array([len(after[variable]) for variable in group], np.int64),
            np.array([len(before[variable]) for variable in group], np.int64),
        ),
    )


__all__ = ["Relaxation"]
