"""What the child process of every contestant shares: its arguments, its clock, the lines it prints.

Only the standard library is imported here, because a contestant runs in its own environment.
"""

from __future__ import annotations

import json
import reprlib
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

CLIENT_THREADS = 8
IN_FLIGHT_PER_THREAD = 16
ITEM_WINDOW = 256
ARRAY_WINDOW = 4


class Order(NamedTuple):
    """What a child process is asked to measure."""

    kind: str
    parameters: dict[str, Any]


def order_from_command_line() -> Order:
    """The measurement that `measure.run_child` asked for: a kind and a JSON object of parameters."""
    return Order(sys.argv[1], json.loads(sys.argv[2]))


def emit(figure: str, value: float) -> None:
    """Print one figure as a JSON line (seconds, or things per second)."""
    print(json.dumps({"figure": figure, "value": value}), flush=True)


def check(found: object, expected: object, what: str) -> None:
    """End the measurement when a contestant gave a wrong result: a fast wrong answer is no figure."""
    if found != expected:
        sys.exit(f"wrong result of {what}: {reprlib.repr(found)} instead of {reprlib.repr(expected)}")


def timed_calls(
    call: Callable[[int], object], seconds: float, at_least: int = 3, at_most: int = 1_000_000
) -> list[float]:
    """Durations of calls made one after the other until `seconds` have passed (and `at_least` were made)."""
    durations: list[float] = []
    begin = time.perf_counter()
    while len(durations) < at_most:
        start = time.perf_counter()
        if len(durations) >= at_least and start - begin >= seconds:
            break
        call(len(durations))
        durations.append(time.perf_counter() - start)
    return durations


def emit_latencies(prefix: str, durations: list[float]) -> None:
    """Print median, 99th percentile and rate of calls made one after the other."""
    ranked = sorted(durations)
    emit(f"{prefix}_p50", statistics.median(ranked))
    emit(f"{prefix}_p99", ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))])
    emit(f"{prefix}_per_second", len(ranked) / sum(ranked))


class Client(NamedTuple):
    """How one client thread starts a job and takes its result."""

    submit: Callable[[int], Any]
    take: Callable[[Any], None]


def pipelined_rate(
    connect: Callable[[int], Client], seconds: float, threads: int = CLIENT_THREADS, depth: int = IN_FLIGHT_PER_THREAD
) -> float:
    """Jobs per second of `threads` clients that each keep `depth` jobs in flight for `seconds`."""
    clients = [connect(number) for number in range(threads)]
    begin = time.perf_counter()

    def work(client: Client) -> int:
        open_jobs: deque[Any] = deque()
        done = 0
        while time.perf_counter() - begin < seconds:
            open_jobs.append(client.submit(done))
            if len(open_jobs) >= depth:
                client.take(open_jobs.popleft())
                done += 1
        while open_jobs:
            client.take(open_jobs.popleft())
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        done = sum(pool.map(work, clients))
    return done / (time.perf_counter() - begin)
