"""Making a placement cheaper: many variables are chosen anew at once, the others left where they are.

Those chosen anew are drawn so that what they are charged together forms trees, on which the best choice is found
exactly. A shipment with many takers would allow next to nothing of this; the sites that it goes to already are
taken as they are for it, so that the outcome has to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from dfmesh.compiler.placement.charges import Charges
from dfmesh.compiler.placement.messages import FORBIDDEN
from dfmesh.compiler.placement.problem import Indices, Problem, Whole
from dfmesh.compiler.placement.schedule import rules_of

MANY_TAKERS = 8
"""Takers from which on a shipment's destinations are taken as they are."""


class Forests:
    """Improves placements of one problem; the same calls give the same outcome."""

    def __init__(self, problem: Problem, charges: Charges, sites: Sequence[Indices]) -> None:
        """Note who is charged together with whom.

        Args:
            problem: The problem.
            charges: What is charged.
            sites: Sites to choose from, by variable.
        """
        self.problem = problem
        self.charges = charges
        self.sites = sites
        self._random = Random(0)  # noqa: S311
        self._rules = rules_of(problem)
        self._near: list[set[int]] = [set() for _ in problem.members]
        together = [
            (shipment.source, *shipment.consumers)
            for shipment in problem.shipments
            if len(shipment.consumers) < MANY_TAKERS
        ]
        for group in [*together, *problem.residency]:
            for variable in group:
                self._near[variable].update(set(group) - {variable})

    def improve(self, chosen: list[int], total: int, rounds: int) -> tuple[list[int], int]:
        """Choose anew as often as is said, and give the cheapest placement with its charges."""
        for _ in range(rounds):
            other = _Replanning(self, chosen, self._draw()).run()
            found = self.charges.total(self.problem, other)
            if found <= total and self.problem.allows(other):
                chosen, total = other, found
        return chosen, total

    def _draw(self) -> list[bool]:
        group = list(range(len(self._near)))

        def root(variable: int) -> int:
            while group[variable] != variable:
                group[variable] = group[group[variable]]
                variable = group[variable]
            return variable

        drawn = [False] * len(group)
        order = list(range(len(group)))
        self._random.shuffle(order)
        for variable in order:
            if len(self.sites[variable]) > 1:
                roots = [root(other) for other in self._near[variable] if drawn[other]]
                if len(set(roots)) == len(roots):
                    drawn[variable] = True
                    for other in roots:
                        group[other] = variable
        return drawn


class _Replanning:
    """One choice of the drawn variables."""

    def __init__(self, forests: Forests, chosen: list[int], drawn: list[bool]) -> None:
        self._charges = forests.charges
        self._sites = forests.sites
        self._chosen = chosen
        self._drawn = drawn
        self._own: dict[int, Whole] = {
            variable: self._charges.own[variable][self._sites[variable]].copy()
            for variable, is_drawn in enumerate(drawn)
            if is_drawn
        }
        self._links: dict[int, list[tuple[int, Whole]]] = {variable: [] for variable in self._own}
        for number, shipment in enumerate(forests.problem.shipments):
            self._ship(number, shipment.source, shipment.consumers)
        for variable in self._own:
            for other, allowed in forests._rules[variable]:
                if drawn[other]:
                    if variable < other:
                        table = allowed[np.ix_(self._sites[variable], self._sites[other])]
                        self._link(variable, other, np.where(table, 0, FORBIDDEN))
                else:
                    self._own[variable] += np.where(allowed[self._sites[variable], chosen[other]], 0, FORBIDDEN)

    def _link(self, first: int, second: int, table: Whole) -> None:
        self._links[first].append((second, table))
        self._links[second].append((first, table.T))

    def _ship(self, number: int, source: int, consumers: tuple[int, ...]) -> None:
        drawn, chosen, sites = self._drawn, self._chosen, self._sites
        takers = [consumer for consumer in consumers if drawn[consumer]]
        if not takers and not drawn[source]:
            return
        exact = len(consumers) < MANY_TAKERS
        there = np.unique([chosen[consumer] for consumer in consumers if not (exact and drawn[consumer])]).astype(
            np.intp
        )
        if drawn[source]:
            self._own[source] += self._charges.between(number, sites[source], there).sum(1)
            for taker in takers if exact else ():
                table = self._charges.between(number, sites[source], sites[taker])
                table[:, np.isin(sites[taker], there)] = 0
                self._link(source, taker, table)
            return
        row = self._charges.sending(number, chosen[source])
        row[there] = 0
        for taker in takers:
            self._own[taker] += row[sites[taker]]
        if exact and len(takers) == 2:  # More are never drawn: they would not form trees.
            first, second = takers
            same = sites[first][:, None] == sites[second][None]
            self._link(first, second, np.where(same, -row[sites[first]][:, None], 0))

    def run(self) -> list[int]:
        found = list(self._chosen)
        seen: set[int] = set()
        for start in self._own:
            if start not in seen:
                self._plan_tree(start, seen, found)
        return found

    def _plan_tree(self, start: int, seen: set[int], found: list[int]) -> None:
        order: list[tuple[int, int, dict[int, Whole]]] = [(start, -1, {})]
        seen.add(start)
        for variable, _, _ in order:
            tables: dict[int, Whole] = {}
            for other, table in self._links[variable]:
                if other not in seen or other in tables:
                    tables[other] = tables[other] + table if other in tables else table
                    seen.add(other)
            order += [(other, variable, {variable: table.T}) for other, table in tables.items()]
        best: dict[int, Indices] = {}
        for variable, above, tables in reversed(order):
            if above >= 0:
                ways = tables[above] + self._own[variable][:, None]
                best[variable] = ways.argmin(0)
                self._own[above] = self._own[above] + ways.min(0)
        at = {start: int(self._own[start].argmin())}
        for variable, above, _ in order[1:]:
            at[variable] = int(best[variable][at[above]])
        for variable, position in at.items():
            found[variable] = int(self._sites[variable][position])


__all__ = ["Forests"]
