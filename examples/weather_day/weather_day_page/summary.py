"""What the report says about sites: rows read and dropped, operations run, bytes sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

REASONS = {
    "position": "impossible position",
    "repeated": "repeated report",
    "air_temperature": "air temperature",
    "dew_point_temperature": "dew point",
    "air_pressure_at_mean_sea_level": "pressure",
    "wind_speed": "wind speed",
    "wind_from_direction": "wind direction",
    "visibility": "visibility",
}
"""Reasons for which something was dropped, in words; the first two are whole reports, the others single values."""

WHOLE_REPORTS = ("position", "repeated")


@dataclass
class SiteRow:
    """One site in the table.

    Attributes:
        site: Its name.
        read: Reports read.
        kept: Reports left after quality control.
        rejected: Reason to the number of reports or values dropped.
        bytes_read: Size of the reports read, as Arrow tables.
        bytes_sent: Bytes sent to other sites.
    """

    site: str
    read: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    bytes_sent: int = 0

    def add(self, counts: Mapping[str, Any]) -> None:
        """Add what quality control counted for one hour."""
        self.read += counts["read"]
        self.kept += counts["kept"]
        self.bytes_read += counts["bytes"]
        self.rejected.update(counts["rejected"])

    def cells(self) -> list[str]:
        """Give the row as text: site, reports read and kept, what was dropped and why, a line each, bytes sent."""
        dropped = [(reason, self.rejected[reason]) for reason in REASONS if self.rejected[reason]]
        whole = [f"{number:,} {REASONS[reason]}" for reason, number in dropped if reason in WHOLE_REPORTS]
        single = [f"{number:,} {REASONS[reason]}" for reason, number in dropped if reason not in WHOLE_REPORTS]
        numbers = [f"{self.read:,}", f"{self.kept:,}"]
        return [self.site, *numbers, "\n".join(whole), "\n".join(single), in_words(self.bytes_sent)]


@dataclass(frozen=True)
class SitePlacement:
    """One site in the picture.

    Attributes:
        site: Its name.
        operations: Name of each operation that ran here, and how often.
        sent: Peer (a site, or `client`) to bytes sent to it.
    """

    site: str
    operations: tuple[tuple[str, int], ...]
    sent: dict[str, int]


def placement_of(reports: Iterable[Any]) -> list[SitePlacement]:
    """Say what ran where and what was sent, from the site reports of a job (`dfmesh.SiteReport`)."""
    return [SitePlacement(report.site, _operations(report.operations), _sent(report.bytes_sent)) for report in reports]


def bytes_between(placement: Iterable[SitePlacement]) -> int:
    """Add up what went from one site to another, the client left out."""
    return sum(number for site in placement for peer, number in site.sent.items() if peer != "client")


def in_words(number: int) -> str:
    """Write a number of bytes for people, in powers of ten."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} B"


def _operations(operations: Iterable[Any]) -> tuple[tuple[str, int], ...]:
    calls: Counter[str] = Counter()
    for operation in operations:
        if "." in operation.operation:  # a construct such as ForEach has no dot in its name
            calls[operation.operation] += operation.done
    return tuple(calls.items())


def _sent(sent: Mapping[str, int]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for peer, number in sent.items():
        total["client" if peer.startswith("client") else peer] += number
    return dict(total)
