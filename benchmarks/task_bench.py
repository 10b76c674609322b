"""The smallest tasks at which half of the time is work: `python benchmarks/task_bench.py --peers ray,dask,parsl`.

The method is Task Bench's: E. Slaughter et al., "Task Bench: A Parameterized Benchmark for Evaluating Parallel Runtime
Performance", SC 2020. See `granularity` for what is measured, `task_graphs` for the patterns.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import sys
from pathlib import Path
from typing import Any

import contestants
import measure
import plotting
from granularity import WORKERS, iteration_seconds
from measured_child import Case, adopt_orphans
from table import Table, cell
from task_graphs import PATTERNS, graph

from dfmesh.cli.bench.figures import Row, Unit
from dfmesh.cli.bench.report import machine

LIMIT_SECONDS = 120.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    able = [name for name in contestants.PEERS if name != contestants.nv_dfm_core.NAME]
    parser.add_argument("--peers", default="", metavar="NAMES", help=f"all, or of {','.join(able)}")
    parser.add_argument("--patterns", nargs="+", choices=list(PATTERNS), default=list(PATTERNS))
    parser.add_argument("--width", type=int, default=8, help="columns of a graph")
    parser.add_argument("--steps", type=int, default=16, help="tasks of a column")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="how long a search goes on at most")
    parser.add_argument("--results", type=Path, default=contestants.BENCHMARKS / "results")
    options = parser.parse_args()
    try:
        options.peers = able if options.peers == "all" else contestants.chosen(options.peers)
    except ValueError as error:
        parser.error(str(error))
    return options


def measure_all(options: argparse.Namespace, entered: list[contestants.Contestant]) -> tuple[measure.Results, float]:
    """Every pattern with every contestant, interleaved; gives what was found and the last calibration."""
    results: measure.Results = {
        (entrant.name, name): measure.Measurement(entrant.absent) for entrant in entered for name in options.patterns
    }
    shuffled = random.Random(measure.ORDER_SEED).sample
    for repeat in range(options.repeats):
        for name in options.patterns:
            turn = iteration_seconds(entered[0].environment)
            print(f"[{repeat + 1}] {name}: a turn of the loop takes {turn * 1e9:.1f} ns", file=sys.stderr)
            parameters = {"tasks": graph(name, options.width, options.steps), "width": options.width}
            parameters |= {"iteration_seconds": turn, "seconds": options.seconds}
            case = Case(name, "granularity", parameters, LIMIT_SECONDS + 4 * options.seconds)
            for entrant in shuffled(entered, len(entered)):
                measure.measure_group(results, entrant, (case,), repeat)
    return results, turn


def tabled(results: measure.Results, patterns: list[str], names: list[str]) -> Table:
    lines = [[pattern, *(shown(results, name, pattern) for name in names)] for pattern in patterns]
    return Table(["METG(50 %), median (lowest to highest)", *names], lines)


def shown(results: measure.Results, name: str, pattern: str) -> str:
    """The figure of one contestant, or what is known where the search did not get to one half."""
    figures = results[name, pattern].figures
    for limit, last in (("above", max), ("below", min)):
        if "metg" not in figures and limit in figures:
            return f"{limit} {Unit.SECONDS.write(last(figures[limit]))}"
    return cell(Row(pattern, pattern, "metg", Unit.SECONDS), results, name)


def main() -> None:
    options = arguments()
    adopt_orphans()
    described = {"date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), **machine()}
    entered = [contestants.dfmesh(), *map(contestants.peer, options.peers)]
    results, turn = measure_all(options, entered)
    made = tabled(results, options.patterns, [entrant.name for entrant in entered])
    notes = [
        f"{options.repeats} repeats, interleaved; graphs of {options.width} columns and {options.steps} steps over "
        f"{WORKERS} workers; smaller is better. " + ", ".join(f"{key} {value}" for key, value in described.items()),
        f"A task is {turn * 1e9:.0f} ns a turn of a Python loop; its workers are processes (sites a and b).",
        "Method: Task Bench (Slaughter et al., SC 2020).",
    ]
    print(made.text(), *notes, sep="\n")
    options.results.mkdir(parents=True, exist_ok=True)
    listed = "\n".join(f"* {note}" for note in notes)
    (options.results / "task-bench.md").write_text(f"{made.markdown()}\n\n{listed}\n")
    samples: list[dict[str, Any]] = [
        {"contestant": name, "pattern": pattern, "figures": found.figures, "problems": found.problems}
        for (name, pattern), found in results.items()
    ]
    data = options.results / "task-bench.json"
    data.write_text(json.dumps({"machine": described, "samples": samples}, indent=1) + "\n")
    plotting.plot("granularity", data, data.with_suffix(""))


if __name__ == "__main__":
    main()
