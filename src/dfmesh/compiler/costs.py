"""What computing and sending cost: measured figures where there are some, else declared ones, else defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dfmesh.compiler.graph import Graph, Node
from dfmesh.compiler.measured import NOTHING_MEASURED, MeasuredCosts, output_text
from dfmesh.config import FederationConfig, ResidencyRule
from dfmesh.netir import Call, Collect, Port, Reduce, Role

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Figures = npt.NDArray[np.float64]

DEFAULT_SIZE = 1024.0
"""Bytes of a value of which nothing is declared."""

DEFAULT_LATENCY = 0.001
"""Seconds of a transfer between two sites for which nothing is declared, so that a hop is never free."""

DEFAULT_BANDWIDTH = 100e6
"""Bytes per second between two sites for which nothing is declared."""


def link_cost(
    federation: FederationConfig, measured: MeasuredCosts, source: str, destination: str
) -> tuple[float, float]:
    """Seconds per value, and per byte of it, from one site to another."""
    cost = federation.sites[source].send_cost.get(destination)
    latency, per_byte = DEFAULT_LATENCY, 1 / DEFAULT_BANDWIDTH
    if cost is not None:
        latency, per_byte = cost.fixed_time, 1 / cost.bandwidth if cost.bandwidth else 0.0
    known = measured.latency(source, destination), measured.bandwidth(source, destination)
    return latency if known[0] is None else known[0], 1 / known[1] if known[1] else per_byte


class Costs:
    """Times and sizes of one graph in one federation.

    Attributes:
        sizes: Bytes of each node's value, by node index.
        sites: The sites of the federation, in declared order.
        measured: What earlier runs have measured.
        pipeline: How the pipeline is named in there.
    """

    def __init__(
        self,
        graph: Graph,
        federation: FederationConfig,
        measured: MeasuredCosts = NOTHING_MEASURED,
        pipeline: str = "",
        repeats: Mapping[int, float] | None = None,
    ) -> None:
        """Estimate the sizes of all values.

        Args:
            graph: The pipeline, lowered.
            federation: The sites and what they declare.
            measured: What earlier runs have measured.
            pipeline: How the pipeline is named in there.
            repeats: How many values each loop gathers, by the scope of its body; one where nothing is said.
        """
        self._federation = federation
        self._graph = graph
        self._repeats = repeats or {}
        self.measured = measured
        self.pipeline = pipeline
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
            takes_values = any(edge.source is not None and edge.role is Role.VALUE for edge in node.edges)
            if isinstance(node.action, Collect):
                size *= self._repeats.get(node.action.body, 1)
            return size if takes_values else DEFAULT_SIZE
        measured = self.measured.size(node.action.operation, node.action.provider, node.candidates or ())
        if measured is not None:
            return measured
        for site in node.candidates or ():
            cost = self._federation.adapter(site, node.action.operation, node.action.provider).compute_cost
            if cost is not None and (cost.fixed_size or cost.output_factor):
                return cost.fixed_size + cost.output_factor * size
        return DEFAULT_SIZE

    @property
    def has_residency(self) -> bool:
        """Whether any site or adapter says where its results may go."""
        return self._federation.has_residency

    def residency(self, node: Node, site: str) -> ResidencyRule | None:
        """Where the value of a node may go if it is made at a site; None if anywhere."""
        if not isinstance(node.action, Call | Reduce):
            return None
        own = self._federation.adapter(site, node.action.operation, node.action.provider).residency
        return own if own is not None else self._federation.sites[site].residency

    def capacity(self, site: str) -> int | None:
        """How many operations a site can run at the same time; None if that is not known."""
        return self._federation.sites[site].capacity

    def compute_price(self, node: Node, site: str) -> float:
        """Money for a node's computing at a site."""
        if not isinstance(node.action, Call | Reduce):
            return 0.0
        cost = self._federation.adapter(site, node.action.operation, node.action.provider).compute_cost
        return 0.0 if cost is None or not cost.price_per_second else cost.price_per_second * self.compute(node, site)

    def send_price(self, source: str, destination: str) -> float:
        """Money for each byte sent from one site to another."""
        cost = self._federation.sites[source].send_cost.get(destination)
        return 0.0 if cost is None else cost.price_per_byte

    def compute(self, node: Node, site: str) -> float:
        """Seconds that a node takes at a site."""
        if not isinstance(node.action, Call | Reduce):
            return 0.0
        measured = self.measured.seconds(node.action.operation, node.action.provider, site)
        return self.declared(node, node.action, site) if measured is None else measured

    def spread(self, node: Node, site: str) -> float:
        """Standard deviation of the seconds that a node takes at a site, as far as it was measured."""
        if not isinstance(node.action, Call | Reduce):
            return 0.0
        return self.measured.spread(node.action.operation, node.action.provider, site)

    def declared(self, node: Node, action: Call | Reduce, site: str) -> float:
        """Seconds of a node at a site where it was not measured: what is declared, else as long as elsewhere."""
        cost = self._federation.adapter(site, action.operation, action.provider).compute_cost
        if cost is None:
            return self.measured.elsewhere(action.operation, action.provider, node.candidates or ())
        throughput = cost.compute_throughput
        return cost.fixed_time + (self._input_sizes[node.index] / throughput if throughput else 0.0)

    def transfer(self, size: float, source: str, destination: str) -> float:
        """Seconds that `size` bytes take from one site to another."""
        if source == destination:
            return 0.0
        latency, per_byte = self.link(source, destination)
        return latency + size * per_byte

    def link(self, source: str, destination: str) -> tuple[float, float]:
        """Seconds per value, and per byte of it, from one site to another."""
        link = self._links.get((source, destination))
        if link is None:
            link = link_cost(self._federation, self.measured, source, destination)
            self._links[source, destination] = link
        return link

    def tables(self, sites: Sequence[str]) -> tuple[Figures, Figures, Figures]:
        """Seconds per value, seconds per byte and money per byte between sites, each `[source, destination]`.

        The same as `link` and `send_price` for every pair, in a time that hardly grows with pairs of which nothing is
        declared or measured; nothing within a site.
        """
        import numpy as np

        order = {site: position for position, site in enumerate(sites)}
        shape = len(order), len(order)
        latency, per_byte, price = (
            np.full(shape, DEFAULT_LATENCY),
            np.full(shape, 1 / DEFAULT_BANDWIDTH),
            np.zeros(shape),
        )
        declared = {(source, end) for source in sites for end in self._federation.sites[source].send_cost}
        for source, destination in sorted(declared | set(self.measured.links)):
            if source in order and destination in order:
                at = order[source], order[destination]
                latency[at], per_byte[at] = self.link(source, destination)
                price[at] = self.send_price(source, destination)
        for table in (latency, per_byte, price):
            np.fill_diagonal(table, 0.0)
        return latency, per_byte, price

    def carried(self, source: int, port: Port) -> float:
        """Bytes of the token that an output of a node sends."""
        if port is Port.VALUE:
            return self.sizes[source]
        if port is not Port.ELEMENT:
            return 0.0
        node = self._graph.nodes[source]
        measured = self.measured.sent(self.pipeline, node.node, node.name, output_text(port, ()))
        return DEFAULT_SIZE if measured is None else measured
