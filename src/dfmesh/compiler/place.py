"""Third pass: choose the site of every node.

The estimate of a placement is its critical path (compute and transfer times, a value sent once per destination), then
the bytes moved, then how many nodes are away from the homesite, then the declared order of the sites. Small
problems are solved exactly by branch and bound; larger ones start from the best site per node in order and are
improved node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph, Node
from dfmesh.netir import Loop, SendYield

EXACT_STEPS = 50_000
"""Nodes of the search tree that are looked at before the search is given up."""

IMPROVEMENT_STEPS = 400_000
"""Edges that local search may look at."""


@dataclass(frozen=True, slots=True, order=True)
class Estimate:
    """What a placement is estimated to cost; compared from left to right, less is better.

    Attributes:
        seconds: Length of the critical path.
        bytes_moved: Between sites, each value once per destination.
        away: Nodes that are not at the homesite.
        rank: Sum of the positions of the chosen sites in declared order.
    """

    seconds: float
    bytes_moved: float
    away: int
    rank: int


@dataclass(slots=True)
class Placement:
    """The chosen sites.

    Attributes:
        sites: Site of each node, by index.
        estimate: What it is estimated to cost.
        exact: Whether no placement is better.
    """

    sites: list[str]
    estimate: Estimate
    exact: bool


@dataclass(frozen=True, slots=True)
class Alternative:
    """The next best site of a node, everything else left where it is.

    Attributes:
        site: Its name.
        seconds: How much longer the whole pipeline would take.
        bytes_moved: How many bytes more would move between sites.
    """

    site: str
    seconds: float
    bytes_moved: float


def place(graph: Graph, costs: Costs, homesite: str, sites: list[str]) -> Placement:
    """Choose the site of every node of a graph.

    Args:
        graph: Every node with candidates has at least one.
        costs: Of that graph.
        homesite: Where the client attaches.
        sites: All sites in declared order.
    """
    problem = _Problem(graph, costs, homesite, sites)
    chosen = problem.greedy()
    exact = problem.search(chosen)
    if not exact:
        problem.improve(chosen)
    return Placement(chosen, problem.estimate(chosen), exact)


def alternatives(
    graph: Graph, costs: Costs, homesite: str, sites: list[str], chosen: Sequence[str]
) -> list[Alternative | None]:
    """Find the next best site of every node of a placed graph; None where there is no choice.

    It estimates the whole graph once per node and site: for people who ask, not for every compilation.

    Args:
        graph: As for `place`.
        costs: As for `place`.
        homesite: As for `place`.
        sites: As for `place`.
        chosen: Site of each node.
    """
    return _Problem(graph, costs, homesite, sites).alternatives(list(chosen))


class _Problem:
    def __init__(self, graph: Graph, costs: Costs, homesite: str, sites: list[str]) -> None:
        self.graph = graph
        self.costs = costs
        self.homesite = homesite
        self.order = {site: position for position, site in enumerate(sites)}
        self.incoming = [self._incoming(node) for node in graph.nodes]
        self.outgoing: list[list[int]] = [[] for _ in graph.nodes]
        for node in graph.nodes:
            for source, _ in self.incoming[node.index]:
                self.outgoing[source].append(node.index)
        self.within: list[list[int]] = [[] for _ in graph.scopes]
        for node in graph.nodes:
            self.within[node.scope].append(node.index)
        self.candidates = [self._candidates(node) for node in graph.nodes]
        self._seconds: list[dict[str, float]] = [{} for _ in graph.nodes]
        self.tail = self._tails()

    def _incoming(self, node: Node) -> list[tuple[int, float]]:
        largest: dict[int, float] = {}
        for edge in node.edges:
            if edge.source is not None:
                size = self.costs.carried(edge.source, edge.port)
                largest[edge.source] = max(size, largest.get(edge.source, 0.0))
        return sorted(largest.items())

    def _candidates(self, node: Node) -> list[str]:
        """Give the sites worth trying; a node that can run anywhere goes where its neighbours can, or home."""
        if node.candidates is not None:
            return list(node.candidates)
        near = {self.homesite}
        around = [source for source, _ in self.incoming[node.index]]
        if isinstance(node.action, Loop):
            around += self.within[node.action.body]
        for other in [*around, *self.outgoing[node.index]]:
            near.update(self.graph.nodes[other].candidates or ())
        return sorted(near, key=lambda site: (site != self.homesite, self.order[site]))

    def compute(self, node: Node, site: str) -> float:
        """Seconds that a node takes at a site, looked up once."""
        known = self._seconds[node.index]
        if site not in known:
            known[site] = self.costs.compute(node, site)
        return known[site]

    def _tails(self) -> list[float]:
        """Seconds of computing that follow a node at the least, on any placement."""
        least = [
            min((self.compute(node, site) for site in self.candidates[node.index]), default=0.0)
            for node in self.graph.nodes
        ]
        tails = [0.0] * len(least)
        for index in range(len(least) - 1, -1, -1):
            tails[index] = max((least[other] + tails[other] for other in self.outgoing[index]), default=0.0)
        return tails

    def options(self, node: Node, chosen: list[str]) -> list[str]:
        """Give the sites a node can have, given those of the nodes before it."""
        return self.candidates[node.index] if node.beside is None else [chosen[node.beside]]

    def finish(self, node: Node, site: str, chosen: list[str], finished: list[float]) -> float:
        start = 0.0
        for source, size in self.incoming[node.index]:
            start = max(start, finished[source] + self.costs.transfer(size, chosen[source], site))
        end = start + self.compute(node, site)
        if isinstance(node.action, SendYield):
            end += self.costs.transfer(self.costs.sizes[node.index], site, self.homesite)
        return end

    def moved(
        self, node: Node, site: str, chosen: list[str], sent: set[tuple[int, str]]
    ) -> tuple[float, list[tuple[int, str]]]:
        """Bytes that placing a node at a site moves, and the sends that are new with it."""
        new = []
        size = 0.0
        for source, carried in self.incoming[node.index]:
            if chosen[source] != site and (source, site) not in sent:
                new.append((source, site))
                size += carried
        if isinstance(node.action, SendYield) and site != self.homesite:
            size += self.costs.sizes[node.index]
        return size, new

    def estimate(self, chosen: list[str]) -> Estimate:
        """Estimate a complete placement."""
        finished: list[float] = []
        sent: set[tuple[int, str]] = set()
        total = 0.0
        away = rank = 0
        for node in self.graph.nodes:
            site = chosen[node.index]
            finished.append(self.finish(node, site, chosen, finished))
            size, new = self.moved(node, site, chosen, sent)
            sent.update(new)
            total += size
            away += site != self.homesite
            rank += self.order[site]
        return Estimate(round(max(finished, default=0.0), 9), total, away, rank)

    def greedy(self) -> list[str]:
        """Place each node where it ends first, in order."""
        chosen: list[str] = []
        finished: list[float] = []
        sent: set[tuple[int, str]] = set()
        for node in self.graph.nodes:
            best = min(
                self.options(node, chosen),
                key=lambda site: (
                    round(self.finish(node, site, chosen, finished), 9),
                    self.moved(node, site, chosen, sent)[0],
                    site != self.homesite,
                    self.order[site],
                ),
            )
            finished.append(self.finish(node, best, chosen, finished))
            sent.update(self.moved(node, best, chosen, sent)[1])
            chosen.append(best)
        return chosen

    def search(self, best: list[str]) -> bool:
        """Search for the best placement and leave it in `best`; False if there was too much to look at."""
        return _Search(self, best).run()

    def improve(self, chosen: list[str]) -> None:
        """Move single nodes (with those beside them) as long as that makes the placement better."""
        groups = self._groups()
        estimate = self.estimate(chosen)
        budget = IMPROVEMENT_STEPS
        edges = sum(len(incoming) for incoming in self.incoming) + len(chosen)
        improved = True
        while improved and budget > 0:
            improved = False
            for leader, members in groups:
                for site in self.candidates[leader]:
                    budget -= edges
                    if site == chosen[leader] or budget < 0:
                        continue
                    trial = list(chosen)
                    for member in members:
                        trial[member] = site
                    if (other := self.estimate(trial)) < estimate:
                        chosen[:], estimate, improved = trial, other, True

    def _groups(self) -> list[tuple[int, list[int]]]:
        leader: dict[int, int] = {}
        members: dict[int, list[int]] = {}
        for node in self.graph.nodes:
            leader[node.index] = node.index if node.beside is None else leader[node.beside]
            members.setdefault(leader[node.index], []).append(node.index)
        return [(first, group) for first, group in members.items() if len(self.candidates[first]) > 1]

    def alternatives(self, chosen: list[str]) -> list[Alternative | None]:
        here = self.estimate(chosen)
        found: list[Alternative | None] = [None] * len(chosen)
        for leader, members in self._groups():
            others = []
            for site in self.candidates[leader]:
                if site != chosen[leader]:
                    trial = list(chosen)
                    for member in members:
                        trial[member] = site
                    others.append((self.estimate(trial), site))
            best, site = min(others)
            found[leader] = Alternative(site, best.seconds - here.seconds, best.bytes_moved - here.bytes_moved)
        return found


class _Search:
    """Depth-first branch and bound over the nodes in order."""

    def __init__(self, problem: _Problem, best: list[str]) -> None:
        self.problem = problem
        self.best = best
        self.best_estimate = problem.estimate(best)
        self.steps = 0
        self.chosen: list[str] = []
        self.finished: list[float] = []
        self.sent: set[tuple[int, str]] = set()

    def run(self) -> bool:
        if len(self.problem.graph.nodes) > 300:  # deeper than Python's stack likes
            return all(len(options) <= 1 for options in self.problem.candidates)
        return self._descend(0.0, 0.0, 0, 0)

    def _descend(self, seconds: float, moved: float, away: int, rank: int) -> bool:
        problem = self.problem
        index = len(self.chosen)
        if index == len(problem.graph.nodes):
            estimate = Estimate(round(seconds, 9), moved, away, rank)
            if estimate < self.best_estimate:
                self.best_estimate = estimate
                self.best[:] = self.chosen
            return True
        node = problem.graph.nodes[index]
        for site in problem.options(node, self.chosen):
            self.steps += 1
            if self.steps > EXACT_STEPS:
                return False
            end = problem.finish(node, site, self.chosen, self.finished)
            size, new = problem.moved(node, site, self.chosen, self.sent)
            least = max(seconds, end + problem.tail[index])
            bound = Estimate(
                round(least, 9), moved + size, away + (site != problem.homesite), rank + problem.order[site]
            )
            if bound >= self.best_estimate:
                continue
            self.chosen.append(site)
            self.finished.append(end)
            self.sent.update(new)
            complete = self._descend(max(seconds, end), bound.bytes_moved, bound.away, bound.rank)
            self.sent.difference_update(new)
            self.finished.pop()
            self.chosen.pop()
            if not complete:
                return False
        return True


__all__ = ["Alternative", "Estimate", "Placement", "alternatives", "place"]
