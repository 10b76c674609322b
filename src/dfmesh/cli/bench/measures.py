"""How a system is measured: the same code for every one. Only the standard library is imported here."""

from __future__ import annotations

import math
import os
import reprlib
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dfmesh.cli.bench import resources
from dfmesh.cli.bench.system import ARRAY_WINDOW, SITES, Client, System

CLIENT_THREADS = 8
HOPS = 64
WARM_UP_ITEMS = 250
FEWEST_ITEMS = 250
IMPORT_REPEATS = 5
IMPORT_LIMIT_SECONDS = 120.0
SETTLING_SECONDS = 1.0

Figures = dict[str, float]
"""Figures by name: seconds, things per second, bytes, or a share of a core."""


class WrongResultError(Exception):
    """A system gave a wrong result: a fast wrong answer is no figure."""


def check(found: object, expected: object, what: str) -> None:
    """Compare a result with what it should be.

    Raises:
        WrongResultError: it is another.
    """
    if found != expected:
        raise WrongResultError(f"wrong result of {what}: {reprlib.repr(found)} instead of {reprlib.repr(expected)}")


def check_probes(found: Sequence[float], expected: Sequence[float]) -> None:
    """Compare what arrays were probed for; numpy adds up in another order where memory is aligned otherwise.

    Raises:
        WrongResultError: one of them is another, or missing.
    """
    same = len(found) == len(expected) and all(map(math.isclose, found, expected))
    check(None if same else found, None if same else expected, "the arrays")


def timed_calls(call: Callable[[int], object], seconds: float, at_least: int = 3) -> list[float]:
    """Give the durations of calls made one after the other until `seconds` have passed, and `at_least` were made."""
    durations: list[float] = []
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        if len(durations) >= at_least and start - begin >= seconds:
            return durations
        call(len(durations))
        durations.append(time.perf_counter() - start)


def cold(system: System, since_start: Callable[[], float]) -> Figures:
    """Get a result from every site of a system that was started with its process.

    Args:
        system: The system, just started.
        since_start: Gives the seconds since the process was started, before Python and all imports.
    """
    check(system.first_results(), list(range(len(SITES))), "the first jobs")
    return {"first_results": since_start()}


def latency(system: System, seconds: float) -> Figures:
    """Time jobs of one operation, one after the other."""

    def call(number: int) -> None:
        check(system.call(number), number, "a job")

    timed_calls(call, min(0.3, seconds))
    ranked = sorted(timed_calls(call, seconds))
    return {
        "job_median": statistics.median(ranked),
        "job_p99": ranked[min(len(ranked) - 1, math.ceil(len(ranked) * 0.99))],
        "jobs_per_second": len(ranked) / sum(ranked),
    }


def first_value(system: System, seconds: float) -> Figures:
    """Time jobs of one operation until their value is there."""
    waits: list[float] = []
    timed_calls(lambda number: waits.append(system.first_value(number)), seconds)
    return {"first_value": statistics.median(waits)}


def parallel(system: System, seconds: float, threads: int = CLIENT_THREADS) -> Figures:
    """Count jobs of several clients that each keep some in flight."""
    clients = [system.client() for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        _run_clients(clients, pool, min(0.2, seconds), system.in_flight)
        return {"jobs_per_second": _run_clients(clients, pool, seconds, system.in_flight)}


def _run_clients(clients: list[Client], pool: ThreadPoolExecutor, seconds: float, depth: int) -> float:
    begin = time.perf_counter()

    def work(client: Client) -> int:
        open_jobs: deque[Any] = deque()
        done = 0
        while time.perf_counter() - begin < seconds:
            open_jobs.append(client.submit(done + len(open_jobs)))
            if len(open_jobs) >= depth:
                client.take(open_jobs.popleft())
                done += 1
        while open_jobs:
            client.take(open_jobs.popleft())
            done += 1
        return done

    done = sum(pool.map(work, clients))
    return done / (time.perf_counter() - begin)


def items(system: System, seconds: float, count: int, budget: float = math.inf) -> Figures:
    """Count items per second.

    Args:
        system: The system.
        seconds: How long to repeat it, at least once.
        count: Items of a job.
        budget: Seconds that one job may take: a slow system gets fewer items, and `count` says how many.
    """

    def run(number: int) -> float:
        begin = time.perf_counter()
        check(system.items(number), number * (number - 1) // 2, "the items")
        return time.perf_counter() - begin

    run(min(count, WARM_UP_ITEMS))
    probed = min(count, 4 * WARM_UP_ITEMS)
    rate = probed / run(probed)
    if count > rate * budget:
        count = min(count, max(FEWEST_ITEMS, two_digits(rate * budget)))
    durations = _run_for(seconds, lambda: run(count))
    return {"items_per_second": count * len(durations) / sum(durations), "count": count}


def two_digits(number: float) -> int:
    """Round a number down to two significant digits."""
    unit = 10 ** max(0, int(math.log10(max(number, 1))) - 1)
    return int(number // unit * unit)


def chains(system: System, seconds: float, hops: int = HOPS, count: int = 8) -> Figures:
    """Measure the processor time, of all processes of the run, that an operation costs, and its rate."""
    expected = list(range(count))

    def run(_: int) -> None:
        check(system.chains(hops, count), expected, "the chains")

    run(0)
    processes = resources.processes_of_run()
    before = resources.cpu_seconds(processes)
    durations = timed_calls(run, seconds, at_least=1)
    spent = resources.cpu_seconds(processes) - before
    operations = hops * count * len(durations)
    return {"cpu_per_hop": spent / operations, "hops_per_second": operations / sum(durations)}


def arrays(system: System, seconds: float, size: int, count: int, budget: float = math.inf) -> Figures:
    """Measure how fast arrays move from site a to site b.

    Args:
        system: The system.
        seconds: How long to repeat it, at least once.
        size: Bytes of an array.
        count: Arrays that one job moves.
        budget: Seconds that one job may take: a slow system gets fewer arrays.
    """
    from dfmesh.cli.bench.operations import probes

    def run(number: int) -> float:
        expected = probes(size, number)
        begin = time.perf_counter()
        check_probes(system.arrays(size, number), expected)
        return time.perf_counter() - begin

    first = min(count, ARRAY_WINDOW)
    run(first)
    if count > first:
        count = max(first, int(min(count, first / run(first) * budget)))
        run(count)  # Makes the arrays that site a has not made yet.
    durations = _run_for(seconds, lambda: run(count))
    return {"bytes_per_second": size * count * len(durations) / sum(durations)}


def _run_for(seconds: float, run: Callable[[], float]) -> list[float]:
    """Repeat what gives its own duration until the durations add up to `seconds`, at least once."""
    durations = [run()]
    while sum(durations) < seconds:
        durations.append(run())
    return durations


def array_memory(system: System, size: int) -> Figures:
    """Measure by how much resident memory rises at most while an array is made, moved and read.

    It is measured for both sides, beyond the size of the array, and for all processes together, where shared memory
    counts in each of them that touches it.
    """
    from dfmesh.cli.bench.operations import FLOATS_PER_PAGE, fresh_array, probe

    small = 4096
    check(system.fresh_array(small), probe(fresh_array(small)), "a small array")
    sides = system.site_processes()
    processes = resources.processes_of_run()
    before = {}
    for pid in processes:
        resources.reset_peak(pid)
        before[pid] = resources.resident_bytes(pid)
    check(system.fresh_array(size), size // 8 // FLOATS_PER_PAGE, "an array")
    rise = {pid: resources.peak_bytes(pid) - before[pid] for pid in processes}
    found = {"all_rise": float(sum(rise.values()))}
    if system.fixed_processes:
        found["sender_beyond_value"] = rise[sides["a"]] - size
        found["receiver_beyond_value"] = rise[sides["b"]] - size
    return found


def at_rest(system: System, seconds: float) -> Figures:
    """Measure what four sites need that were used once and have nothing to do; the client is not counted."""
    pids = system.site_processes()
    resident = statistics.median(map(resources.resident_bytes, pids.values()))
    check(system.first_results(), list(range(len(SITES))), "the first jobs")
    processes = resources.processes_of_run() - {os.getpid()}
    time.sleep(SETTLING_SECONDS)
    before, woken, begin = resources.cpu_seconds(processes), resources.wake_ups(processes), time.perf_counter()
    time.sleep(seconds)
    elapsed = time.perf_counter() - begin
    return {
        "site_bytes": resident,
        "all_bytes": resources.proportional_bytes(processes),
        "cpu_share": (resources.cpu_seconds(processes) - before) / elapsed,
        "wake_ups_per_second": (resources.wake_ups(processes) - woken) / elapsed,
    }


def importing(system: System, repeats: int = IMPORT_REPEATS) -> Figures:
    """Time what a user's script imports, in fresh interpreters; the first run only fills the caches."""
    script = f"import time; b = time.perf_counter()\n{system.import_statement}\nprint(time.perf_counter() - b)"
    found = []
    for _ in range(repeats + 1):
        done = subprocess.run(  # noqa: S603 - our own interpreter and words
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=IMPORT_LIMIT_SECONDS
        )
        found.append(float(done.stdout.splitlines()[-1]))
    return {"import": statistics.median(found[1:])}


def measures() -> Iterator[tuple[str, Callable[..., Figures]]]:
    """List what can be asked of a running system, by name."""
    for measure in (latency, first_value, parallel, items, chains, arrays, array_memory, at_rest):
        yield measure.__name__, measure
