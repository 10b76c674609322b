"""Residency: to which sites the value of an operation may go, a rule of the site that makes it.

`residency: [sites]` of an adapter, or else of its site, names the sites that may have the adapter's results, and whose
clients may; the site itself always may. What only passes a value on (a loop, a choice, a gathered list) passes its rule
on. The result of another operation is a new value, under the rule of the site that makes it. A number of iterations,
the outcome of a condition and the mere end of something are not the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph
from dfmesh.netir import Branch, Call, Port, Reduce, Role, SendYield

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Residency:
    """The rules for the value of one node.

    Attributes:
        node: The node.
        allowed: Where the value may be, for each site at which it may be made, `[site, site]`.
        clients: Whether clients may have it, for each site at which it may be made and that they are attached to,
            `[site, site]`.
        takers: Nodes that get the value, directly or passed on, in order.
        reaches_client: Whether it is yielded.
    """

    node: int
    allowed: npt.NDArray[np.bool_]
    clients: npt.NDArray[np.bool_]
    takers: tuple[int, ...]
    reaches_client: bool


def residencies(graph: Graph, costs: Costs, sites: list[str]) -> Iterator[Residency]:
    """Give the rules of all nodes that have some, in order."""
    if not costs.has_residency:
        return
    import numpy as np

    takers = value_takers(graph)
    order = {site: position for position, site in enumerate(sites)}
    for node in graph.nodes:
        rules = [costs.residency(node, site) if site in (node.candidates or ()) else None for site in sites]
        if any(rule is not None for rule in rules):
            clients = np.ones((len(sites), len(sites)), np.bool_)
            for here, rule in enumerate(rules):
                if rule is not None:
                    clients[here] = False
                    clients[here, [order[there] for there in rule.sites if there in order]] = True
            allowed = clients | np.eye(len(sites), dtype=np.bool_)
            reached = takers[node.index]
            yields = any(isinstance(graph.nodes[taker].action, SendYield) for taker in reached)
            yield Residency(node.index, allowed, clients, tuple(sorted(reached)), yields)


def value_takers(graph: Graph) -> list[set[int]]:
    """Find the nodes that get each node's value, directly or through nodes that only pass it on."""
    takers: list[set[int]] = [set() for _ in graph.nodes]
    for node in reversed(graph.nodes):
        for edge in node.edges:
            if edge.source is None or edge.role is not Role.VALUE or edge.port not in (Port.VALUE, Port.ELEMENT):
                continue
            takers[edge.source].add(node.index)
            if not isinstance(node.action, Call | Reduce | Branch):
                takers[edge.source] |= takers[node.index]
    return takers


__all__ = ["Residency", "residencies", "value_takers"]
