"""Why nothing can be placed: the smallest set of rules that contradict one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph, Node
from dfmesh.compiler.placement.ordering import search_order
from dfmesh.compiler.placement.problem import Problem, build
from dfmesh.compiler.placement.relaxation import Relaxation
from dfmesh.compiler.placement.residency import value_takers
from dfmesh.compiler.placement.search import Search
from dfmesh.compiler.placement.windows import keep_residency
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
        self.problem = build(graph, costs, homesite, sites)
        self.order = search_order(self.problem)

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
        """Tell whether no placement keeps a set of rules."""
        problem = self.under(set(rules))
        domain = problem.domain.copy()
        if not keep_residency(problem, domain):
            return True
        relaxation = Relaxation(problem, None, self.order, domain, 1)
        tails = np.zeros_like(problem.compute)
        search = Search(
            problem, relaxation, None, self.order, tails, limit=np.inf, floor=np.inf, goal_seconds=True, budget=STEPS
        )
        search.run()
        return search.complete and search.best is None

    def under(self, rules: set[_Rule]) -> Problem:
        """State the problem under some of the rules; what is not kept as a rule is free."""
        problem = self.problem.without(0, 0)
        problem.domain[:] = True
        problem.residency = {}
        problem.compute = np.zeros_like(problem.compute)
        order = {site: position for position, site in enumerate(self.sites)}
        for rule in sorted(rules, key=lambda rule: (rule.node, rule.here)):
            node = self.graph.nodes[rule.node]
            variable = problem.variable[rule.node]
            if not rule.here:
                may = np.zeros(len(self.sites), np.bool_)
                may[[order[site] for site in node.candidates or ()]] = True
                problem.domain[variable] &= may
            else:
                self._reside(problem, node, order[rule.here], rule.here)
        return problem

    def _reside(self, problem: Problem, node: Node, here: int, name: str) -> None:
        allowed = self._allowed(node, here, name)
        first = problem.variable[node.index]
        takers = self.takers[node.index]
        if any(isinstance(self.graph.nodes[taker].action, SendYield) for taker in takers):
            problem.domain[first] &= allowed[:, problem.home]
        for second in sorted({problem.variable[taker] for taker in takers} - {first}):
            known = problem.residency.get((first, second))
            problem.residency[first, second] = allowed if known is None else known & allowed

    def _allowed(self, node: Node, here: int, name: str) -> np.ndarray:
        rule = self.costs.residency(node, name)
        allowed = np.ones((len(self.sites), len(self.sites)), np.bool_)
        if rule is not None:
            allowed[here] = [site == name or site in rule.sites for site in self.sites]
        return allowed

    def fault(self, rule: _Rule) -> Fault:
        node = self.graph.nodes[rule.node]
        if not rule.here:
            which = " or ".join(node.candidates or ()) or "no site"
            return Fault(f"{node.name} ({node.node}) can only run at {which}", _location(node.location))
        kept = self.costs.residency(node, rule.here)
        where = ", ".join(kept.sites) if kept is not None and kept.sites else "no other site"
        takers = [self.graph.nodes[taker] for taker in sorted(self.takers[node.index])]
        used = ", ".join(f"{taker.name} ({taker.location or taker.node})" for taker in takers[:3])
        return Fault(
            f"results of {node.name} ({node.node}) made at {rule.here} may go to {where}",
            rule.location,
            hint=f"they are used by {used}",
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
    """Look for a smaller set among all rules, smallest first, as far as the number of checks reaches."""
    every = rules.all()
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
