"""Making good placements: one variable after the other with a look at what must follow, then one by one better."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.critical import rerouted
from dfmesh.compiler.placement.problem import Flags, Floats, Problem, Whole
from dfmesh.compiler.placement.windows import NANOSECOND, TOLERANCE

CRITICAL = 0.95
"""Share of the longest path from which on a path is worth shortening."""

SWEEPS = 8
"""How often all variables are looked at again at most."""


class Neighbours:
    """What a variable is charged given the sites of others.

    Attributes:
        taken: Shipments that each variable takes.
        sent: Shipments that each variable sends.
    """

    def __init__(self, problem: Problem, charges: Charges) -> None:
        self.problem = problem
        self.charges = charges
        self._everywhere = np.arange(len(problem.sites))
        self.taken: list[list[int]] = [[] for _ in problem.members]
        self.sent: list[list[int]] = [[] for _ in problem.members]
        for number, shipment in enumerate(problem.shipments):
            self.sent[shipment.source].append(number)
            for consumer in shipment.consumers:
                self.taken[consumer].append(number)
        self._where = [itemgetter(*shipment.consumers) for shipment in problem.shipments]

    def at(self, variable: int, chosen: list[int], *, but: int = -1) -> Whole:
        """Give the charge of a variable and of all it takes and sends, for each of its sites.

        Args:
            variable: The variable.
            chosen: Site of each other variable; -1 for those that are still open, which cost nothing.
            but: A shipment that is left out.
        """
        charges, shipments = self.charges, self.problem.shipments
        charge: Whole = self.charges.own[variable].copy()
        for number in self.taken[variable]:
            start = chosen[shipments[number].source]
            if start >= 0 and number != but:
                row = charges.sending(number, start)
                row[self._taken_to(number, variable, chosen)] = 0
                charge += row
        for number in self.sent[variable]:
            ends = sorted({chosen[consumer] for consumer in shipments[number].consumers} - {-1})
            if ends:
                charge += charges.between(number, self._everywhere, np.array(ends, np.intp)).sum(1)
        return charge

    def _taken_to(self, number: int, variable: int, chosen: list[int]) -> list[int]:
        """Give the sites to which a shipment goes for others than one of those who take it."""
        if len(self.problem.shipments[number].consumers) == 1:
            return []
        there = self._where[number](chosen)
        sites = set(there)
        if there.count(chosen[variable]) == 1:
            sites.discard(chosen[variable])
        return list(sites - {-1})


def allowed_sites(problem: Problem, rules: list[list[tuple[int, Flags]]], variable: int, chosen: list[int]) -> Flags:
    """Give the sites that a variable may have by its domain and the residency rules, given others' sites."""
    allowed: Flags = problem.domain[variable].copy()
    for other, table in rules[variable]:
        if chosen[other] >= 0:
            allowed &= table[:, chosen[other]]
    return allowed


def rules_of(problem: Problem) -> list[list[tuple[int, Flags]]]:
    """Give for each variable the rules with others, as `[own site, site of the other]`."""
    rules: list[list[tuple[int, Flags]]] = [[] for _ in problem.members]
    for (first, second), allowed in problem.residency.items():
        rules[first].append((second, allowed))
        rules[second].append((first, allowed.T))
    return rules


class Scheduler:
    """Makes placements of one problem.

    Attributes:
        problem: The problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._rules = rules_of(problem)

    def dive(self, domain: Flags, heads: Floats, tails: Floats, neighbours: Neighbours) -> list[int] | None:
        """Fix variable by variable where it is charged least, then where the whole ends first, as far as can be seen.

        Args:
            domain: Sites to choose from.
            heads: Least ends in those domains.
            tails: Least times that follow.
            neighbours: What is charged.

        Returns:
            Site of each variable; None if a residency rule left no site for one of them.
        """
        problem = self.problem
        chosen = [-1] * len(problem.members)
        ends: list[float | None] = [None] * len(problem.variable)
        busy = np.zeros(len(problem.sites))
        for variable, members in enumerate(problem.members):
            allowed = allowed_sites(problem, self._rules, variable, chosen)
            may = domain[variable] & allowed
            sites = np.flatnonzero(may if may.any() else allowed)
            if not len(sites):
                return None
            rows = self._rows(variable, chosen, ends, heads)
            longest = np.maximum.reduce([rows[node] + tails[node] for node in members])
            if problem.limited:
                longest = np.maximum(longest, busy + problem.load[variable])
            charge = neighbours.at(variable, chosen)
            site = int(sites[np.lexsort((longest[sites], charge[sites]))[0]])
            chosen[variable] = site
            busy[site] += problem.load[variable, site]
            for node in members:
                ends[node] = rows[node][site].item()
        return chosen

    def _rows(self, variable: int, chosen: list[int], ends: list[float | None], heads: Floats) -> dict[int, Floats]:
        """Give the ends of a variable's nodes at each site, given the others' sites."""
        problem = self.problem
        rows: dict[int, Floats] = {}
        for node in problem.members[variable]:
            start = np.zeros(len(problem.sites))
            for edge, source in problem.incoming[node]:
                if source in rows:
                    start = np.maximum(start, rows[source])
                elif (end := ends[source]) is not None:
                    start = np.maximum(start, end + problem.delay[edge, chosen[problem.variable[source]]])
                else:
                    start = np.maximum(start, heads[node] - problem.compute[node])
            rows[node] = start + problem.compute[node]
        return rows

    def improve(self, chosen: list[int], neighbours: Neighbours, limit: float, budget: int) -> list[int]:
        """Move single variables to where they are charged less, within a limit of seconds.

        Args:
            chosen: A placement within the limit.
            neighbours: What is charged.
            limit: Seconds; infinite if time does not matter.
            budget: Variables that may be looked at.
        """
        chosen = list(chosen)
        for _ in range(SWEEPS):
            known = list(chosen)
            budget -= len(chosen)
            if budget < 0:
                break
            self._sweep(chosen, neighbours, limit)
            if np.isfinite(limit) and self.problem.seconds(chosen) > limit + TOLERANCE:
                return known
            if chosen == known:
                break
        return chosen

    def hasten(self, chosen: list[int], budget: int) -> list[int]:
        """Make a placement faster, along its critical path or variable by variable, as long as that helps.

        Args:
            chosen: A placement.
            budget: Variables that may be looked at.
        """
        best, seconds = chosen, self.problem.seconds(chosen)
        while budget > 0:
            trial = self._rerouted(best)
            budget -= len(chosen) // 4
            if trial is None or (faster := self.problem.seconds(trial)) >= seconds - NANOSECOND / 2:
                trial = list(best)
                self._sweep(trial, None, np.inf)
                budget -= len(chosen)
                faster = self.problem.seconds(trial)
            if faster >= seconds - NANOSECOND / 2:
                break
            best, seconds = trial, faster
        return best

    def _rerouted(self, chosen: list[int]) -> list[int] | None:
        problem = self.problem
        allowed = [allowed_sites(problem, self._rules, variable, chosen) for variable in range(len(chosen))]
        trial = rerouted(problem, chosen, problem.finishes(chosen), problem.following(chosen), allowed)
        return trial if trial is not None and problem.allows(trial) else None

    def _sweep(self, chosen: list[int], neighbours: Neighbours | None, limit: float) -> None:
        """Look at every variable once, in order: ends before it are kept up to date, times after it have not changed.

        A variable whose nodes are not next to one another may move where it is late after all; the caller looks.
        """
        problem = self.problem
        tails = problem.following(chosen)
        ends = problem.finishes(chosen)
        busy = np.bincount(chosen, problem.load[np.arange(len(chosen)), chosen], len(problem.sites))
        critical = CRITICAL * max(ends, default=0.0) if neighbours is None else 0.0
        for variable, members in enumerate(problem.members):
            here = chosen[variable]
            may = allowed_sites(problem, self._rules, variable, chosen)
            if may.sum() > 1 and max(ends[node] + tails[node] for node in members) >= critical:
                late = self.late(variable, chosen, ends, tails)
                if problem.limited:
                    late = np.maximum(late, busy + np.where(np.arange(len(busy)) == here, 0, problem.load[variable]))
                chosen[variable] = _move(
                    here, may, late, None if neighbours is None else neighbours.at(variable, chosen), limit
                )
                busy[here] -= problem.load[variable, here]
                busy[chosen[variable]] += problem.load[variable, chosen[variable]]
            for node in members:
                ends[node] = self._end(node, chosen, ends)

    def _end(self, node: int, chosen: list[int], ends: list[float]) -> float:
        problem = self.problem
        site = chosen[problem.variable[node]]
        start = 0.0
        for edge, source in problem.incoming[node]:
            way = chosen[problem.variable[source]], site
            start = max(
                start, ends[source] + (problem.latency[way] + problem.size[edge] * problem.per_byte[way]).item()
            )
        return float(start + problem.compute[node, site])

    def late(self, variable: int, chosen: list[int], ends: list[float], tails: list[float]) -> Floats:
        """Give the longest path through a variable for each of its sites, all others left where they are."""
        problem = self.problem
        rows: dict[int, Floats] = {}
        longest = np.zeros(len(problem.sites))
        for node in problem.members[variable]:
            start = np.zeros(len(problem.sites))
            for edge, source in problem.incoming[node]:
                if source in rows:
                    start = np.maximum(start, rows[source])
                else:
                    start = np.maximum(start, ends[source] + problem.leaving(edge, chosen[problem.variable[source]]))
            rows[node] = start + problem.compute[node]
            longest = np.maximum(longest, rows[node])
            for edge, target in problem.outgoing[node]:
                other = problem.variable[target]
                if other != variable:
                    rest = problem.compute[target, chosen[other]] + tails[target]
                    longest = np.maximum(longest, rows[node] + problem.reaching(edge, chosen[other]) + rest)
        return longest


def _move(here: int, may: Flags, late: Floats, charge: Whole | None, limit: float) -> int:
    """Choose the site of least charge within a limit of seconds; without charges, of the shortest longest path."""
    if charge is None:
        best = int(np.where(may, late, np.inf).argmin())
        return best if late[best] < late[here] - NANOSECOND / 2 else here
    cheaper = may & (charge < charge[here]) & (late <= limit + TOLERANCE)
    sites = np.flatnonzero(cheaper)
    return int(sites[charge[sites].argmin()]) if len(sites) else here


__all__ = ["Neighbours", "Scheduler"]
