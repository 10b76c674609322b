"""An explanation of a compiled pipeline, and its forms: table, Mermaid, JSON, notebook.

All figures are the compiler's estimates for one parameter set, the body of a loop counted once.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from dfmesh.compiler.placement import Alternative, ObjectiveName
from dfmesh.compiler.quantity_text import bytes_text, count_text, money_text, seconds_text
from dfmesh.errors import Fault
from dfmesh.shown_text import shown, shown_line
from dfmesh.text_tables import aligned, html_table

CLIENT = "client"
"""The receiving end of the last links, those of the results."""

COLUMNS = ("statement", "operation", "site", "why", "seconds", "size", "next best", "where")
"""Titles of the table."""


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


@dataclass(frozen=True, repr=False)
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
                shown_line(row.statement),
                shown_line(row.label),
                shown_line(row.site),
                shown_line(row.why),
                seconds_text(row.seconds),
                bytes_text(row.size),
                shown_line(_next_best(row.next_best)),
                shown_line(_short(row.location)),
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
            f"{shown_line(f'{link.source} -> {link.destination}')}: "
            f"{bytes_text(link.size)} in {count_text(len(link.values), 'value')}"
            for link in self.links
        ]

    def to_text(self) -> str:
        """Give table, links and total as plain text."""
        lines = aligned([COLUMNS, *self.cells()])
        lines += [
            "",
            *self.link_lines(),
            "",
            self.summary(),
            *(f"warning: {shown(str(warning), '  ')}" for warning in self.warnings),
        ]
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

    def __repr__(self) -> str:
        """Write it as a table."""
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        """Show a table in notebooks."""
        links = "<br>".join(escape(line) for line in [*self.link_lines(), self.summary()])
        return f"{html_table(COLUMNS, self.cells())}<p>{links}</p>"


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
    codes = {'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "%": "#37;", "`": "#96;"}
    return "".join(codes.get(character, character) for character in shown_line(text.replace("\n", " ")))


__all__ = ["CLIENT", "COLUMNS", "Explanation", "Link", "Row"]
