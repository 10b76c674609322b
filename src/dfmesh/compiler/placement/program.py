"""Least charges as a linear program, whose whole-numbered solutions are placements.

A *choice* is a site of a variable: a column that is 1 if the variable is there. Shipments are stated in two ways:

* by *levels*: the price of a shipment at a site of a taker rises with where the source is, in steps. A step is paid
  unless the source is at a site from which the value comes cheaper than that. Where all prices are equal, as those of
  bytes are, that is one step: the taker is where the source is not.
* by *flows*: one per taker from each site of the source to each of the taker, which add up to the choices of both. What
  several takers get by the same way is paid once: there is a column for the way that is no less than any flow on it.

Flows are the tighter statement, and larger. All columns are between 0 and 1 and all coefficients are 1 or -1, so any
prices of the rows give a bound in whole numbers (`Program.certified`), whatever the solver's arithmetic was like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.problem import Flags, Floats, Indices, Problem, Whole

FINER = 2**16
"""Parts of a unit of charges to which prices are rounded."""

ROOM = 2**56
"""What all columns together may be charged in such parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A linear program over columns between 0 and 1, its least total to be found.

    Attributes:
        variable: Variable of each choice; choices are the first columns, ordered by variable and site.
        site: Site of each choice.
        costs: Charge of each column.
        lower: Least sum of each row; the first are one per variable, whose choices add up to 1.
        upper: Greatest sum of each row.
        starts: Where the entries of each row begin, and where the last end.
        columns: Column of each entry.
        signs: 1 or -1, of each entry.
    """

    variable: Indices
    site: Indices
    costs: Whole
    lower: Floats
    upper: Floats
    starts: Indices
    columns: Indices
    signs: Floats

    def certified(self, prices: Floats) -> tuple[int, Whole]:
        """Give a lower bound in whole numbers, and what each choice adds to it at the least.

        Args:
            prices: Of each row, what one more of its sum is worth; any are right, the solver's give the best bound.
        """
        most = max(1, int(self.costs.sum()))
        finer = max(1, min(FINER, ROOM // most))
        whole = np.rint(np.clip(prices, -most, most) * finer).astype(np.int64)
        whole = np.where(np.isinf(self.lower), np.minimum(whole, 0), whole)
        whole = np.where(np.isinf(self.upper), np.maximum(whole, 0), whole)
        variables = int(self.variable[-1]) + 1
        whole[:variables] = 0
        limits = np.where(whole > 0, self.lower, self.upper)
        bound = int((whole * np.where(whole == 0, 0.0, limits).astype(np.int64)).sum())
        rows = np.repeat(np.arange(len(whole)), np.diff(self.starts))
        left = self.costs * finer
        np.subtract.at(left, self.columns, whole[rows] * self.signs.astype(np.int64))
        choices = len(self.variable)
        bound += int(np.minimum(left[choices:], 0).sum())
        first = np.searchsorted(self.variable, np.arange(variables))
        least = np.minimum.reduceat(left[:choices], first)
        return -(-(bound + int(least.sum())) // finer), (left[:choices] - least[self.variable]) // finer


def program(problem: Problem, charges: Charges, domain: Flags, ways: int) -> Program:
    """State what least charges are.

    Args:
        problem: What is placed.
        charges: What is charged.
        domain: Sites to choose from, `[variable, site]`, at least one each.
        ways: Pairs of sites of a source and a taker up to which flows are stated.
    """
    return _Stating(problem, charges, domain, ways).program()


class _Stating:
    def __init__(self, problem: Problem, charges: Charges, domain: Flags, ways: int) -> None:
        self.problem, self.charges, self.domain, self.ways = problem, charges, domain, ways
        self.variable, self.site = np.nonzero(domain)
        self.choice = np.zeros(domain.shape, np.intp)
        self.choice[self.variable, self.site] = np.arange(len(self.variable))
        self.count = self.rows = 0
        self.costs: list[Whole] = []
        self.limits: list[tuple[int, float, float]] = []
        self.entries: list[tuple[Indices, Indices, float]] = []

    def program(self) -> Program:
        self.add_columns(self.charges.own[self.variable, self.site])
        self.add(self.add_rows(len(self.domain), 1, 1)[self.variable], np.arange(len(self.variable)), 1)
        for number, shipment in enumerate(self.problem.shipments):
            sources = np.flatnonzero(self.domain[shipment.source])
            takers = [(taker, np.flatnonzero(self.domain[taker])) for taker in shipment.consumers]
            few = len(sources) * max(len(sites) for _, sites in takers) <= self.ways
            (self.flows if few else self.levels)(number, shipment.source, sources, takers)
        for (first, second), allowed in self.problem.residency.items():
            self.rule(first, second, allowed)
        return self.ordered()

    def add_columns(self, costs: Whole) -> Indices:
        numbers = np.arange(self.count, self.count + costs.size).reshape(costs.shape)
        self.count += costs.size
        self.costs.append(costs.ravel())
        return numbers

    def add_rows(self, count: int, lower: float, upper: float) -> Indices:
        numbers = np.arange(self.rows, self.rows + count)
        self.rows += count
        self.limits.append((count, lower, upper))
        return numbers

    def add(self, rows: Indices, columns: Indices, sign: float) -> None:
        both = np.broadcast_arrays(rows, columns)
        self.entries.append((both[0].ravel(), both[1].ravel(), sign))

    def levels(self, number: int, source: int, sources: Indices, takers: list[tuple[int, Indices]]) -> None:
        """State a shipment by the steps of its price at each site of a taker."""
        ends = np.unique(np.concatenate([sites for _, sites in takers]))
        prices = self.charges.between(number, sources, ends)
        ordered = np.sort(prices, axis=0)
        steps = np.diff(ordered, axis=0, prepend=0)
        step, end = np.nonzero(steps)
        if not len(step):
            return
        paid = self.add_columns(steps[step, end])
        is_cheaper = prices[:, end] < ordered[step, end]
        for taker, sites in takers:
            at = np.searchsorted(sites, ends[end])
            there = np.flatnonzero(sites[np.minimum(at, len(sites) - 1)] == ends[end])
            rows = self.add_rows(len(there), 0, np.inf)
            self.add(rows, paid[there], 1)
            self.add(rows, self.choice[taker, ends[end[there]]], -1)
            cheap, which = np.nonzero(is_cheaper[:, there])
            self.add(rows[which], self.choice[source, sources[cheap]], 1)

    def flows(self, number: int, source: int, sources: Indices, takers: list[tuple[int, Indices]]) -> None:
        """State a shipment by the ways that it takes."""
        ends = np.unique(np.concatenate([sites for _, sites in takers]))
        prices = self.charges.between(number, sources, ends)
        if not prices.any():
            return
        among = np.zeros(len(ends), np.intp)
        columns = [np.searchsorted(ends, sites) for _, sites in takers]
        for at in columns:
            among[at] += 1
        shared = (among > 1) & (prices > 0)
        way = np.zeros(prices.shape, np.intp)
        way[shared] = self.add_columns(prices[shared])
        for (taker, sites), at in zip(takers, columns, strict=True):
            flow = self.add_columns(np.where(shared[:, at], 0, prices[:, at]))
            rows = self.add_rows(len(sources), 0, 0)
            self.add(rows[:, None], flow, 1)
            self.add(rows, self.choice[source, sources], -1)
            rows = self.add_rows(len(sites), 0, 0)
            self.add(rows[None], flow, 1)
            self.add(rows, self.choice[taker, sites], -1)
            both = shared[:, at]
            rows = self.add_rows(int(both.sum()), 0, np.inf)
            self.add(rows, way[:, at][both], 1)
            self.add(rows, flow[both], -1)

    def rule(self, first: int, second: int, allowed: Flags) -> None:
        """Forbid the sites of one variable that a rule does not allow with a site of another."""
        sites, others = np.flatnonzero(self.domain[first]), np.flatnonzero(self.domain[second])
        forbidden = ~allowed[np.ix_(sites, others)]
        binding = np.flatnonzero(forbidden.any(1))
        rows = self.add_rows(len(binding), -np.inf, 1)
        self.add(rows, self.choice[first, sites[binding]], 1)
        which, other = np.nonzero(forbidden[binding])
        self.add(rows[which], self.choice[second, others[other]], 1)

    def ordered(self) -> Program:
        rows = np.concatenate([rows for rows, _, _ in self.entries])
        columns = np.concatenate([columns for _, columns, _ in self.entries])
        signs = np.concatenate([np.full(len(rows), sign, np.float64) for rows, _, sign in self.entries])
        order = np.lexsort((columns, rows))
        counts, lower, upper = (np.array(figures) for figures in zip(*self.limits, strict=True))
        return Program(
            variable=self.variable,
            site=self.site,
            costs=np.concatenate(self.costs),
            lower=np.repeat(lower.astype(np.float64), counts),
            upper=np.repeat(upper.astype(np.float64), counts),
            starts=np.append(0, np.cumsum(np.bincount(rows, minlength=self.rows))),
            columns=columns[order],
            signs=signs[order],
        )


__all__ = ["Program", "program"]
