"""What of a predicted run is neither declared nor measured, and what was taken for it."""

from __future__ import annotations

from collections.abc import Iterator

from dfmesh.compiler.costs import DEFAULT_BANDWIDTH, DEFAULT_LATENCY, DEFAULT_SIZE, Costs
from dfmesh.compiler.graph import Graph
from dfmesh.compiler.quantity_text import bytes_text, seconds_text
from dfmesh.config import FederationConfig
from dfmesh.netir import Call, Reduce
from dfmesh.session.prediction.plan import Plan

_NAMED = 4
"""Sites or links that are named in one line."""


def undeclared(plan: Plan, costs: Costs, graph: Graph, config: FederationConfig) -> list[str]:
    """Tell what was taken for times, sizes and links of which nothing is known, as far as the run came to them."""
    return [*_calls(plan, costs, graph, config), *_sizes(plan, costs, graph, config), *_links(plan, costs, config)]


def _actions(plan: Plan, graph: Graph) -> Iterator[tuple[str, Call | Reduce, tuple[str, ...]]]:
    """Give the site of each statement that makes calls, what it does, and where it may be."""
    nodes = {node.node: node for node in graph.nodes if isinstance(node.action, Call | Reduce)}
    for step in plan.steps:
        if step.calls and isinstance(action := nodes[step.node].action, Call | Reduce):
            yield step.site.name, action, nodes[step.node].candidates or ()


def _calls(plan: Plan, costs: Costs, graph: Graph, config: FederationConfig) -> Iterator[str]:
    found: dict[tuple[str, float], dict[str, None]] = {}
    for site, action, candidates in _actions(plan, graph):
        operation, provider = action.operation, action.provider
        declared = config.adapter(site, operation, provider).compute_cost is not None
        if not declared and costs.measured.seconds(operation, provider, site) is None:
            elsewhere = costs.measured.elsewhere(operation, provider, candidates)
            found.setdefault((operation, elsewhere), {})[site] = None
    for (operation, elsewhere), sites in found.items():
        taken = f"{seconds_text(elsewhere)} a call, as elsewhere" if elsewhere else "calls take no time"
        yield f"time of {operation} at {_listed(list(sites))}: {taken}"


def _sizes(plan: Plan, costs: Costs, graph: Graph, config: FederationConfig) -> Iterator[str]:
    found: dict[str, None] = {}
    for _, action, candidates in _actions(plan, graph):
        adapters = [config.adapter(site, action.operation, action.provider).compute_cost for site in candidates]
        declared = any(cost is not None and (cost.fixed_size or cost.output_factor) for cost in adapters)
        if not declared and costs.measured.size(action.operation, action.provider, candidates) is None:
            found[action.operation] = None
    for operation in found:
        yield f"size of what {operation} gives: {bytes_text(DEFAULT_SIZE)}"


def _links(plan: Plan, costs: Costs, config: FederationConfig) -> Iterator[str]:
    usual = f"{seconds_text(DEFAULT_LATENCY)} and {bytes_text(DEFAULT_BANDWIDTH)} per second"
    found = [
        f"{source} -> {destination}"
        for (source, destination), wire in plan.wires.items()
        if wire.tokens
        and destination not in config.sites[source].send_cost
        and costs.measured.bandwidth(source, destination) is None
    ]
    if found:
        yield f"speed of {_listed(found)}: {usual}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
