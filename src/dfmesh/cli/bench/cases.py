"""What `dfmesh bench` measures: floor and dfmesh by turns, several times, in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from json import dumps
from typing import Any, NamedTuple

from dfmesh.cli.bench import child, measures, resources
from dfmesh.cli.bench.figures import Row, Spread, Unit
from dfmesh.cli.bench.floor import Floor
from dfmesh.cli.bench.mesh import Mesh
from dfmesh.cli.bench.system import CannotStateError, System
from dfmesh.errors import DfmeshError

MEGABYTE = 1 << 20
CHILD_LIMIT_SECONDS = 60.0
MOST_ITEMS = 1_000_000
AT_REST_TIMES = 24.0
"""How many times as long sites are watched at rest: heartbeats are seconds apart."""
NEEDS_PROC = "needs Linux's /proc"

FLOOR = Floor.name
MESH = Mesh.name


class Case(NamedTuple):
    """One measurement.

    Attributes:
        name: Which rows it is for.
        measure: Name of the measure.
        parameters: What it takes besides the system and its seconds.
        timed: Whether it is told how long to go on.
        needs_proc: Whether it reads what only Linux has.
        once: Whether one repeat is enough.
    """

    name: str
    measure: str
    parameters: Mapping[str, Any]
    timed: bool = True
    needs_proc: bool = False
    once: bool = False


CASES = (
    Case("array_memory", "array_memory", {"size": 16 * MEGABYTE}, timed=False, needs_proc=True, once=True),
    Case("latency", "latency", {}),
    Case("parallel", "parallel", {}),
    Case("items", "items", {}),
    Case("chains", "chains", {}, needs_proc=True),
    Case("array_1mb", "arrays", {"size": MEGABYTE, "count": 32}),
    Case("array_16mb", "arrays", {"size": 16 * MEGABYTE, "count": 4}),
)

ROWS = (
    Row("import", "import", "import", Unit.SECONDS),
    Row("four sites started, a result from each", "cold", "first_results", Unit.SECONDS),
    Row("warm job, submit to result, median", "latency", "job_median", Unit.SECONDS),
    Row("warm job, submit to result, 99 %", "latency", "job_p99", Unit.SECONDS),
    Row("jobs, one after the other", "latency", "jobs_per_second", Unit.PER_SECOND, more_is_better=True),
    Row("jobs, 8 threads, many in flight", "parallel", "jobs_per_second", Unit.PER_SECOND, more_is_better=True),
    Row("items, site a to site b", "items", "items_per_second", Unit.PER_SECOND, more_is_better=True),
    Row("processor time of an operation and its hop", "chains", "cpu_per_hop", Unit.SECONDS),
    Row("arrays of 1 MB, a to b", "array_1mb", "bytes_per_second", Unit.BYTES_PER_SECOND, more_is_better=True),
    Row("arrays of 16 MB, a to b", "array_16mb", "bytes_per_second", Unit.BYTES_PER_SECOND, more_is_better=True),
    Row("16 MB array, sender: memory beyond it", "array_memory", "sender_beyond_value", Unit.BYTES),
    Row("16 MB array, receiver: memory beyond it", "array_memory", "receiver_beyond_value", Unit.BYTES),
    Row("memory of a site before adapters load", "at_rest", "site_bytes", Unit.BYTES),
    Row("four idle sites: share of a core", "at_rest", "cpu_share", Unit.SHARE),
    Row("four idle sites: wake-ups", "at_rest", "wake_ups_per_second", Unit.PER_SECOND),
)


@dataclass
class Found:
    """What was measured.

    Attributes:
        values: By (system, case, figure), the value of each repeat.
        refusals: By (system, case), why it is not measured.
        failures: By (system, case), what went wrong; there are fewer values, or none.
    """

    values: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)
    refusals: dict[tuple[str, str], str] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def spread(self, system: str, row: Row) -> Spread | None:
        """Summarise a figure; None if there is none."""
        values = self.values.get((system, row.case, row.figure))
        return Spread.of(values) if values else None

    def add(self, system: str, case: str, figures: Mapping[str, float]) -> None:
        """Take in one repeat."""
        for figure, value in figures.items():
            self.values.setdefault((system, case, figure), []).append(value)

    def trouble(self, system: str, case: str) -> str:
        """Say why there is no figure; empty if nothing is known."""
        return self.failures.get((system, case)) or self.refusals.get((system, case), "")


def measure_all(seconds: float, repeats: int, say: Callable[[str], None]) -> Found:
    """Measure everything.

    Args:
        seconds: How long each measurement goes on in each repeat.
        repeats: Repeats.
        say: Told what is going on, for who waits.

    Raises:
        SessionError: the sites cannot be started.
    """
    found = Found()
    for repeat in range(repeats):
        for name in (FLOOR, MESH):
            say(f"start, {name}, {repeat + 1} of {repeats}")
            _measure_start(found, name)
    with Mesh() as mesh:
        say("at rest, dfmesh")
        _measure_at_rest(found, mesh, seconds)
        with Floor() as floor:
            counts = _item_counts({FLOOR: floor, MESH: mesh}, seconds)
            for repeat in range(repeats):
                for case in CASES:
                    for system in (floor, mesh):
                        if not (case.once and repeat):
                            say(f"{case.name}, {system.name}, {repeat + 1} of {repeats}")
                            _measure(found, case, system, seconds, counts[system.name])
    return found


def _measure_start(found: Found, name: str) -> None:
    """Measure import and cold start, each in a process of its own."""
    for case, measure, parameters in (("import", child.IMPORTING, {"repeats": 1}), ("cold", child.COLD, {})):
        orders = [{"case": case, "measure": measure, "parameters": parameters}]
        command = [sys.executable, "-m", child.__name__, name, dumps(orders)]
        try:
            done = subprocess.run(  # noqa: S603 - our own interpreter and module
                command,
                capture_output=True,
                text=True,
                timeout=CHILD_LIMIT_SECONDS,
                env=child.starting_now(os.environ),
            )
        except subprocess.TimeoutExpired:
            found.failures[name, case] = f"it took more than {CHILD_LIMIT_SECONDS:.0f} s"
            continue
        lines = child.lines(done.stdout)
        for line in lines:
            found.add(name, case, line.get("figures", {}))
            if "failed" in line:
                found.failures[name, case] = line["failed"]
        if not lines:
            messages = done.stderr.strip().splitlines()
            found.failures[name, case] = messages[-1] if messages else f"exit code {done.returncode}"


def _measure_at_rest(found: Found, mesh: Mesh, seconds: float) -> None:
    """Measure sites that nothing else was asked of, so that no adapter is loaded."""
    if resources.available():
        found.add(MESH, "at_rest", measures.at_rest(mesh, AT_REST_TIMES * seconds))
    else:
        found.refusals[MESH, "at_rest"] = NEEDS_PROC


def _item_counts(systems: Mapping[str, System], seconds: float) -> dict[str, int]:
    """Choose for each system how many items one job has, so that it takes about `seconds`."""
    counts = {}
    for name, system in systems.items():
        first = measures.items(system, 0, measures.FEWEST_ITEMS)["items_per_second"]
        better = measures.items(system, 0, _whole(first * seconds / 4))["items_per_second"]
        counts[name] = _whole(better * seconds)
    return counts


def _whole(count: float) -> int:
    return max(measures.FEWEST_ITEMS, min(MOST_ITEMS, measures.two_digits(count)))


def _measure(found: Found, case: Case, system: System, seconds: float, items: int) -> None:
    if case.needs_proc and not resources.available():
        found.refusals[system.name, case.name] = NEEDS_PROC
        return
    given: dict[str, Any] = dict(case.parameters)
    if case.timed:
        given["seconds"] = seconds
    if case.measure == "items":
        given["count"] = items
    try:
        found.add(system.name, case.name, dict(measures.measures())[case.measure](system, **given))
    except CannotStateError as error:
        found.refusals[system.name, case.name] = str(error)
    except (measures.WrongResultError, DfmeshError) as error:
        found.failures[system.name, case.name] = str(error).splitlines()[0]
