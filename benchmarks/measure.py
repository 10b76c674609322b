"""Which measurements there are, and how one of them is made: in a child process, with a hard time-out."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from contestants import BENCHMARKS, Contestant

from dfmesh.cli.bench import child
from dfmesh.cli.bench.resources import RUN_VARIABLE, marked_processes

MEGABYTE = 1 << 20
ORDER_SEED = 7
MOST_PROBLEMS = 2
MESSAGES_SHOWN = 20
START_LIMIT_SECONDS = 60.0
ITEM_COUNTS = (250, 1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Case:
    """One measurement: what the contestant's child is asked for, and how long it may take."""

    name: str
    measure: str
    parameters: Mapping[str, Any]
    limit_seconds: float

    def order(self) -> dict[str, Any]:
        return {"case": self.name, "measure": self.measure, "parameters": dict(self.parameters)}


Group = tuple[Case, ...]
"""Cases that one child measures, one after the other."""


@dataclass
class Measurement:
    """What one contestant showed for one case.

    Attributes:
        refused: Why it is not measured at all.
        figures: Per figure a value of every repeat that succeeded.
        problems: What went wrong in the other repeats.
    """

    refused: str = ""
    figures: dict[str, list[float]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def given_up(self) -> bool:
        """Whether to spend no more time on it."""
        return bool(self.refused) or len(self.problems) >= MOST_PROBLEMS

    def add(self, line: Mapping[str, Any]) -> None:
        """Note what a child said of one repeat."""
        self.refused = line.get("refused", self.refused)
        if "failed" in line:
            self.problems.append(line["failed"])
        for figure, value in line.get("figures", {}).items():
            self.figures.setdefault(figure, []).append(value)


Results = dict[tuple[str, str], Measurement]
"""By (contestant, case)."""


def groups(quick: bool, with_peers: bool) -> list[Group]:
    """All measurements of one run. `quick` makes them shorter, leaves the longest out, and lets children share."""
    seconds, budget, limit = (0.4, 2.0, 30.0) if quick else (2.0, 10.0, 120.0)
    item_counts = ITEM_COUNTS[1:4] if quick else ITEM_COUNTS if with_peers else ITEM_COUNTS[1:]

    def arrays(size: int, count: int) -> dict[str, Any]:
        return {"seconds": seconds, "size": size * MEGABYTE, "count": count}

    cold = Case("cold", child.COLD, {}, START_LIMIT_SECONDS)
    importing = Case("import", child.IMPORTING, {"repeats": 2}, START_LIMIT_SECONDS)
    at_rest = Case("at_rest", "at_rest", {"seconds": 2 if quick else 20}, limit)
    calls = [
        Case("latency", "latency", {"seconds": seconds}, limit),
        Case("first_value", "first_value", {"seconds": seconds}, limit),
        Case("parallel", "parallel", {"seconds": seconds}, limit),
        Case("chains", "chains", {"seconds": seconds}, limit),
    ]
    items = [
        Case(f"items_{count}", "items", {"seconds": seconds, "count": count, "budget": budget}, limit)
        for count in item_counts
    ]
    moves = [
        Case("array_1mb", "arrays", arrays(1, 64), limit),
        Case("array_16mb", "arrays", arrays(16, 8), limit),
        Case("array_256mb", "arrays", arrays(256, 1), limit),
    ]
    memory = [Case("array_memory_256mb", "array_memory", {"size": 256 * MEGABYTE}, limit)]
    if quick:
        return [(cold, at_rest, *calls, *items), (*memory, *moves, importing)]
    moves.append(Case("array_1gb", "arrays", arrays(1024, 1), 2 * limit))
    memory.append(Case("array_memory_1gb", "array_memory", {"size": 1024 * MEGABYTE}, 2 * limit))
    return [(case,) for case in (importing, cold, at_rest, *calls, *items, *moves, *memory)]


def run_all(contestants: list[Contestant], todo: list[Group], repeats: int, most_seconds: float) -> tuple[Results, int]:
    """Measure everything, interleaved: group after group, and in each of them one contestant after another.

    Args:
        contestants: All contestants.
        todo: All measurements.
        repeats: How often at most.
        most_seconds: No repeat is begun that would probably end after so many seconds.

    Returns:
        What was found, and the number of repeats.
    """
    shuffled = random.Random(ORDER_SEED).sample
    cases = [case for group in todo for case in group]
    results: Results = {(c.name, case.name): Measurement(c.refuses(case.name)) for c in contestants for case in cases}
    begin = time.perf_counter()
    for repeat in range(repeats):
        if repeat and (time.perf_counter() - begin) * (repeat + 1) / repeat > most_seconds:
            return results, repeat
        for group in todo:
            for contestant in shuffled(contestants, len(contestants)):
                measure_group(results, contestant, group, repeat)
    return results, repeats


def measure_group(results: Results, contestant: Contestant, group: Group, repeat: int) -> None:
    """Let one child measure what is still wanted of a group."""
    wanted = [
        case
        for case in group
        if not results[contestant.name, case.name].given_up and repeat < contestant.repeats_at_most(case.name)
    ]
    if not wanted:
        return
    begin = time.perf_counter()
    for line in run_child(contestant, wanted):
        results[contestant.name, line["case"]].add(line)
        report(repeat, contestant, line)
    taken = f"[{repeat + 1}] {contestant.name}: {len(wanted)} cases in {time.perf_counter() - begin:.1f} s"
    print(taken, file=sys.stderr, flush=True)


def report(repeat: int, contestant: Contestant, line: Mapping[str, Any]) -> None:
    """Show on standard error how one measurement went."""
    figures = ", ".join(f"{figure} {value:.4g}" for figure, value in line.get("figures", {}).items())
    shown = figures or line.get("failed") or f"refused: {line.get('refused')}"
    print(f"[{repeat + 1}] {line['case']:<18} {contestant.name:<14} {shown}", file=sys.stderr, flush=True)


def run_child(contestant: Contestant, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Make measurements in a process of their own; gives a line for each of them, whatever happens."""
    mark = secrets.token_hex(8)
    command = [*contestant.command, json.dumps([case.order() for case in cases])]
    limit = START_LIMIT_SECONDS + sum(case.limit_seconds for case in cases)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**contestant.environment, RUN_VARIABLE: mark},
            cwd=BENCHMARKS,
            start_new_session=True,
        )
        problem = ""
        try:
            exit_code = process.wait(limit)
        except subprocess.TimeoutExpired:
            problem = f"timed out after {limit:.0f} s"
        else:
            problem = failure(errors, exit_code) if exit_code else "no figure"
        finally:
            end_all(process, mark)
        output.seek(0)
        found = {line["case"]: line for line in child.lines(output.read().decode(errors="replace"))}
    missing = [case.name for case in cases if case.name not in found]
    if missing:  # the first of them is to blame, those behind it were not reached
        found[missing[0]] = {"case": missing[0], "failed": problem}
    return list(found.values())


def end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    """End the child and whatever of the run is left, also what has left its process group."""
    left = {process.pid} if process.poll() is None else set()
    while left := left | marked_processes(mark):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if process.poll() is None:
            process.wait()
        left = set()


def failure(errors: IO[bytes], exit_code: int) -> str:
    """Show how a child's messages end, and give the last of them for the table."""
    errors.seek(0)
    lines = [line.rstrip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    print(*lines[-MESSAGES_SHOWN:], sep="\n", file=sys.stderr, flush=True)
    return f"failed: {lines[-1].strip() if lines else f'exit code {exit_code}'}"
