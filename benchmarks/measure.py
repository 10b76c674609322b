"""Which measurements there are, and how one of them is made: in a child process, with a hard time-out."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from contestants import BENCHMARKS, Contestant

MEGABYTE = 1 << 20
ORDER_SEED = 7
MOST_PROBLEMS = 2
MESSAGES_SHOWN = 20


@dataclass(frozen=True)
class Case:
    """One measurement: what the contestant's child is asked for, and how long it may take."""

    name: str
    kind: str
    parameters: Mapping[str, Any]
    limit_seconds: float


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

    def add(self, found: Mapping[str, float] | str) -> None:
        """Note the figures of one repeat, or what went wrong in it."""
        if isinstance(found, str):
            self.problems.append(found)
            return
        for figure, value in found.items():
            self.figures.setdefault(figure, []).append(value)


@dataclass(frozen=True)
class Spread:
    """Median and extremes of the repeats of one figure."""

    median: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values), len(values))


Results = dict[tuple[str, str], Measurement]
"""By (contestant, case)."""


def cases(quick: bool, with_peers: bool) -> list[Case]:
    """All measurements of one run; `quick` makes each of them shorter, not fewer."""
    seconds = 0.5 if quick else 2.0
    item_counts = ([250] if with_peers else []) + [1_000, 10_000, 100_000]
    small = {"seconds": seconds, "size": 1 * MEGABYTE, "count": 64}
    large = {"seconds": seconds, "size": 256 * MEGABYTE, "count": 1}
    return [
        Case("cold", "cold", {}, 60),
        Case("latency", "latency", {"seconds": seconds}, 60),
        Case("parallel", "parallel", {"seconds": seconds}, 60),
        *(Case(f"items_{n}", "items", {"seconds": seconds, "count": n}, 180) for n in item_counts),
        Case("memcpy_1mb", "memcpy", small, 60),
        Case("array_1mb", "arrays", small, 60),
        Case("memcpy_256mb", "memcpy", large, 60),
        Case("array_256mb", "arrays", large, 180),
    ]


def run_all(contestants: list[Contestant], todo: list[Case], repeats: int) -> Results:
    """Measure everything, interleaved: case after case, and in each of them one contestant after another."""
    shuffle = random.Random(ORDER_SEED).sample
    results: Results = {(c.name, case.name): Measurement(c.refuses(case.name)) for c in contestants for case in todo}
    for repeat in range(repeats):
        for case in todo:
            for contestant in shuffle(contestants, len(contestants)):
                measurement = results[contestant.name, case.name]
                if measurement.given_up or repeat >= contestant.repeats_at_most(case.name):
                    continue
                begin = time.perf_counter()
                found = run_child(contestant, case)
                measurement.add(found)
                report(repeat, contestant, case, found, time.perf_counter() - begin)
    return results


def report(repeat: int, contestant: Contestant, case: Case, found: dict[str, float] | str, seconds: float) -> None:
    """Show on standard error how one measurement went."""
    shown = found if isinstance(found, str) else ", ".join(f"{figure} {value:.6g}" for figure, value in found.items())
    line = f"[{repeat + 1}] {case.name:<12} {contestant.name:<12} {seconds:6.1f} s  {shown}"
    print(line, file=sys.stderr, flush=True)


def run_child(contestant: Contestant, case: Case) -> dict[str, float] | str:
    """Make one measurement in a process of its own; gives its figures, or what went wrong."""
    command = [*contestant.command, case.kind, json.dumps(dict(case.parameters))]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command, stdout=output, stderr=errors, env=contestant.environment, cwd=BENCHMARKS, start_new_session=True
        )
        try:
            exit_code = child.wait(case.limit_seconds)
        except subprocess.TimeoutExpired:
            return f"timed out after {case.limit_seconds:.0f} s"
        finally:
            end_group(child)
        if exit_code != 0:
            return failure(errors, exit_code)
        return figures(output)


def end_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it left behind in its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def figures(output: IO[bytes]) -> dict[str, float]:
    """The JSON lines of a child; anything else that a framework prints is passed over."""
    output.seek(0)
    found: dict[str, float] = {}
    for line in output:
        if line.startswith(b'{"figure"'):
            entry = json.loads(line)
            found[entry["figure"]] = float(entry["value"])
    return found


def failure(errors: IO[bytes], exit_code: int) -> str:
    """Show how a child's messages end, and give the last of them for the table."""
    errors.seek(0)
    lines = [line.rstrip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    print(*lines[-MESSAGES_SHOWN:], sep="\n", file=sys.stderr, flush=True)
    return f"failed: {lines[-1].strip() if lines else f'exit code {exit_code}'}"
