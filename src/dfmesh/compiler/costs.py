"""What computing and sending cost: declared figures where the federation file has them, else defaults."""

from __future__ import annotations

from dfmesh.compiler.graph import Graph, Node
from dfmesh.config import FederationConfig
from dfmesh.netir import Call, Port, Reduce, Role

DEFAULT_SIZE = 1024.0
"""Bytes of a value of which nothing is declared."""

DEFAULT_LATENCY = 0.001
"""Seconds of a transfer between two sites for which nothing is declared, so that a hop is never free."""

DEFAULT_BANDWIDTH = 100e6
"""Bytes per second between two sites for which nothing is declared."""


class Costs:
    """Times and sizes of one graph in one federation.

    Attributes:
        sizes: Bytes of each node's value, by node index.
        sites: The sites of the federation, in declared order.
    """

    def __init__(self, graph: Graph, federation: FederationConfig) -> None:
        self._federation = federation
        self.sites = list(federation.sites)
        self._links: dict[tuple[str, str], tuple[float, float]] = {}
        self.sizes: list[float] = []
        self._input_sizes: list[float] = []
        for node in graph.nodes:
            self._input_sizes.append(self._input_size(node))
            self.sizes.append(self._size(node))

    def _input_size(self, node: Node) -> float:
        sources = {edge.source for edge in node.edges if edge.source is not None and edge.role is Role.VALUE}
        return sum(self.sizes[source] for source in sorted(sources))

    def _size(self, node: Node) -> float:
        size = self._input_sizes[node.index]
        if not isinstance(node.action, Call | Reduce):
            return size or DEFAULT_SIZE
        for site in node.candidates or ():
            cost = self._federation.adapter(site, node.action.operation, node.action.provider).compute_cost
            if cost is not None and (cost.fixed_size or cost.output_factor):
                return cost.fixed_size + cost.output_factor * size
        return DEFAULT_SIZE

    def compute(self, node: Node, site: str) -> float:
        """Seconds that a node takes at a site."""
        if not isinstance(node.action, Call | Reduce):
            return 0.0
        cost = self._federation.adapter(site, node.action.operation, node.action.provider).compute_cost
        if cost is None:
            return 0.0
        throughput = cost.compute_throughput
        return cost.fixed_time + (self._input_sizes[node.index] / throughput if throughput else 0.0)

    def transfer(self, size: float, source: str, destination: str) -> float:
        """Seconds that `size` bytes take from one site to another."""
        if source == destination:
            return 0.0
        link = self._links.get((source, destination))
        if link is None:
            link = self._links[source, destination] = self._link(source, destination)
        latency, per_byte = link
        return latency + size * per_byte

    def _link(self, source: str, destination: str) -> tuple[float, float]:
        cost = self._federation.sites[source].send_cost.get(destination)
        if cost is None:
            return DEFAULT_LATENCY, 1 / DEFAULT_BANDWIDTH
        return cost.fixed_time, 1 / cost.bandwidth if cost.bandwidth else 0.0

    def carried(self, source: int, port: Port) -> float:
        """Bytes of the token that an output of a node sends."""
        if port is Port.VALUE:
            return self.sizes[source]
        return DEFAULT_SIZE if port is Port.ELEMENT else 0.0
