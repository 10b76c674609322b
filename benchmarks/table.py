"""One table out of all measurements: medians, spread, and ratios."""

from __future__ import annotations

from dataclasses import dataclass

from measure import ITEM_COUNTS, Measurement, Results

from dfmesh.cli.bench.figures import MISSING, Row, Spread, Unit, write_ratio

SUBJECT = "dfmesh"
WIDEST_PROBLEM = 60


def rate(label: str, case: str, figure: str) -> Row:
    return Row(label, case, figure, Unit.PER_SECOND, more_is_better=True)


def speed(label: str, case: str) -> Row:
    return Row(label, case, "bytes_per_second", Unit.BYTES_PER_SECOND, more_is_better=True)


def seconds(label: str, case: str, figure: str) -> Row:
    return Row(label, case, figure, Unit.SECONDS)


def memory(label: str, case: str, figure: str) -> Row:
    return Row(label, case, figure, Unit.BYTES, compared="beyond" not in figure)


ROWS = (
    seconds("import", "import", "import"),
    seconds("four sites started, a result from each, cold", "cold", "first_results"),
    seconds("warm job, submit to result, median", "latency", "job_median"),
    seconds("warm job, submit to result, 99 %", "latency", "job_p99"),
    seconds("warm job, submit to first value", "first_value", "first_value"),
    rate("jobs, 1 client, one after the other", "latency", "jobs_per_second"),
    rate("jobs, 8 clients, many in flight", "parallel", "jobs_per_second"),
    *(rate(f"{count:,} items, a to b", f"items_{count}", "items_per_second") for count in ITEM_COUNTS),
    rate("operations in 8 chains of 64, a to b to a", "chains", "hops_per_second"),
    seconds("- processor time of each, all processes", "chains", "cpu_per_hop"),
    speed("1 MB arrays, a to b", "array_1mb"),
    speed("16 MB arrays, a to b", "array_16mb"),
    speed("256 MB array, a to b", "array_256mb"),
    speed("1 GB array, a to b", "array_1gb"),
    memory("256 MB array: peak memory beyond it, sender", "array_memory_256mb", "sender_beyond_value"),
    memory("256 MB array: peak memory beyond it, receiver", "array_memory_256mb", "receiver_beyond_value"),
    memory("256 MB array: rise of all processes together", "array_memory_256mb", "all_rise"),
    memory("1 GB array: peak memory beyond it, sender", "array_memory_1gb", "sender_beyond_value"),
    memory("1 GB array: peak memory beyond it, receiver", "array_memory_1gb", "receiver_beyond_value"),
    memory("1 GB array: rise of all processes together", "array_memory_1gb", "all_rise"),
    memory("resident memory of a site before its first call", "at_rest", "site_bytes"),
    memory("memory of all processes but the client", "at_rest", "all_bytes"),
    Row("four idle sites: share of a core", "at_rest", "cpu_share", Unit.SHARE),
    rate("four idle sites: wake-ups", "at_rest", "wake_ups_per_second")._replace(more_is_better=False),
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
    """The table: a column per contestant, and after those how good `dfmesh` is beside each of the others."""
    others = [name for name in contestants if name != SUBJECT]
    compared = others if SUBJECT in contestants else []
    header = ["median (lowest to highest)", *contestants, *(f"{SUBJECT} / {name}" for name in compared)]
    shown = {case for _, case in results}
    lines = [line(row, results, contestants, compared) for row in ROWS if row.case in shown]
    return Table(header, lines)


def line(row: Row, results: Results, contestants: list[str], compared: list[str]) -> list[str]:
    own = spread(row, results, SUBJECT) if compared else None
    ratios = [write_ratio(row.ratio(own, spread(row, results, name))) for name in compared]
    return [row.label, *(cell(row, results, name) for name in contestants), *ratios]


def spread(row: Row, results: Results, name: str) -> Spread | None:
    values = results[name, row.case].figures.get(row.figure)
    return Spread.of(values) if values else None


def cell(row: Row, results: Results, name: str) -> str:
    measurement = results[name, row.case]
    found, problem = spread(row, results, name), trouble(measurement)
    if found is None:
        return problem or MISSING
    written = found.write(row.unit) + scaled_down(row, measurement)
    return f"{written}; {problem}" if problem else written


def scaled_down(row: Row, measurement: Measurement) -> str:
    """Say so where a job had fewer items than the row says, because it would have taken too long."""
    counts = measurement.figures.get("count", [])
    if not counts or f"items_{counts[-1]:.0f}" == row.case:
        return ""
    return f" with {min(counts):,.0f}"


def trouble(measurement: Measurement) -> str:
    """Why there are fewer figures than repeats."""
    if not measurement.problems:
        return "" if measurement.figures else measurement.refused
    problem = measurement.problems[0].replace("|", "/")
    worst = problem if len(problem) <= WIDEST_PROBLEM else f"{problem[: WIDEST_PROBLEM - 3]}..."
    return f"{len(measurement.problems)} more {worst}" if measurement.figures else worst
