"""Random placement problems, stated as graphs with costs from tables, and their exhaustive solution."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import numpy as np

from dfmesh.compiler.graph import Edge, Graph, Node
from dfmesh.config import ResidencyRule
from dfmesh.errors import SourceLocation
from dfmesh.netir import Call, Collect, Evaluate, Port, Role, SendYield, constant

HERE = SourceLocation("federation.dfm.yaml", 7)


@dataclass
class TableCosts:
    """What `Costs` gives, from tables."""

    sites: list[str]
    sizes: list[float]
    seconds: dict[tuple[int, str], float]
    links: dict[tuple[str, str], tuple[float, float]]
    prices: dict[str, float] = field(default_factory=dict)
    send_prices: dict[tuple[str, str], float] = field(default_factory=dict)
    capacities: dict[str, int] = field(default_factory=dict)
    residencies: dict[tuple[int, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def has_residency(self) -> bool:
        return bool(self.residencies)

    def residency(self, node: Node, site: str) -> ResidencyRule | None:
        found = self.residencies.get((node.index, site))
        return None if found is None else ResidencyRule(found, HERE)

    def capacity(self, site: str) -> int | None:
        return self.capacities.get(site)

    def compute(self, node: Node, site: str) -> float:
        return self.seconds.get((node.index, site), 0.0)

    def compute_price(self, node: Node, site: str) -> float:
        return self.compute(node, site) * self.prices.get(site, 0.0)

    def send_price(self, source: str, destination: str) -> float:
        return self.send_prices.get((source, destination), 0.0)

    def link(self, source: str, destination: str) -> tuple[float, float]:
        return self.links[source, destination]

    def links_between(self, a: str, b: str) -> tuple[float, float, float]:
        return (0.0, 0.0, 0.0) if a == b else (*self.link(a, b), self.send_price(a, b))

    def tables(self, sites: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        figures = np.array([[self.links_between(a, b) for b in sites] for a in sites], np.float64)
        return figures[:, :, 0].copy(), figures[:, :, 1].copy(), figures[:, :, 2].copy()

    def transfer(self, size: float, source: str, destination: str) -> float:
        if source == destination:
            return 0.0
        latency, per_byte = self.links[source, destination]
        return latency + size * per_byte

    def carried(self, source: int, port: Port) -> float:
        if port is Port.VALUE:
            return self.sizes[source]
        return 1024.0 if port is Port.ELEMENT else 0.0


@dataclass
class Stated:
    """A problem: graph, costs, homesite."""

    graph: Graph
    costs: TableCosts
    home: str

    @property
    def sites(self) -> list[str]:
        return self.costs.sites


class Maker:
    """Makes random problems from one seed."""

    def __init__(self, seed: object, sites: int) -> None:
        self.random = random.Random(repr(seed))
        self.sites = [f"s{index}" for index in range(sites)]
        self.graph = Graph()
        self.costs = TableCosts(self.sites, [], {}, self._links())

    def _links(self) -> dict[tuple[str, str], tuple[float, float]]:
        draw, alike = self.random, self.random.random() < 0.3
        one = (draw.choice([0.0, 0.001, 0.5]), draw.choice([1e-8, 1e-7]))
        return {
            (a, b): one if alike else (round(draw.uniform(0, 1), 3), draw.choice([0.0, 1e-8, 3e-7, 1e-6]))
            for a in self.sites
            for b in self.sites
            if a != b
        }

    def operation(self, sources: list[int], candidates: int | None = None) -> int:
        draw = self.random
        count = min(candidates or draw.randint(1, len(self.sites)), len(self.sites))
        allowed = tuple(sorted(draw.sample(self.sites, count)))
        index = self.node(sources, Call("op", None, {}), allowed)
        coarse = draw.random() < 0.3  # Equal figures make ties.
        for site in allowed:
            self.costs.seconds[index, site] = draw.randint(0, 2) if coarse else round(draw.uniform(0, 3), 3)
        return index

    def free(self, sources: list[int]) -> int:
        return self.node(sources, Evaluate(constant(None)), None)

    def node(
        self, sources: list[int], action: object, candidates: tuple[str, ...] | None, port: Port = Port.VALUE
    ) -> int:
        index = len(self.graph.nodes)
        edges = [Edge(source, port) for source in dict.fromkeys(sources)]
        if not edges:
            edges = [Edge(None, Port.DONE, role=Role.TRIGGER)]
        self.graph.nodes.append(
            Node(index, f"%{index}", f"node{index}", f"p.py:{index + 1}", 0, action, edges, candidates)
        )
        draw = self.random
        self.costs.sizes.append(float(draw.choice([0, 1000, 10**6, 10**6, draw.randint(1, 5 * 10**6)])))
        return index

    def yield_(self, source: int, *, beside: bool) -> int:
        index = self.node([source], SendYield("out", constant(None)), None)
        self.costs.sizes[index] = self.costs.sizes[source]
        if beside:
            self.graph.nodes[index].beside = source
        return index

    def stated(self) -> Stated:
        return Stated(self.graph, self.costs, self.random.choice(self.sites))


SHAPES = ("chain", "in-tree", "out-tree", "dag", "diamonds", "shared", "fan")


def make(
    seed: object, shape: str, nodes: int, sites: int, *, candidates: int | None = None, plain: bool = False
) -> Stated:
    """Make a problem of some shape.

    Args:
        seed: Anything.
        shape: One of `SHAPES`.
        nodes: How many operations.
        sites: How many sites.
        candidates: How many sites each operation may have; None for a random number.
        plain: Only operations: no free nodes, yields, nodes beside others.
    """
    maker = Maker((seed, shape, nodes, sites), sites)
    draw = maker.random
    made: list[int] = []
    for index in range(nodes):
        sources = [made[number] for number in sources_of(draw, shape, index, nodes)]
        free = not plain and index > 0 and draw.random() < 0.2
        made.append(maker.free(sources) if free else maker.operation(sources, candidates))
        if not plain and sources and draw.random() < 0.1:
            maker.graph.nodes[made[-1]].edges.append(Edge(draw.choice(made[:-1]), Port.DONE, role=Role.TRIGGER))
    if not plain:
        for source in draw.sample(made, draw.randint(0, min(2, len(made)))):
            maker.yield_(source, beside=draw.random() < 0.7)
        if draw.random() < 0.3:
            _beside(maker, made)
    stated = maker.stated()
    _prices(maker)
    return stated


def sources_of(draw: random.Random, shape: str, index: int, nodes: int) -> list[int]:
    """Give the earlier operations that one of a shape takes something from."""
    if index == 0:
        return []
    match shape:
        case "chain":
            return [index - 1]
        case "out-tree":
            return [draw.randrange(index)]
        case "in-tree":
            return [
                source
                for source in (2 * (index - nodes // 2 - 1), 2 * (index - nodes // 2 - 1) + 1)
                if 0 <= source < index
            ]
        case "diamonds":
            return [[index - 1], [index - 2], [index - 1, index - 2]][index % 3] if index > 2 else [0]
        case "shared":
            return sorted({0, *draw.sample(range(index), min(index, draw.randint(0, 2)))})
        case "fan":
            return list(range(1, index)) if index == nodes - 1 else [0]
    return draw.sample(range(index), min(index, draw.randint(0, 3)))


def _beside(maker: Maker, made: list[int]) -> None:
    """Bind a free node to the site of an earlier operation, not always its source."""
    nodes = maker.graph.nodes
    for index in made:
        earlier = [other for other in made if other < index and nodes[other].beside is None]
        if nodes[index].candidates is None and nodes[index].beside is None and earlier:
            nodes[index].beside = maker.random.choice(earlier)
            return


def _prices(maker: Maker) -> None:
    draw = maker.random
    maker.costs.prices = {site: round(draw.uniform(0, 1), 2) for site in maker.sites}
    maker.costs.send_prices = {pair: draw.choice([0.0, 1e-6, 2e-6]) for pair in maker.costs.links}


def add_rules(stated: Stated, seed: object) -> None:
    """Add residency rules and limited capacities."""
    draw = random.Random(repr(seed))
    for node in stated.graph.nodes:
        for site in node.candidates or ():
            if draw.random() < 0.25:
                stated.costs.residencies[node.index, site] = tuple(draw.sample(stated.sites, draw.randint(0, 2)))
    for site in stated.sites:
        if draw.random() < 0.4:
            stated.costs.capacities[site] = draw.randint(1, 2)


# The exhaustive solution, straight from the definition


def choices(stated: Stated) -> list[list[str]]:
    """Give every placement, legal or not with regard to residency."""
    free = [node for node in stated.graph.nodes if node.beside is None]
    options = []
    for node in free:
        allowed = set(stated.sites) if node.candidates is None else set(node.candidates)
        options.append([site for site in stated.sites if site in allowed])
    found = []
    for combination in itertools.product(*options):
        site = {node.index: where for node, where in zip(free, combination, strict=True)}
        for node in stated.graph.nodes:
            if node.beside is not None:
                site[node.index] = site[node.beside]
        chosen = [site[node.index] for node in stated.graph.nodes]
        if all(node.candidates is None or chosen[node.index] in node.candidates for node in stated.graph.nodes):
            found.append(chosen)
    return found


def legal(stated: Stated, chosen: list[str]) -> bool:
    """Follow every value as far as it is passed on."""
    for (index, site), may in stated.costs.residencies.items():
        if chosen[index] != site:
            continue
        reached, todo = set(), [index]
        while todo:
            source = todo.pop()
            for node in stated.graph.nodes:
                takes = any(
                    edge.source == source and edge.role is Role.VALUE and edge.port in (Port.VALUE, Port.ELEMENT)
                    for edge in node.edges
                )
                if takes and node.index not in reached:
                    reached.add(node.index)
                    if isinstance(node.action, Evaluate | SendYield | Collect):
                        todo.append(node.index)
        places = {chosen[node] for node in reached}
        if any(isinstance(stated.graph.nodes[node].action, SendYield) for node in reached):
            places.add("clients")
        if places - {site, *may} - ({"clients"} if stated.home in may else set()):
            return False
    return True


def cost(stated: Stated, chosen: list[str], objective: str) -> tuple[float, ...]:
    """Cost of a placement by the definition: what is compared, from left to right."""
    costs, nodes = stated.costs, stated.graph.nodes
    ends: list[float] = []
    sent: dict[tuple[int, Port, str], float] = {}
    money = 0.0
    for node in nodes:
        here = chosen[node.index]
        start = 0.0
        for edge in node.edges:
            if edge.source is not None:
                size = costs.carried(edge.source, edge.port)
                start = max(start, ends[edge.source] + costs.transfer(size, chosen[edge.source], here))
                if chosen[edge.source] != here:
                    sent[edge.source, edge.port, here] = size
        end = start + costs.compute(node, here)
        money += costs.compute_price(node, here)
        if isinstance(node.action, SendYield):
            end += costs.transfer(costs.sizes[node.index], here, stated.home)
            if here != stated.home:
                sent[node.index, Port.DONE, "client"] = costs.sizes[node.index]
        ends.append(end)
    seconds = max(ends)
    for site, capacity in costs.capacities.items():
        work = sum(costs.compute(node, site) for node in nodes if chosen[node.index] == site)
        seconds = max(seconds, work / capacity)
    for (source, _, destination), size in sent.items():
        there = stated.home if destination == "client" else destination
        money += size * costs.send_price(chosen[source], there)
    seconds = round(seconds, 7)
    ties = (sum(site != stated.home for site in chosen), sum(stated.sites.index(site) for site in chosen))
    moved = sum(sent.values())
    return {
        "time": (seconds, moved, *ties),
        "bytes": (moved, seconds, *ties),
        "money": (round(money, 6), seconds, *ties),
    }[objective]


def best(stated: Stated, objective: str) -> tuple[float, ...] | None:
    """Cost of the best placement; None if there is none."""
    return min((cost(stated, chosen, objective) for chosen in choices(stated) if legal(stated, chosen)), default=None)
