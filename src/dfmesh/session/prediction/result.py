"""What is predicted of a run, for people and machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from dfmesh.compiler.quantity_text import bytes_text, seconds_text
from dfmesh.text_tables import aligned, html_table


@dataclass(frozen=True, slots=True)
class PredictedOperation:
    """One operation.

    Attributes:
        statement: Id of the statement, as users see it.
        operation: Name of the operation.
        site: Where it runs.
        calls: How often it is called.
        seconds: Time of one call.
    """

    statement: str
    operation: str
    site: str
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PredictedSite:
    """One site.

    Attributes:
        site: Its name.
        calls: Calls that it makes.
        busy: Share of the whole time in which it computes.
        parallel: Calls that go on while it computes, on average.
        capacity: Calls that may go on there at a time; None if it declares no limit.
    """

    site: str
    calls: int
    busy: float
    parallel: float
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class PredictedLink:
    """The way from one site to another.

    Attributes:
        source: Sending site.
        destination: Receiving site.
        size: Bytes that it carries, heads of messages included.
        messages: How many messages that is.
        busy: Share of the whole time in which it sends.
    """

    source: str
    destination: str
    size: float
    messages: int
    busy: float


@dataclass(frozen=True, slots=True)
class PathPart:
    """A part of the critical path: things of one kind that the end had to wait for, one after the other.

    Attributes:
        kind: `call`, `load` (the libraries of an adapter), `send`, `lag` (until a busy site has time for the result of
            a call), `start` or `end` (of the job).
        what: Operation of a call or load; empty for others.
        statement: Its statement.
        site: Where it happens; for a send the sending site.
        destination: Receiving site of a send; empty for others.
        seconds: Time of all of them.
        times: How many there are.
    """

    kind: str
    what: str
    statement: str
    site: str
    destination: str
    seconds: float
    times: int

    def __str__(self) -> str:
        match self.kind:
            case "call":
                return f"{self.what} {self.statement} at {self.site}"
            case "load":
                return f"loading the libraries of {self.what} at {self.site}"
            case "send":
                return f"sending from {self.site} to {self.destination}"
            case "lag":
                return f"waiting for {self.site} to take results of its calls"
            case "start":
                return f"starting the job at {self.site}"
            case _:
                return "ending the job"


@dataclass(frozen=True, repr=False)
class Prediction:
    """How a run is expected to go.

    Attributes:
        name: Name of the pipeline; empty if it has none.
        homesite: Where the client attaches.
        seconds: From the submission to the end.
        first_result: Seconds until the client has the first result; None if there is none.
        results: How many results there are.
        result_bytes: Bytes of them.
        operations: The operations, those that take most time first.
        sites: The sites, those that compute longest first.
        links: What crosses between sites, most bytes first.
        path: The critical path by its parts, the largest first; they add up to `seconds`.
        assumptions: What nothing is known about, and what was assumed for it.
        measured: Share of the calls whose time was measured in earlier runs.
        events: How many events were simulated.
        undeclared: Times, sizes and links that are neither declared nor measured, and what was taken for them.
        changes: What is different from the real federation (`what_if`).
    """

    name: str
    homesite: str
    seconds: float
    first_result: float | None
    results: int
    result_bytes: float
    operations: tuple[PredictedOperation, ...]
    sites: tuple[PredictedSite, ...]
    links: tuple[PredictedLink, ...]
    path: tuple[PathPart, ...]
    assumptions: tuple[str, ...]
    measured: float
    events: int
    undeclared: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def bytes_between_sites(self) -> float:
        """Bytes that sites send to one another."""
        return sum(link.size for link in self.links)

    @property
    def bottleneck(self) -> PathPart | None:
        """The largest part of the critical path: what to make faster first. None if nothing takes time."""
        return self.path[0] if self.path else None

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON-able data, with the names of the attributes."""
        bottleneck = self.bottleneck
        return {
            **asdict(self),
            "bytes_between_sites": self.bytes_between_sites,
            "bottleneck": None if bottleneck is None else str(bottleneck),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Give it as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def summary(self) -> str:
        """Say in one line how it goes."""
        first = "" if self.first_result is None else f", first result after {seconds_text(self.first_result)}"
        moved = f"{bytes_text(self.bytes_between_sites)} between sites"
        plural = "s" * (self.results != 1)
        return f"{seconds_text(self.seconds)}{first}; {self.results:,} result{plural}, {moved}"

    def bottleneck_line(self) -> str:
        """Say in one line what takes most of the time; empty if nothing takes any."""
        part = self.bottleneck
        if part is None or not self.seconds:
            return ""
        times = "" if part.times == 1 else f", {part.times:,} times in a row"
        return f"bottleneck: {part} is {part.seconds / self.seconds:.0%} of the critical path{times}"

    def tables(self, most: int = 20) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Give tables as text, each its titles and its rows.

        Args:
            most: Rows of each table; a last row says how many were left out.
        """
        whole = self.seconds or 1.0
        operations = [
            (item.operation, item.statement, item.site, f"{item.calls:,}", seconds_text(item.seconds))
            for item in self.operations
        ]
        sites = [
            (
                item.site,
                f"{item.calls:,}",
                f"{item.busy:.0%}",
                f"{item.parallel:.1f}" + ("" if item.capacity is None else f" of {item.capacity:,}"),
            )
            for item in self.sites
        ]
        links = [
            (f"{item.source} -> {item.destination}", bytes_text(item.size), f"{item.messages:,}", f"{item.busy:.0%}")
            for item in self.links
        ]
        path = [
            (str(item), seconds_text(item.seconds), f"{item.times:,}", f"{item.seconds / whole:.0%}")
            for item in self.path
        ]
        return [
            (("operation", "statement", "site", "calls", "each"), _shortened(operations, most)),
            (("site", "calls", "busy", "in parallel"), _shortened(sites, most)),
            (("link", "bytes", "messages", "busy"), _shortened(links, most)),
            (("critical path", "time", "times", "share"), _shortened(path, most)),
        ]

    def to_text(self) -> str:
        """Give it as plain text."""
        lines = [self.summary(), self.bottleneck_line()]
        for titles, rows in self.tables():
            if rows:
                lines += ["", *aligned([titles, *rows])]
        return "\n".join([*lines, "", *self.footnotes()]) + "\n"

    def footnotes(self) -> list[str]:
        """Say on what it rests, one line each."""
        return [
            f"{self.measured:.0%} of the calls take as long as was measured{' or changed' if self.changes else ''}; "
            "the others as is declared",
            *(f"what if: {change}" for change in self.changes),
            *(f"assumed: {assumption}" for assumption in self.assumptions),
            *(f"not declared: {item}" for item in self.undeclared),
        ]

    def compared(self, before: Prediction) -> list[str]:
        """Say how it differs from another prediction of the same pipeline, one line each.

        Args:
            before: The other one, such as that without the changes.
        """
        times = f", {self.seconds / before.seconds - 1:+.0%}" if before.seconds else ""
        lines = [
            f"{seconds_text(self.seconds)} instead of {seconds_text(before.seconds)}{times}; "
            f"{bytes_text(self.bytes_between_sites)} between sites instead of {bytes_text(before.bytes_between_sites)}"
        ]
        sites = {item.statement: item.site for item in before.operations}
        moved = [
            f"{item.operation} {item.statement} runs at {item.site} instead of {sites[item.statement]}"
            for item in self.operations
            if sites.get(item.statement, item.site) != item.site
        ]
        more = [f"and {len(moved) - _MOST_MOVED:,} more"] if len(moved) > _MOST_MOVED else []
        return [*lines, *moved[:_MOST_MOVED], *more]

    def to_mermaid(self, most: int = 60) -> str:
        """Give a Mermaid flowchart: how busy sites and links are; the bottleneck in red.

        Args:
            most: Links that are drawn, those that carry most; besides, sites that compute are.
        """
        links = self.links[:most]
        sites = [item for item in self.sites if item.calls][:most]
        names = dict.fromkeys(
            [*(item.site for item in sites), *(end for it in links for end in (it.source, it.destination))]
        )
        number = {name: f"s{position}" for position, name in enumerate(names)}
        told = {item.site: f"<br/>{item.calls:,} calls, busy {_percent(item.busy)}" for item in sites}
        lines = ["flowchart LR", *(f'  {number[name]}["{name}{told.get(name, "")}"]' for name in names)]
        lines += [
            f'  {number[it.source]} -->|"{bytes_text(it.size)}, busy {_percent(it.busy)}"| {number[it.destination]}'
            for it in links
        ]
        part = self.bottleneck
        ends = None if part is None else (part.site, part.destination)
        slow = [position for position, item in enumerate(links) if (item.source, item.destination) == ends]
        if slow:
            lines.append(f"  linkStyle {slow[0]} stroke:#c00,stroke-width:3px")
        elif part is not None and part.site in number and not part.destination:
            lines.append(f"  style {number[part.site]} stroke:#c00,stroke-width:3px")
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        """Write it as text."""
        return self.to_text().rstrip("\n")

    def _repr_html_(self) -> str:
        """Show tables in notebooks."""
        parts = [f"<p>{escape(self.summary())}<br>{escape(self.bottleneck_line())}</p>"]
        parts += [html_table(titles, rows) for titles, rows in self.tables()]
        parts.append(f"<p>{'<br>'.join(map(escape, self.footnotes()))}</p>")
        return "".join(parts)


_MOST_MOVED = 10
"""Operations that are named if they run elsewhere than before."""


def _percent(share: float) -> str:
    """Write a share where Mermaid would take a percent sign for something else."""
    return f"{share * 100:.0f}#37;"


def _shortened(rows: Sequence[tuple[str, ...]], most: int) -> list[tuple[str, ...]]:
    if len(rows) <= most:
        return list(rows)
    return [*rows[: most - 1], (f"and {len(rows) - most + 1:,} more", *[""] * (len(rows[0]) - 1))]
