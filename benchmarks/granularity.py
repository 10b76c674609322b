"""How small tasks may be before a system spends half of its time on other things: METG(50 %).

The measure is Task Bench's (Slaughter et al., SC 2020): *efficiency* is the share of the processors' time that goes to
the tasks' own work, *granularity* is what a task takes of a processor with everything around it, elapsed time x workers
/ tasks, and METG(50 %) the smallest granularity at which the efficiency is at least one half. Only the standard library
is imported here.
"""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from dfmesh.cli.bench.measures import check
from dfmesh.cli.bench.operations import work
from dfmesh.cli.bench.system import System, Task, ends

WORKERS = 2
HALF = 0.5
FIRST_TASK_SECONDS = 1e-3
LONGEST_TASK_SECONDS = 4.0
STEP = 2.0
CHECKED_ITERATIONS = 3
RUNS = 3
WARM_UPS = 3
CALIBRATION_ITERATIONS = 3_000_000
CALIBRATIONS = 3

_CALIBRATION = (
    "import time\n"
    "from dfmesh.cli.bench.operations import work\n"
    "work(100_000, [])\n"
    "begin = time.perf_counter()\n"
    f"work({CALIBRATION_ITERATIONS}, [])\n"
    "print(time.perf_counter() - begin)\n"
)


def iteration_seconds(environment: dict[str, str]) -> float:
    """What a turn of the tasks' loop takes while as many processes as there are workers run it."""
    return min(_iteration_seconds_now(environment) for _ in range(CALIBRATIONS))


def _iteration_seconds_now(environment: dict[str, str]) -> float:
    command = [sys.executable, "-c", _CALIBRATION]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(WORKERS)]
    found = [float(process.communicate()[0]) for process in running]
    return statistics.mean(found) / CALIBRATION_ITERATIONS


def expected_ends(tasks: Sequence[Task], iterations: int) -> list[int]:
    """What the tasks give on which no other depends."""
    values: list[int] = []
    for task in tasks:
        values.append(work(iterations, [values[source] for source in task.sources]))
    return [values[index] for index in ends(tasks)]


def granularity(
    system: System, tasks: list[Any], width: int, iteration_seconds: float, seconds: float
) -> dict[str, float]:
    """Find METG(50 %) of one task graph.

    Args:
        system: The system.
        tasks: The graph, as `task_graphs.graph` gives it.
        width: Number of columns.
        iteration_seconds: What a turn of the tasks' loop takes.
        seconds: How long to go on with the search; it ends sooner when it has crossed one half.

    Returns:
        `metg`, and for every size of task that was tried `efficiency@GRANULARITY`, in seconds. Where one half was
        not crossed, `above` or `below` instead of `metg`: the last granularity that was tried.
    """
    graph = [Task(column, tuple(sources)) for column, sources in tasks]
    run = system.graph(graph, width)
    for _ in range(WARM_UPS):
        check(run(CHECKED_ITERATIONS), expected_ends(graph, CHECKED_ITERATIONS), "the graph")
    points: list[tuple[float, float]] = []

    def efficiency(task_seconds: float) -> float:
        iterations = max(1, round(task_seconds / iteration_seconds))
        elapsed = statistics.median(timed(run, iterations) for _ in range(RUNS))
        points.append((elapsed * WORKERS / len(graph), iterations * iteration_seconds * len(graph) / WORKERS / elapsed))
        return points[-1][1]

    deadline = time.perf_counter() + seconds
    size = FIRST_TASK_SECONDS
    upwards = efficiency(size) < HALF
    while len(points) < 2 or time.perf_counter() < deadline:
        size = size * STEP if upwards else size / STEP
        if not iteration_seconds < size < LONGEST_TASK_SECONDS or (efficiency(size) >= HALF) == upwards:
            break
    found = {f"efficiency@{at:.3e}": share for at, share in sorted(points)}
    crossing = crossed(points[-2:])
    if crossing is not None:
        return {"metg": crossing, **found}
    return {"above" if upwards else "below": points[-1][0], **found}


def timed(run: Callable[[int], object], iterations: int) -> float:
    begin = time.perf_counter()
    run(iterations)
    return time.perf_counter() - begin


def crossed(last: list[tuple[float, float]]) -> float | None:
    """The granularity at which the efficiency is one half, between the two points around it, on a log scale."""
    (small, low), (large, high) = sorted(last, key=lambda point: point[1])
    if not low < HALF <= high:
        return None
    share = (HALF - low) / (high - low)
    return math.exp(math.log(small) + share * (math.log(large) - math.log(small)))
