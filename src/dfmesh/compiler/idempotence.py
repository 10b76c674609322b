"""What the sites' owners say about running an operation again, put on the calls of a placed graph."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dfmesh.compiler.graph import Graph
from dfmesh.config import FederationConfig
from dfmesh.netir import Call, Reduce


def mark_idempotent(graph: Graph, sites: Sequence[str], federation: FederationConfig) -> None:
    """Mark the calls whose adapters may be run again.

    Args:
        graph: A placed graph; its calls are replaced.
        sites: Site of each node, by index.
        federation: What the adapters are.
    """
    for node in graph.nodes:
        action = node.action
        if not isinstance(action, Call | Reduce):
            continue
        adapter = federation.adapter(sites[node.index], action.operation, action.provider)
        if adapter.idempotent:
            node.action = msgspec.structs.replace(action, idempotent=True)
