"""Which measurements there are, and how all of them are made: contestants by turns, several times."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contestants import Contestant
from measured_child import START_LIMIT_SECONDS, Case, measured

from dfmesh.cli.bench import child

MEGABYTE = 1 << 20
ORDER_SEED = 7
MOST_PROBLEMS = 2
OUT_OF_TIME = "no time left"
TOO_SLOW = "too slow: see above"
ITEM_COUNTS = (250, 1_000, 10_000, 100_000, 1_000_000)


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
    seconds, budget, limit = (0.4, 2.0, 20.0) if quick else (2.0, 15.0, 120.0)
    item_counts = ITEM_COUNTS[1:4] if quick else ITEM_COUNTS if with_peers else ITEM_COUNTS[1:]

    def arrays(size: int, count: int) -> dict[str, Any]:
        return {"seconds": seconds, "size": size * MEGABYTE, "count": count, "budget": budget}

    cold = Case("cold", child.COLD, {}, START_LIMIT_SECONDS)
    importing = Case("import", child.IMPORTING, {"repeats": 2}, START_LIMIT_SECONDS)
    at_rest = Case("at_rest", "at_rest", {"seconds": 6 if quick else 30}, limit)
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
        most_seconds: No repeat is begun that would probably end after so many seconds, and nothing after them.

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
            for contestant in shuffled(contestants, len(contestants)) if repeat else contestants:
                if time.perf_counter() - begin < most_seconds:
                    measure_group(results, contestant, group, repeat)
                else:
                    leave_out(results, contestant, group)
    return results, repeats


def leave_out(results: Results, contestant: Contestant, group: Group) -> None:
    """Say of cases that have no figure yet that there was no time for them."""
    for case in group:
        found = results[contestant.name, case.name]
        if not found.figures and not found.problems:
            found.refused = found.refused or OUT_OF_TIME


def leave_larger_out(results: Results, contestant: Contestant, line: Mapping[str, Any]) -> None:
    """Spare a contestant that was too slow for so many items all larger cases: they would show the same again."""
    asked = next((count for count in ITEM_COUNTS if f"items_{count}" == line["case"]), 0)
    if line.get("figures", {}).get("count", asked) < asked:
        for larger in ITEM_COUNTS:
            found = results.get((contestant.name, f"items_{larger}"))
            if found and larger > asked and not found.figures:
                found.refused = found.refused or TOO_SLOW


def measure_group(results: Results, contestant: Contestant, group: Group, repeat: int) -> None:
    """Let one child measure what is still wanted of a group."""
    wanted = [
        case
        for case in group
        if not results[contestant.name, case.name].given_up and repeat < contestant.repeats_at_most(case.name)
    ]
    begin = time.perf_counter()
    for line in measured(contestant, wanted):
        results[contestant.name, line["case"]].add(line)
        leave_larger_out(results, contestant, line)
        report(repeat, contestant, line)
    if wanted:
        taken = f"[{repeat + 1}] {contestant.name}: {len(wanted)} cases in {time.perf_counter() - begin:.1f} s"
        print(taken, file=sys.stderr, flush=True)


def report(repeat: int, contestant: Contestant, line: Mapping[str, Any]) -> None:
    """Show on standard error how one measurement went."""
    figures = ", ".join(f"{figure} {value:.4g}" for figure, value in line.get("figures", {}).items())
    shown = figures or line.get("failed") or f"refused: {line.get('refused')}"
    print(f"[{repeat + 1}] {line['case']:<18} {contestant.name:<14} {shown}", file=sys.stderr, flush=True)
