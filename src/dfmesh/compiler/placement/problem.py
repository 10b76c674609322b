"""The placement problem of one graph as arrays.

A *variable* is a set of nodes that must be at one site (a node and those beside it); a value of it is the position of
a site in declared order. A *shipment* is one output of a node with all variables that take it: it is sent once to
each site at which some of them are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph, Node
from dfmesh.compiler.placement.levels import Level, levels_of
from dfmesh.compiler.placement.plan import SECOND_DIGITS, Estimate
from dfmesh.compiler.placement.residency import Residency, residencies
from dfmesh.netir import Port, SendYield

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Shipment:
    """One output of a node and who takes it.

    Attributes:
        node: The node.
        source: Its variable.
        consumers: Other variables that take it, in order.
        amount: Bytes.
    """

    node: int
    source: int
    consumers: tuple[int, ...]
    amount: float


@dataclass(eq=False)
class Problem:
    """Everything that a placement depends on.

    Attributes:
        sites: Names, in declared order.
        home: Position of the homesite.
        variable: Variable of each node.
        members: Nodes of each variable, in order.
        domain: Which sites a variable may have, `[variable, site]`.
        compute: Seconds of each node, with the way of a yield to the homesite, `[node, site]`.
        work: Seconds of computing alone, `[node, site]`.
        source: Sending node of each edge; edges are ordered by receiving node.
        target: Receiving node of each edge.
        size: Bytes of each edge, of the largest of its tokens.
        latency: Seconds per value, `[site, site]`.
        per_byte: Seconds per byte, `[site, site]`.
        shipments: What is sent.
        yielded: Bytes that each node sends to the client.
        work_price: Money for each node's computing, `[node, site]`.
        send_price: Money per byte, `[site, site]`.
        residency: For pairs of variables, at which sites the second may be for each site of the first.
        capacity: Operations that may run at the same time, per site; infinite where nothing is declared.
    """

    sites: list[str]
    home: int
    variable: list[int]
    members: list[list[int]]
    domain: Flags
    compute: Floats
    work: Floats
    source: Indices
    target: Indices
    size: Floats
    latency: Floats
    per_byte: Floats
    shipments: list[Shipment]
    yielded: Floats
    work_price: Floats
    send_price: Floats
    capacity: Floats
    residency: dict[tuple[int, int], Flags] = field(default_factory=dict)

    @cached_property
    def delay(self) -> Floats:
        """Seconds of each edge, `[edge, site, site]`; infinite between the sites of one variable."""
        delay = self.latency[None] + self.size[:, None, None] * self.per_byte[None]
        own = np.array(self.variable, np.intp)
        elsewhere = np.full((len(self.sites), len(self.sites)), np.inf)
        np.fill_diagonal(elsewhere, 0.0)
        delay[own[self.source] == own[self.target]] = elsewhere
        return delay

    def delays(self, edge: int, sites: Sequence[Indices]) -> Floats:
        """Give the seconds of one edge between some sites of its ends, `[site of sender, site of receiver]`.

        Args:
            edge: The edge.
            sites: The sites that are looked at, by variable.
        """
        first, second = self.variable[self.source[edge]], self.variable[self.target[edge]]
        if first == second:
            return np.where(np.eye(len(sites[first]), dtype=np.bool_), 0.0, np.inf)
        between = np.ix_(sites[first], sites[second])
        delay: Floats = self.latency[between] + self.size[edge] * self.per_byte[between]
        return delay

    def leaving(self, edge: int, site: int) -> Floats:
        """Give the seconds of one edge from a site to each, `[site]`; its ends are of two variables."""
        delay: Floats = self.latency[site] + self.size[edge] * self.per_byte[site]
        return delay

    def reaching(self, edge: int, site: int) -> Floats:
        """Give the seconds of one edge from each site to one, `[site]`; its ends are of two variables."""
        delay: Floats = self.latency[:, site] + self.size[edge] * self.per_byte[:, site]
        return delay

    @cached_property
    def incoming(self) -> list[list[tuple[int, int]]]:
        """Edges of each receiving node, as edge and sending node."""
        edges: list[list[tuple[int, int]]] = [[] for _ in self.variable]
        for edge, (source, target) in enumerate(zip(self.source.tolist(), self.target.tolist(), strict=True)):
            edges[target].append((edge, source))
        return edges

    @cached_property
    def outgoing(self) -> list[list[tuple[int, int]]]:
        """Edges of each sending node, as edge and receiving node."""
        edges: list[list[tuple[int, int]]] = [[] for _ in self.variable]
        for edge, (source, target) in enumerate(zip(self.source.tolist(), self.target.tolist(), strict=True)):
            edges[source].append((edge, target))
        return edges

    @cached_property
    def limited(self) -> list[int]:
        """Sites of limited capacity."""
        return np.flatnonzero(np.isfinite(self.capacity)).tolist()

    @cached_property
    def load(self) -> Floats:
        """Seconds by which a variable busies a site, its capacity taken into account, `[variable, site]`."""
        load = np.zeros_like(self.together)
        np.divide(self.together, self.capacity[None], out=load, where=self.together > 0)
        return load

    @cached_property
    def together(self) -> Floats:
        """Seconds that the nodes of a variable compute, `[variable, site]`."""
        return self.summed(self.work)

    def summed(self, seconds: Floats) -> Floats:
        """Add up what the nodes of each variable take, `[node, site]`, as `[variable, site]`."""
        # Only what is not zero is written: for very many sites the rest of the table takes no memory.
        node, site = np.nonzero(seconds)
        summed = np.zeros(self.domain.shape)
        np.add.at(summed, (np.array(self.variable, np.intp)[node], site), seconds[node, site])
        return summed

    @cached_property
    def levels(self) -> tuple[list[Level], list[Level]]:
        """Nodes that have inputs, in levels; and those that have receivers, from the last."""
        pairs = list(zip(self.source.tolist(), self.target.tolist(), strict=True))
        count = len(self.variable)
        return levels_of(count, [(target, source) for source, target in pairs]), levels_of(count, pairs)

    def _at(self, chosen: list[int]) -> tuple[Floats, Floats]:
        """Give the seconds of each node and of each edge in a complete placement."""
        site = np.array(chosen, np.intp)[np.array(self.variable, np.intp)]
        ways = site[self.source], site[self.target]
        delay = self.latency[ways] + self.size * self.per_byte[ways]
        return self.compute[np.arange(len(site)), site], delay

    def finishes(self, chosen: list[int]) -> list[float]:
        """Tell when each node ends in a complete placement."""
        compute, delay = self._at(chosen)
        ends = compute.copy()
        for level in self.levels[0]:
            arrivals = ends[self.source[level.edges]] + delay[level.edges]
            ends[level.nodes] += np.maximum.reduceat(arrivals, level.starts)
        found: list[float] = ends.tolist()
        return found

    def following(self, chosen: list[int]) -> list[float]:
        """Give the time that passes after each node of a complete placement."""
        compute, delay = self._at(chosen)
        tails = np.zeros_like(compute)
        for level in self.levels[1]:
            targets = self.target[level.edges]
            tails[level.nodes] = np.maximum.reduceat(
                delay[level.edges] + compute[targets] + tails[targets], level.starts
            )
        found: list[float] = tails.tolist()
        return found

    def seconds(self, chosen: list[int]) -> float:
        """Seconds of a complete placement, not rounded."""
        path = max(self.finishes(chosen), default=0.0)
        if not self.limited:
            return path
        busy = self.load[np.arange(len(chosen)), chosen]
        return max(path, float(np.bincount(chosen, busy, len(self.sites)).max()))

    def estimate(self, chosen: list[int]) -> Estimate:
        """Estimate a complete placement, one site per variable."""
        moved = money = 0.0
        for shipment in self.shipments:
            start = chosen[shipment.source]
            for end in sorted({chosen[consumer] for consumer in shipment.consumers} - {start}):
                moved += shipment.amount
                money += shipment.amount * self.send_price[start, end].item()
        away = rank = 0
        for node, variable in enumerate(self.variable):
            site = chosen[variable]
            money += self.work_price[node, site].item()
            if site != self.home:
                moved += self.yielded[node].item()
                money += self.yielded[node].item() * self.send_price[site, self.home].item()
                away += 1
            rank += site
        return Estimate(round(self.seconds(chosen), SECOND_DIGITS), moved, away, rank, money)

    def allows(self, chosen: list[int]) -> bool:
        """Tell whether a complete placement keeps all rules."""
        return all(self.domain[variable, site] for variable, site in enumerate(chosen)) and all(
            allowed[chosen[first], chosen[second]] for (first, second), allowed in self.residency.items()
        )

    def within(self, domain: Flags) -> Problem:
        """Give the same problem with other sites for its variables, `[variable, site]`."""
        other = Problem(**{name: getattr(self, name) for name in self.__dataclass_fields__} | {"domain": domain})
        known = {"load": self.load} | {name: self.__dict__[name] for name in _OF_ALL_DOMAINS if name in self.__dict__}
        other.__dict__.update(known)
        return other

    def without(self, variable: int, site: int) -> Problem:
        """Give the same problem with one site forbidden to one variable."""
        domain = self.domain.copy()
        domain[variable, site] = False
        return self.within(domain)


_OF_ALL_DOMAINS = ("delay", "incoming", "outgoing", "limited", "together", "levels")
"""What is computed once, the same for all domains; some of it can be very large."""


def build(graph: Graph, costs: Costs, homesite: str, sites: list[str]) -> Problem:
    """State the problem of a graph.

    Args:
        graph: Its nodes without candidates may be at any site.
        costs: Of that graph.
        homesite: Where the client attaches.
        sites: All sites in declared order.
    """
    return _Building(graph, costs, homesite, sites).problem()


def variables(graph: Graph) -> tuple[list[int], list[list[int]]]:
    """Give the variable of each node, and the nodes of each variable."""
    variable: list[int] = []
    members: list[list[int]] = []
    for node in graph.nodes:
        if node.beside is None:
            members.append([])
        variable.append(len(members) - 1 if node.beside is None else variable[node.beside])
        members[variable[-1]].append(node.index)
    return variable, members


class _Building:
    def __init__(self, graph: Graph, costs: Costs, homesite: str, sites: list[str]) -> None:
        self.graph = graph
        self.costs = costs
        self.sites = sites
        self.order = {site: position for position, site in enumerate(sites)}
        self.home = self.order[homesite]
        self.variable, self.members = variables(graph)

    def problem(self) -> Problem:
        latency, per_byte, send_price = self.costs.tables(self.sites)
        work, work_price, compute = self.work()
        self.add_yielding(compute, latency, per_byte)
        edges = sorted((target, source, size) for (source, target), size in self.edges().items())
        problem = Problem(
            sites=self.sites,
            home=self.home,
            variable=self.variable,
            members=self.members,
            domain=self.domain(),
            compute=compute,
            work=work,
            source=np.array([source for _, source, _ in edges], np.intp),
            target=np.array([target for target, _, _ in edges], np.intp),
            size=np.array([size for _, _, size in edges], np.float64),
            latency=latency,
            per_byte=per_byte,
            shipments=self.shipments(),
            yielded=np.array([self.yielded(node) for node in self.graph.nodes], np.float64),
            work_price=work_price,
            send_price=send_price,
            capacity=np.array([self.costs.capacity(site) or np.inf for site in self.sites], np.float64),
        )
        for rule in residencies(self.graph, self.costs, self.sites):
            self.restrict(problem, rule)
        return problem

    def work(self) -> tuple[Floats, Floats, Floats]:
        """Give seconds, money, and once more the seconds, which are not written where they are zero."""
        shape = len(self.graph.nodes), len(self.sites)
        seconds, money, compute = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for node in self.graph.nodes:
            for site in node.candidates or ():
                place = node.index, self.order[site]
                seconds[place] = compute[place] = self.costs.compute(node, site)
                money[place] = self.costs.compute_price(node, site)
        return seconds, money, compute

    def yielded(self, node: Node) -> float:
        return self.costs.sizes[node.index] if isinstance(node.action, SendYield) else 0.0

    def add_yielding(self, seconds: Floats, latency: Floats, per_byte: Floats) -> None:
        for node in self.graph.nodes:
            if isinstance(node.action, SendYield):
                seconds[node.index] += latency[:, self.home] + self.yielded(node) * per_byte[:, self.home]

    def domain(self) -> Flags:
        domain = np.ones((len(self.members), len(self.sites)), np.bool_)
        for node in self.graph.nodes:
            if node.candidates is not None:
                allowed = np.zeros(len(self.sites), np.bool_)
                allowed[[self.order[site] for site in node.candidates]] = True
                domain[self.variable[node.index]] &= allowed
        return domain

    def edges(self) -> dict[tuple[int, int], float]:
        largest: dict[tuple[int, int], float] = {}
        for node in self.graph.nodes:
            for edge in node.edges:
                if edge.source is not None:
                    pair = (edge.source, node.index)
                    largest[pair] = max(self.costs.carried(edge.source, edge.port), largest.get(pair, 0.0))
        return largest

    def shipments(self) -> list[Shipment]:
        takers: dict[tuple[int, Port], dict[int, None]] = {}
        for node in self.graph.nodes:
            for edge in node.edges:
                if edge.source is not None and self.variable[edge.source] != self.variable[node.index]:
                    takers.setdefault((edge.source, edge.port), {})[self.variable[node.index]] = None
        return [
            Shipment(source, self.variable[source], tuple(sorted(consumers)), amount)
            for (source, port), consumers in takers.items()
            if (amount := self.costs.carried(source, port)) > 0
        ]

    def restrict(self, problem: Problem, rule: Residency) -> None:
        """Add one node's residency: who takes its value, in whatever ways, must be where it may go."""
        first = self.variable[rule.node]
        if rule.reaches_client:
            problem.domain[first] &= rule.clients[:, self.home]
        for taker in rule.takers:
            second = self.variable[taker]
            if first == second:
                continue
            known = problem.residency.get((first, second))
            problem.residency[first, second] = rule.allowed if known is None else known & rule.allowed


__all__ = ["Flags", "Floats", "Indices", "Problem", "Shipment", "Whole", "build", "variables"]
