"""Figures, their spread, and how they are written. Only the standard library is imported here."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

MISSING = "-"


class Unit(StrEnum):
    """What a figure counts."""

    SECONDS = "s"
    PER_SECOND = "1/s"
    BYTES_PER_SECOND = "B/s"
    BYTES = "B"
    SHARE = "cores"

    def write(self, value: float) -> str:
        """Write a value for people."""
        match self:
            case Unit.SECONDS if abs(value) < 1e-3:
                return f"{value * 1e6:.3g} µs"
            case Unit.SECONDS:
                return f"{value * 1e3:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
            case Unit.PER_SECOND:
                return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"
            case Unit.BYTES_PER_SECOND:
                return f"{value / 1e9:.3g} GB/s"
            case Unit.BYTES:
                return f"{round(value / 1e6):,} MB"
            case Unit.SHARE:
                return f"{value * 100:.2g} %"


@dataclass(frozen=True)
class Spread:
    """Median and extremes of the repeats of one figure."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise the repeats; at least one."""
        return cls(statistics.median(values), min(values), max(values), len(values))

    def write(self, unit: Unit) -> str:
        """Write the median, and what it lies between if there were several repeats."""
        if self.repeats == 1:
            return unit.write(self.median)
        return f"{unit.write(self.median)} ({unit.write(self.low)} to {unit.write(self.high)})"


class Row(NamedTuple):
    """One figure of a table.

    Attributes:
        label: First column.
        case: Name of the case that it comes from.
        figure: Name of the figure in that case.
        unit: What it counts.
        more_is_better: False for durations and memory.
        compared: Whether a ratio says anything.
    """

    label: str
    case: str
    figure: str
    unit: Unit
    more_is_better: bool = False
    compared: bool = True

    def ratio(self, own: Spread | None, other: Spread | None) -> float | None:
        """Say how many times as good a figure is as another: above 1 is better, for durations as for rates."""
        if own is None or other is None or not self.compared or own.median <= 0 or other.median <= 0:
            return None
        fraction = own.median / other.median
        return fraction if self.more_is_better else 1 / fraction


def write_ratio(ratio: float | None) -> str:
    """Write a ratio for people."""
    if ratio is None:
        return MISSING
    return f"{ratio:,.0f} x" if ratio >= 10 else f"{ratio:.2g} x"
