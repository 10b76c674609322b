"""Why nothing can be placed: the smallest set of rules that contradict one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph
from dfmesh.compiler.placement.consistency import Rows, consistent
from dfmesh.compiler.placement.problem import Flags, variables
from dfmesh.compiler.placement.residency import value_takers
from dfmesh.errors import Fault, SourceLocation
from dfmesh.netir import SendYield

CHECKS = 3_000
"""Sets of rules that are tried out for a smaller one."""

STEPS = 20_000
"""Choices looked at per set of rules; one that takes more counts as free of contradiction."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Sites that may run a node (`there` is None), or that may have the results of one site (or one adapter)."""

    node: int
    here: str = ""
    location: SourceLocation | None = None


class _Rules:
    def __init__(self, graph: Graph, costs: Costs, homesite: str, sites: list[str]) -> None:
        self.graph = graph
        self.costs = costs
        self.homesite = homesite
        self.sites = sites
        self.takers = value_takers(graph)
        self._order = {site: position for position, site in enumerate(sites)}
        self._variable = variables(graph)[0]

    def all(self) -> list[_Rule]:
        found = []
        for node in self.graph.nodes:
            if node.candidates is not None:
                found.append(_Rule(node.index))
            for site in node.candidates or ():
                rule = self.costs.residency(node, site)
                if rule is not None:
                    found.append(_Rule(node.index, site, rule.location))
        return found

    def contradict(self, rules: Iterable[_Rule]) -> bool:
        """Tell whether no placement keeps a set of rules; what is not one of them is free."""
        domain: dict[int, Flags] = {}
        pairs: dict[tuple[int, int], Rows] = {}
        for rule in rules:
            first = self._variable[rule.node]
            if not rule.here:
                self._restrict(domain, first, self._among(self.graph.nodes[rule.node].candidates or ()))
                continue
            self._restrict(domain, first, None)
            allowed = self._allowed(rule)
            here = self._order[rule.here]
            if self._keeps_from_client(rule):
                self._restrict(domain, first, np.arange(len(self.sites)) != here)
            for second in sorted({self._variable[taker] for taker in self.takers[rule.node]} - {first}):
                self._restrict(domain, second, None)
                rows = pairs.setdefault((first, second), {})
                rows[here] = rows[here] & allowed if here in rows else allowed
        found = consistent(domain, pairs, STEPS)
        return found.complete and found.sites is None

    def around(self, node: int) -> list[_Rule]:
        """Give the rules for one value: where it may be made and go to, and where those who take it may be."""
        found = [_Rule(node)] if self.graph.nodes[node].candidates is not None else []
        for site in self.graph.nodes[node].candidates or ():
            rule = self.costs.residency(self.graph.nodes[node], site)
            if rule is not None:
                found.append(_Rule(node, site, rule.location))
        return found + [
            _Rule(taker) for taker in sorted(self.takers[node]) if self.graph.nodes[taker].candidates is not None
        ]

    def _restrict(self, domain: dict[int, Flags], variable: int, allowed: Flags | None) -> None:
        known = domain.get(variable)
        if known is None:
            known = np.ones(len(self.sites), np.bool_)
        domain[variable] = known if allowed is None else known & allowed

    def _among(self, names: Iterable[str]) -> Flags:
        among = np.zeros(len(self.sites), np.bool_)
        among[[self._order[name] for name in names if name in self._order]] = True
        return among

    def _allowed(self, rule: _Rule) -> Flags:
        kept = self.costs.residency(self.graph.nodes[rule.node], rule.here)
        return self._among([rule.here, *(kept.sites if kept is not None else self.sites)])

    def _reaches_client(self, node: int) -> bool:
        return any(isinstance(self.graph.nodes[taker].action, SendYield) for taker in self.takers[node])

    def _keeps_from_client(self, rule: _Rule) -> bool:
        kept = self.costs.residency(self.graph.nodes[rule.node], rule.here)
        return kept is not None and self.homesite not in kept.sites and self._reaches_client(rule.node)

    def fault(self, rule: _Rule) -> Fault:
        node = self.graph.nodes[rule.node]
        if not rule.here:
            which = " or ".join(node.candidates or ()) or "no site"
            return Fault(f"{node.name} ({node.node}) can only run at {which}", _location(node.location))
        kept = self.costs.residency(node, rule.here)
        where = ", ".join(kept.sites) if kept is not None and kept.sites else "no other site"
        takers = [self.graph.nodes[taker] for taker in sorted(self.takers[node.index])]
        used = ", ".join(f"{taker.name} ({taker.location or taker.node})" for taker in takers[:3])
        hint = f"they are used by {used}"
        if self._keeps_from_client(rule):
            where += f", and not to clients of {self.homesite}"
            hint += f"; clients of {self.homesite} may have them if this rule names {self.homesite}"
        return Fault(
            f"results of {node.name} ({node.node}) made at {rule.here} may go to {where}", rule.location, hint=hint
        )


def conflict(graph: Graph, costs: Costs, homesite: str, sites: list[str]) -> list[Fault]:
    """Name the smallest set of rules that leaves no placement, the user's lines with them.

    One fault lists them all; the rules follow, one fault each, where they stand.
    """
    rules = _Rules(graph, costs, homesite, sites)
    kept = _smaller(rules, _minimal(rules, rules.all()))
    faults = [rules.fault(rule) for rule in kept]
    user = next((fault.location for rule, fault in zip(kept, faults, strict=True) if not rule.here), None)
    yields = any(isinstance(node.action, SendYield) for node in graph.nodes)
    home = f"; results that are yielded go to the homesite {homesite}" if yields else ""
    head = Fault(
        f"{len(kept)} rule{'s' * (len(kept) != 1)} cannot all be kept: "
        + "; ".join(fault.message for fault in faults)
        + home,
        user,
        hint="let one of them give: choose another site in the pipeline, or ask the owner of the data",
    )
    return [head, *faults]


def _minimal(rules: _Rules, kept: list[_Rule]) -> list[_Rule]:
    """Drop rules, in large parts first, as long as the rest still contradict one another."""
    size = max(1, len(kept) // 2)
    while True:
        index = 0
        while index < len(kept):
            rest = kept[:index] + kept[index + size :]
            if rest and rules.contradict(rest):
                kept = rest
            else:
                index += size
        if size == 1:
            return kept
        size //= 2


def _smaller(rules: _Rules, kept: list[_Rule]) -> list[_Rule]:
    """Look for a smaller set: around each value, then among all rules as far as the number of checks reaches."""
    every = rules.all()
    for node in rules.graph.nodes:
        around = rules.around(node.index)
        if any(rule.here for rule in around) and rules.contradict(around):
            found = _minimal(rules, around)
            if len(found) < len(kept):
                kept = found
    checks = 0
    for size in range(1, len(kept)):
        for some in combinations(every, size):
            checks += 1
            if checks > CHECKS:
                return kept
            if any(rule.here for rule in some) and rules.contradict(some):
                return list(some)
    return kept


def _location(text: str) -> SourceLocation | None:
    file, _, line = text.rpartition(":")
    return SourceLocation(file, int(line)) if file and line.isdigit() else None


__all__ = ["conflict"]
