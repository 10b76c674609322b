"""Explaining a compiled pipeline: what runs where and why, what else it could cost, what crosses each link.

All figures are the compiler's estimates for one parameter set, the body of a loop counted once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from dfmesh.api import BestOf, ForEach, Operation, Reduce, Statement, TryFromCache, node_text
from dfmesh.compiler.compile import CompiledPipeline
from dfmesh.compiler.graph import Node
from dfmesh.compiler.placement import Alternative, Objective, ObjectiveName, alternatives
from dfmesh.errors import Fault
from dfmesh.netir import Collect, Evaluate, LookUp, Port, Role, SendYield, Store

CLIENT = "client"
"""The receiving end of the last links, those of the results."""


@dataclass(frozen=True, slots=True)
class Row:
    """One step of the pipeline.

    Attributes:
        index: Number of the step, in an order in which inputs come first.
        statement: Id of the statement, as users see it (`%3`, or its name).
        operation: Name of the operation or construct.
        part: Which part of the statement it is, such as `look up`; empty for those that are one step.
        site: Where it runs.
        why: Why there.
        seconds: Time of one call.
        size: Bytes of its value.
        next_best: What the next best site would cost; None where there is no other.
        location: The user's `file:line`; empty if unknown.
        inputs: Each step from which it takes something, by index, with the bytes it takes.
        place: Place to which it yields; None for anything but a Yield.
    """

    index: int
    statement: str
    operation: str
    part: str
    site: str
    why: str
    seconds: float
    size: float
    next_best: Alternative | None
    location: str
    inputs: tuple[tuple[int, float], ...]
    place: str | None

    @property
    def label(self) -> str:
        """Name of the operation or construct, with the part that this step is of it."""
        return f"{self.operation} ({self.part})" if self.part else self.operation


@dataclass(frozen=True, slots=True)
class Link:
    """What one site sends to another.

    Attributes:
        source: Sending site.
        destination: Receiving site, or `client`.
        values: Index of each step whose value crosses, each once however many consumers it has there.
        size: Bytes of them together.
    """

    source: str
    destination: str
    values: tuple[int, ...]
    size: float


@dataclass(frozen=True)
class Explanation:
    """Where everything runs, and why.

    Attributes:
        name: Name of the pipeline; empty if it has none.
        homesite: Where the client attaches.
        rows: The steps.
        links: What crosses between sites, and from the homesite to the client.
        seconds: Time of the whole: the longest way through computing and sending.
        bytes_moved: Between sites.
        exact: Whether it is proven that no other choice of sites would be better, down to the last tie-breaker.
        objective: What the sites were chosen for: `time`, `bytes` or `money`.
        money: Price of the whole, in the currency of the federation file.
        gap: By how much another choice might cost less at the most, as a share; 0 where that is proven impossible.
        warnings: What the validator noticed.
    """

    name: str
    homesite: str
    rows: tuple[Row, ...]
    links: tuple[Link, ...]
    seconds: float
    bytes_moved: float
    exact: bool
    gap: float = 0.0
    objective: ObjectiveName = "time"
    money: float = 0.0
    warnings: tuple[Fault, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON-able data, with the names of the attributes."""
        return {
            "name": self.name,
            "homesite": self.homesite,
            "seconds": self.seconds,
            "bytes_moved": self.bytes_moved,
            "money": self.money,
            "objective": self.objective,
            "exact": self.exact,
            "gap": self.gap,
            "rows": [asdict(row) for row in self.rows],
            "links": [asdict(link) for link in self.links],
            "warnings": [str(warning) for warning in self.warnings],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Give it as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def cells(self) -> list[tuple[str, ...]]:
        """Give the table as text, one tuple per step, in the order of `COLUMNS`."""
        return [
            (
                row.statement,
                row.label,
                row.site,
                row.why,
                seconds_text(row.seconds),
                bytes_text(row.size),
                _next_best(row.next_best),
                _short(row.location),
            )
            for row in self.rows
        ]

    def summary(self) -> str:
        """Say in one line what the whole is estimated to cost."""
        proof = "no choice of sites costs less" if self.gap == 0 else f"at most {self.gap:.2%} above the least"
        money = f", {self.money:.4g} to pay" if self.money else ""
        if self.objective != "time":
            proof += f" in {self.objective}"
        return (
            f"estimated {seconds_text(self.seconds)}, {bytes_text(self.bytes_moved)} between sites{money}; {proof} "
            "(one parameter set, each loop body once)"
        )

    def link_lines(self) -> list[str]:
        """Say per link how many values and bytes cross it, one line each."""
        return [
            f"{link.source} -> {link.destination}: {bytes_text(link.size)} in {count_text(len(link.values), 'value')}"
            for link in self.links
        ]

    def to_text(self) -> str:
        """Give table, links and total as plain text."""
        lines = _columns([COLUMNS, *self.cells()])
        lines += ["", *self.link_lines(), "", self.summary(), *(f"warning: {warning}" for warning in self.warnings)]
        return "\n".join(lines) + "\n"

    def to_mermaid(self) -> str:
        """Give a Mermaid flowchart: sites as boxes around their steps, bytes on what crosses between them."""
        lines = ["flowchart LR"]
        for number, (site, rows) in enumerate(self._by_site()):
            lines.append(f'  subgraph s{number}["{_mermaid(site)}"]')
            lines += [f'    n{row.index}["{_mermaid(row.label)} {_mermaid(row.statement)}"]' for row in rows]
            lines.append("  end")
        for row in self.rows:
            lines += [self._arrow(source, size, row) for source, size in row.inputs]
        yields = [row for row in self.rows if row.place is not None]
        if yields:
            lines.append(f'  {CLIENT}(["{CLIENT}"])')
        for row in yields:
            lines.append(f'  n{row.index} -->|"{_mermaid(row.place or "")}, {bytes_text(row.size)}"| {CLIENT}')
        return "\n".join(lines) + "\n"

    def _by_site(self) -> list[tuple[str, list[Row]]]:
        def key(row: Row) -> tuple[bool, str]:
            return row.site != self.homesite, row.site

        return [(site, list(rows)) for (_, site), rows in groupby(sorted(self.rows, key=key), key)]

    def _arrow(self, source: int, size: float, row: Row) -> str:
        if self.rows[source].site == row.site:
            return f"  n{source} --> n{row.index}"
        return f'  n{source} -->|"{bytes_text(size)}"| n{row.index}'

    def _repr_html_(self) -> str:
        """Show a table in notebooks."""
        head = "".join(f"<th style='text-align:left'>{escape(title)}</th>" for title in COLUMNS)
        rows = ("".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in cells) for cells in self.cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        links = "<br>".join(escape(line) for line in [*self.link_lines(), self.summary()])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{links}</p>"


LEAST_SECONDS = 0.001
LEAST_SHARE = 0.01
"""Differences below this time, or this share of the whole, are no reason: the estimates are not that good."""

COLUMNS = ("statement", "operation", "site", "why", "seconds", "size", "next best", "where")
"""Titles of the table."""


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
        return "its inputs and consumers are here"
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


def count_text(number: int, noun: str) -> str:
    """Write a number of things: `1 value`, `2 values`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def bytes_text(size: float) -> str:
    """Write a number of bytes for people, in powers of ten."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(size) >= factor * 0.9995:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def seconds_text(seconds: float) -> str:
    """Write a time for people: `0 s`, `2 ms`, `1.25 s`, `5 min 10 s`."""
    if seconds == 0:
        return "0 s"
    if abs(seconds) < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    if abs(seconds) < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(abs(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if seconds < 0 else ""
    return f"{sign}{hours} h {minutes} min" if hours else f"{sign}{minutes} min {rest} s"


def money_text(amount: float) -> str:
    """Write an amount of money, whatever the currency: `12.5 to pay`."""
    return f"{amount:.4g} to pay"


def _next_best(other: Alternative | None) -> str:
    if other is None:
        return "-"
    parts = [
        f"{'+' * (value > 0)}{text(value)}"
        for value, text in ((other.seconds, seconds_text), (other.bytes_moved, bytes_text), (other.money, money_text))
        if value
    ]
    return f"{other.site}: {', '.join(parts) or 'the same'}"


def _short(location: str) -> str:
    """Leave the directory away; it is in the JSON form."""
    return Path(location).name if location else "-"


def _mermaid(text: str) -> str:
    """Write any text inside a quoted Mermaid label."""
    codes = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "%": "#37;", "`": "#96;", "\n": " "}
    return "".join(codes.get(character, character) for character in text)


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


__all__ = ["CLIENT", "COLUMNS", "Explanation", "Link", "Row", "bytes_text", "count_text", "explain", "seconds_text"]
