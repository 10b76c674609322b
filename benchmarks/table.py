"""One table out of all measurements: medians, spread, and ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from measure import Measurement, Results, Spread

MISSING = "-"
SUBJECT = "dfmesh"
WIDEST_PROBLEM = 60


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def per_second(value: float) -> str:
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def gigabytes(value: float) -> str:
    return f"{value / 1e9:.3g} GB/s"


class Row(NamedTuple):
    """One figure of the table.

    Attributes:
        label: First column.
        case: Name of the case that it comes from.
        figure: Name of the figure in that case.
        written: How a value is written.
        more_is_better: False for durations.
    """

    label: str
    case: str
    figure: str
    written: Callable[[float], str]
    more_is_better: bool


ROWS = (
    Row("connect and first result, cold", "cold", "connect_first_result", seconds, False),
    Row("warm job, submit to result, median", "latency", "job_p50", seconds, False),
    Row("warm job, submit to result, 99 %", "latency", "job_p99", seconds, False),
    Row("warm job, submit to first value", "latency", "first_result_p50", seconds, False),
    Row("jobs, 1 client, one after the other", "latency", "job_per_second", per_second, True),
    Row("jobs, 8 threads, many in flight", "parallel", "jobs_per_second", per_second, True),
    Row("250 items, a to b", "items_250", "items_per_second", per_second, True),
    Row("1,000 items, a to b", "items_1000", "items_per_second", per_second, True),
    Row("10,000 items, a to b", "items_10000", "items_per_second", per_second, True),
    Row("100,000 items, a to b", "items_100000", "items_per_second", per_second, True),
    Row("1 MB arrays, a to b", "array_1mb", "bytes_per_second", gigabytes, True),
    Row("- one plain memcpy of 1 MB", "memcpy_1mb", "bytes_per_second", gigabytes, True),
    Row("256 MB array, a to b", "array_256mb", "bytes_per_second", gigabytes, True),
    Row("- one plain memcpy of 256 MB", "memcpy_256mb", "bytes_per_second", gigabytes, True),
)


@dataclass(frozen=True)
class Table:
    """A header and lines of cells, not yet in any format."""

    header: list[str]
    lines: list[list[str]]

    def text(self) -> str:
        """For a terminal."""
        widths = [max(map(len, column)) for column in zip(self.header, *self.lines, strict=True)]
        rule = ["-" * width for width in widths]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in [self.header, rule, *self.lines]
        )

    def markdown(self) -> str:
        """For a document."""
        rule = ["---"] * len(self.header)
        return "\n".join(f"| {' | '.join(line)} |" for line in [self.header, rule, *self.lines])


def build(results: Results, contestants: list[str]) -> Table:
    """The table: a column per contestant, and after each of the others how fast `dfmesh` is beside it."""
    others = [name for name in contestants if name != SUBJECT]
    compared = others if SUBJECT in contestants else []
    header = ["median (lowest to highest)", *contestants, *(f"{SUBJECT} / {name}" for name in compared)]
    shown = {case for _, case in results}
    lines = [line(row, results, contestants, compared) for row in ROWS if row.case in shown]
    return Table(header, lines)


def line(row: Row, results: Results, contestants: list[str], compared: list[str]) -> list[str]:
    cells = [cell(row, results, name) for name in contestants]
    return [row.label, *cells, *(ratio(row, results, name) for name in compared)]


def spread(row: Row, results: Results, name: str) -> Spread | None:
    values = results[name, row.case].figures.get(row.figure)
    return Spread.of(values) if values else None


def cell(row: Row, results: Results, name: str) -> str:
    found, problem = spread(row, results, name), trouble(results[name, row.case])
    if found is None:
        return problem or MISSING
    written = row.written(found.median)
    if found.repeats > 1:
        written += f" ({row.written(found.low)} to {row.written(found.high)})"
    return f"{written}; {problem}" if problem else written


def trouble(measurement: Measurement) -> str:
    """Why there are fewer figures than repeats."""
    if measurement.refused or not measurement.problems:
        return measurement.refused
    problems = measurement.problems
    worst = problems[0] if len(problems[0]) <= WIDEST_PROBLEM else f"{problems[0][: WIDEST_PROBLEM - 3]}..."
    return f"{len(problems)} more {worst}" if measurement.figures else worst


def ratio(row: Row, results: Results, name: str) -> str:
    """How many times as fast dfmesh is: above 1 is faster, for durations as for rates."""
    own, other = spread(row, results, SUBJECT), spread(row, results, name)
    if own is None and row.case.startswith("memcpy"):
        own = spread(row._replace(case=row.case.replace("memcpy", "array")), results, SUBJECT)
    if own is None or other is None:
        return MISSING
    fraction = own.median / other.median if row.more_is_better else other.median / own.median
    return f"{fraction:,.0f} x" if fraction >= 10 else f"{fraction:.2g} x"
