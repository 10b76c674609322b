"""Explaining a compiled pipeline: what runs where and why, what else it could cost, what crosses each link."""

from __future__ import annotations

from dfmesh.api import BestOf, ForEach, Operation, Reduce, Statement, TryFromCache, node_text
from dfmesh.compiler.compile import CompiledPipeline
from dfmesh.compiler.explanation import CLIENT, Explanation, Link, Row
from dfmesh.compiler.graph import Node
from dfmesh.compiler.placement import Alternative, Objective, alternatives
from dfmesh.compiler.quantity_text import bytes_text
from dfmesh.netir import Collect, Evaluate, LookUp, Port, Role, SendYield, Store

LEAST_SECONDS = 0.001
LEAST_SHARE = 0.01
"""Differences below this time, or this share of the whole, are no reason: the estimates are not that good."""


def explain(compiled: CompiledPipeline) -> Explanation:
    """Explain a compiled pipeline. The same pipeline gives the same explanation, character for character.

    Args:
        compiled: What `Federation.compile` or `Session.prepare` gave.
    """
    placement = compiled.placement
    objective = placement.certificate.objective
    others = alternatives(
        compiled.graph, compiled.costs, compiled.homesite, compiled.costs.sites, placement.sites, objective
    )
    statements = {node_text(statement.node_id): statement for statement in compiled.pipeline.statements()}
    rows = tuple(_row(node, compiled, others[node.index], statements.get(node.node)) for node in compiled.graph.nodes)
    return Explanation(
        name=compiled.pipeline.name or "",
        homesite=compiled.homesite,
        rows=rows,
        links=_links(compiled),
        seconds=placement.estimate.seconds,
        bytes_moved=placement.estimate.bytes_moved,
        exact=placement.exact,
        gap=placement.certificate.gap,
        objective=objective.value,
        money=placement.estimate.money,
        warnings=compiled.warnings,
    )


def _row(node: Node, compiled: CompiledPipeline, other: Alternative | None, statement: Statement | None) -> Row:
    site = compiled.placement.sites[node.index]
    return Row(
        index=node.index,
        statement=node.node,
        operation=node.name,
        part=_part(node, statement),
        site=site,
        why=_why(node, compiled, other, statement),
        seconds=compiled.costs.compute(node, site),
        size=compiled.costs.sizes[node.index],
        next_best=other,
        location=node.location,
        inputs=_inputs(node, compiled),
        place=node.action.place if isinstance(node.action, SendYield) else None,
    )


def _part(node: Node, statement: Statement | None) -> str:
    """Tell the steps of one statement apart, where it has several."""
    match node.action:
        case LookUp():
            return "look up"
        case Store():
            return "store"
        case Evaluate():
            return "iteration ends" if isinstance(statement, ForEach) else "value"
        case Collect() if isinstance(statement, ForEach):
            return "loop ends"
    return ""


def _inputs(node: Node, compiled: CompiledPipeline) -> tuple[tuple[int, float], ...]:
    largest: dict[int, float] = {}
    for edge in node.edges:
        if edge.source is not None:
            size = compiled.costs.carried(edge.source, edge.port)
            largest[edge.source] = max(size, largest.get(edge.source, 0.0))
    return tuple(sorted(largest.items()))


def _why(node: Node, compiled: CompiledPipeline, other: Alternative | None, statement: Statement | None) -> str:
    """Name the strongest reason for a node's site: a rule, else the costs, else the order of preference."""
    graph, sites = compiled.graph, compiled.placement.sites
    if node.beside is not None:
        beside = graph.nodes[node.beside]
        return "beside its look-up" if isinstance(node.action, Store) else f"beside {beside.name} {beside.node}"
    if node.candidates is not None and isinstance(statement, Operation | Reduce | TryFromCache):
        if isinstance(statement.site, str):
            return "you chose the site"
        if len(node.candidates) == 1:
            listed = isinstance(statement.site, BestOf) and statement.site.sites
            return "the only one of your sites that offers it" if listed else "the only site that offers it"
    if other is None:
        ruled = compiled.costs.has_residency and len(node.candidates or ()) > 1
        return "rules of residency leave no other" if ruled else "its inputs and consumers are here"
    return _cost_reason(node, compiled, other, statement) or (
        "homesite" if sites[node.index] == compiled.homesite else "declared first"
    )


def _cost_reason(node: Node, compiled: CompiledPipeline, other: Alternative, statement: Statement | None) -> str:
    """Say what makes the next best site more expensive; empty if it is not."""
    costs, here = compiled.costs, compiled.placement.sites[node.index]
    least = max(LEAST_SECONDS, LEAST_SHARE * compiled.placement.estimate.seconds)
    objective = compiled.placement.certificate.objective
    if objective is Objective.MONEY and other.money > 0:
        cheaper = costs.compute_price(node, here) < costs.compute_price(node, other.site)
        return "computes cheapest here" if cheaper else "sending costs less"
    if (
        objective is Objective.TIME
        and other.seconds >= least
        and costs.compute(node, other.site) - costs.compute(node, here) >= least
    ):
        return "computes fastest here"
    if other.seconds <= 0 and other.bytes_moved <= 0:
        return ""
    if other.seconds < least and other.bytes_moved <= 0:
        return "hardly matters"
    inputs = {
        edge.source
        for edge in node.edges
        if edge.source is not None and edge.role is Role.VALUE and compiled.placement.sites[edge.source] == here
    }
    if not inputs:
        return "near its consumers" if other.bytes_moved > 0 else "ends earliest here"
    largest = max(sorted(inputs), key=lambda source: costs.sizes[source])
    source = compiled.graph.nodes[largest]
    if source.node == node.node and isinstance(statement, ForEach):
        return "its iterations are here"
    what = "value" if source.node == node.node else f"input from {source.node}"
    return f"its {bytes_text(costs.sizes[largest])} {what} is here"


def _links(compiled: CompiledPipeline) -> tuple[Link, ...]:
    """Add up what crosses each link; a value counts once per destination, as it is sent."""
    graph, sites, home = compiled.graph, compiled.placement.sites, compiled.homesite
    crossing: dict[tuple[str, str], dict[int, float]] = {}

    def add(source: int, start: str, end: str, size: float) -> None:
        if start != end:
            values = crossing.setdefault((start, end), {})
            values[source] = max(size, values.get(source, 0.0))

    for node in graph.nodes:
        for edge in node.edges:
            if edge.source is not None and edge.port in (Port.VALUE, Port.ELEMENT, Port.INDEX):
                size = compiled.costs.carried(edge.source, edge.port)
                add(edge.source, sites[edge.source], sites[node.index], size)
        if isinstance(node.action, SendYield):
            size = compiled.costs.sizes[node.index]
            add(node.index, sites[node.index], home, size)
            add(node.index, home, CLIENT, size)
    return tuple(
        Link(source, destination, tuple(sorted(values)), sum(size for _, size in sorted(values.items())))
        for (source, destination), values in sorted(crossing.items(), key=lambda item: (item[0][1] == CLIENT, item[0]))
    )


__all__ = ["explain"]
