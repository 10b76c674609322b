"""The bounded cases: each runs something long, watches it, and says what holds."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bounded_cases.bounded_operations import allocations, number_of
from bounded_cases.counting import Counter
from bounded_cases.verdicts import Verdicts
from bounded_cases.watching import CLIENT, MEGABYTE, Watch
from dfmesh import Federation, ForEach, JobCancelledError, Pipeline, PlaceParam, Yield
from dfmesh.cli.bench.resources import cpu_seconds, processes_of_run
from dfmesh.session.result_store import MEMORY_LIMIT

FEDERATION_FILE = Path(__file__).with_name("bounded.dfm.yaml")
SITES = ("home", "a", "b")
LOOP_WINDOW = 64
SETS_PER_POINT = 20
LIMIT_OPEN_ITEMS = 4_096
END_SECONDS = 600.0
DEARER_BY = 1.25
SLOWER_BY = 1.5


@dataclass(frozen=True)
class Sizes:
    """How large the cases are.

    Attributes:
        items: Items of a producer.
        item_bytes: Bytes of an item.
        slow_seconds: How long the slow consumer is watched.
        per_second: Items that the slow consumer takes in a second.
        sets: Parameter sets of one job.
        waiting: Numbers of waiting jobs beside which a warm job is timed.
        calls: Warm jobs that are timed for each.
        interval: Seconds between two samples of memory.
        traced: Whether allocations are traced, for finding what grows.
    """

    items: int = 1_000_000
    item_bytes: int = 1_000
    slow_seconds: float = 120.0
    per_second: float = 100.0
    sets: int = 1_000_000
    waiting: tuple[int, ...] = (0, 100, 1_000, 10_000)
    calls: int = 300
    interval: float = 0.5
    traced: bool = False


class Bench:
    """A federation under watch."""

    def __init__(self, session: Any, ops: Any, counters: dict[str, str], sizes: Sizes) -> None:
        self.session = session
        self.ops = ops
        self.counters = counters
        self.sizes = sizes

    def watch(self) -> Watch:
        return Watch(self.sizes.interval, self.counters)

    def grown(self) -> dict[str, list[str]]:
        """Where each process allocates what it did not have at the last call."""
        if not self.sizes.traced:
            return {}
        found = {"client": allocations()}
        for site in SITES:
            with Pipeline() as pipeline:
                Yield(self.ops.Allocations(site=site), place="lines")
            found[f"site {site}"] = self.session.run(pipeline).one("lines")
        return found


@contextmanager
def bench(sizes: Sizes) -> Iterator[Bench]:
    """Start the federation, with counters for what was produced and consumed."""
    federation = Federation.load(FEDERATION_FILE)
    with tempfile.TemporaryDirectory(prefix="dfmesh-bounded-") as directory:
        counters = {name: Counter.make(Path(directory) / name) for name in ("produced", "consumed")}
        with federation.session(target="local", homesite="home", measure=False) as session:
            yield Bench(session, federation.ops.bounded, counters, sizes)


def producing(mesh: Bench, count: int) -> Any:
    sizes = mesh.sizes
    return mesh.ops.Produce(count=count, size=sizes.item_bytes, counter=mesh.counters["produced"], site="a")


def stream_pipeline(mesh: Bench, count: int, per_second: float) -> Pipeline:
    """One operation at b reads a's stream live."""
    with Pipeline() as pipeline:
        items = producing(mesh, count)
        seen = mesh.ops.Consume(items=items, per_second=per_second, counter=mesh.counters["consumed"], site="b")
        Yield(seen, place="seen")
    return pipeline


def loop_pipeline(mesh: Bench, count: int, per_second: float) -> Pipeline:
    """A loop over a's stream runs an operation at b on each item, and yields its number."""
    seconds = LOOP_WINDOW / per_second if per_second else 0.0
    with Pipeline() as pipeline, ForEach(producing(mesh, count), window=LOOP_WINDOW) as item:
        number = mesh.ops.Handle(item=item, seconds=seconds, counter=mesh.counters["consumed"], site="b")
        Yield(number, place="numbers")
    return pipeline


def slow_consumer(sizes: Sizes, write: Any, name: str) -> tuple[Verdicts, Watch]:
    """A producer that could run ahead by a million items, and a consumer that takes a few in a second."""
    verdicts = Verdicts(f"{name}, {sizes.per_second:g} items/s for {sizes.slow_seconds:g} s")
    with bench(sizes) as mesh, mesh.watch() as watch:
        job = mesh.session.submit(write(mesh, sizes.items, sizes.per_second), keep_results=False)
        job.wait(timeout=sizes.slow_seconds / 4)
        mesh.grown()
        job.wait(timeout=sizes.slow_seconds * 3 / 4)
        grown = mesh.grown()
        watch.mark("cancelled")
        was_running = not job.status.over
        job.cancel()
        job.wait(timeout=END_SECONDS)
    produced, consumed = (dict(watch.counts[name]) for name in ("produced", "consumed"))
    ahead = max(produced[at] - consumed[at] for at in produced)
    verdicts.claim(was_running, "the job was still running when it was cancelled")
    verdicts.claim(ahead <= LIMIT_OPEN_ITEMS, f"the producer was never more than {ahead:,} items ahead")
    taken = max(consumed.values())
    verdicts.note(f"{taken:,} items were consumed, {taken / sizes.slow_seconds:.1f} a second")
    verdicts.flat(watch)
    explain(verdicts, grown)
    return verdicts, watch


def explain(verdicts: Verdicts, grown: dict[str, list[str]]) -> None:
    """Say where processes allocated what they did not have before, if that was asked for."""
    for process, lines in grown.items():
        for line in lines:
            verdicts.note(f"{process} allocated: {line}")


def whole_stream(sizes: Sizes) -> tuple[Verdicts, Watch]:
    """All items, with a consumer that takes them as fast as it can."""
    verdicts = Verdicts(f"stream of {sizes.items:,} items to its end, read by an operation")
    with bench(sizes) as mesh, mesh.watch() as watch:
        job = mesh.session.submit(stream_pipeline(mesh, sizes.items, 0.0))
        seen = job.result().one("seen")
    verdicts.claim(seen == {"count": sizes.items}, f"{seen['count']:,} items came, in order, none twice, none lost")
    verdicts.note(f"{sizes.items / watch.memory['client'][-1][0]:,.0f} items/s, start of the sites included")
    verdicts.flat(watch)
    return verdicts, watch


def whole_loop(sizes: Sizes) -> tuple[Verdicts, Watch]:
    """All items through a loop, with a client that takes every number and keeps none."""
    verdicts = Verdicts(f"loop over a stream of {sizes.items:,} items to its end")
    with bench(sizes) as mesh, mesh.watch() as watch:
        job = mesh.session.submit(loop_pipeline(mesh, sizes.items, 0.0), keep_results=False)
        count = total = 0
        for item in job.results("numbers", ordered=False):
            if count in (sizes.items // 4, sizes.items * 3 // 4):
                grown = mesh.grown()
            count += 1
            total += item.value
        job.result()
    right = count == sizes.items and total == sizes.items * (sizes.items - 1) // 2
    verdicts.claim(right, f"{count:,} results came, each number once")
    verdicts.flat(watch)
    explain(verdicts, grown)
    return verdicts, watch


def untaken(sizes: Sizes) -> tuple[Verdicts, Watch]:
    """A client that takes nothing until the job is over, and then everything in order."""
    verdicts = Verdicts(f"{sizes.items:,} results of {sizes.item_bytes:,} bytes that nobody takes until the end")
    with bench(sizes) as mesh:
        with Pipeline() as pipeline:
            Yield(producing(mesh, sizes.items), place="items")
        with mesh.watch() as watch:
            job = mesh.session.submit(pipeline, keep_results=False)
            mesh.grown()
            finished = job.wait(timeout=END_SECONDS)
            grown = mesh.grown()
            watch.mark("the client begins to take")
            numbers = (number_of(item.value) for item in job.results("items"))
            in_order = all(number == due for number, due in zip(numbers, itertools.count(), strict=False))
            left = sum(1 for _ in job.results("items")) if not in_order else 0
        produced = Counter.read(mesh.counters["produced"])
    verdicts.claim(finished, "the job ended although nobody took a result")
    verdicts.claim(in_order and not left, "the results came in order")
    verdicts.claim(produced == sizes.items, f"{produced:,} items were produced")
    verdicts.note(f"{sizes.items * sizes.item_bytes / 1e6:,.0f} MB of results in all")
    verdicts.note(f"the client may hold {MEMORY_LIMIT / MEGABYTE:.0f} MB of results before it writes them to disk")
    verdicts.flat(watch, more={CLIENT: MEMORY_LIMIT})
    explain(verdicts, grown)
    return verdicts, watch


def parameter_sets(sizes: Sizes) -> tuple[Verdicts, Watch]:
    """One job of very many parameter sets, from an iterator, whose results are taken and forgotten."""
    verdicts = Verdicts(f"a job of {sizes.sets:,} parameter sets")
    every = max(1, sizes.sets // SETS_PER_POINT)
    with bench(sizes) as mesh, mesh.watch() as watch:
        with Pipeline() as pipeline:
            Yield(mesh.ops.Echo(value=PlaceParam("value"), site="a"), place="value")
        points = [(time.perf_counter(), cpu_seconds(processes_of_run()))]
        job = mesh.session.submit(pipeline, ({"value": n} for n in range(sizes.sets)), keep_results=False)
        count = total = 0
        for item in job.results("value", ordered=False):
            count += 1
            total += item.value
            if count % every == 0:
                points.append((time.perf_counter(), cpu_seconds(processes_of_run())))
            if count in (sizes.sets // 4, sizes.sets * 3 // 4):
                grown = mesh.grown()
        job.result()
    rates = [every / (end - start) for (start, _), (end, _) in itertools.pairwise(points)]
    spent = [(after - before) / every for (_, before), (_, after) in itertools.pairwise(points)]
    right = count == sizes.sets and total == sizes.sets * (sizes.sets - 1) // 2
    verdicts.claim(right, f"{count:,} results came, one of each set")
    quarter = max(1, len(rates) // 4)
    first, last = statistics.median(spent[1 : quarter + 1]), statistics.median(spent[-quarter:])
    verdicts.claim(
        last <= DEARER_BY * first,
        f"processor time of all processes per set stays: {first * 1e6:,.0f} µs in the first quarter, {last * 1e6:,.0f} "
        "µs in the last",
    )
    verdicts.note(f"sets/s, per {every:,} sets: " + " ".join(f"{rate:,.0f}" for rate in rates))
    verdicts.flat(watch)
    explain(verdicts, grown)
    return verdicts, watch


def waiting_jobs(sizes: Sizes) -> tuple[Verdicts, Watch]:
    """Warm jobs beside more and more jobs that wait."""
    verdicts = Verdicts(f"warm jobs beside up to {max(sizes.waiting):,} waiting ones")
    medians: dict[int, float] = {}
    with bench(sizes) as mesh, mesh.watch() as watch:
        with Pipeline() as pipeline:
            Yield(mesh.ops.Echo(value=PlaceParam("value"), site="a"), place="value")
        echo = mesh.session.prepare(pipeline)
        with Pipeline() as pipeline:
            Yield(mesh.ops.Wait(seconds=86_400.0, site="a"), place="never")
        wait = mesh.session.prepare(pipeline)
        jobs: list[Any] = []
        for number in sizes.waiting:
            jobs += [mesh.session.submit(wait) for _ in range(number - len(jobs))]
            timed_echoes(mesh, echo, sizes.calls // 3)
            watch.mark(f"{number:,} waiting")
            medians[number] = statistics.median(timed_echoes(mesh, echo, sizes.calls))
        begin = time.perf_counter()
        for job in jobs:
            job.cancel()
        ended = sum(cancelled(job) for job in jobs)
        cancelling = time.perf_counter() - begin
    alone = medians[sizes.waiting[0]]
    for number, median in medians.items():
        text = f"{median * 1e6:,.0f} µs for a warm job beside {number:,} waiting ones, {median / alone:.2f} x of alone"
        verdicts.claim(median <= SLOWER_BY * alone, text)
    verdicts.claim(ended == len(jobs), f"{ended:,} of {len(jobs):,} were cancelled, in {cancelling:.1f} s")
    for process in sorted(watch.memory):
        each = watch.rise(process) / max(1, len(jobs))
        verdicts.note(f"{process}: {each / 1e3:.1f} kB for each waiting job")
    return verdicts, watch


def timed_echoes(mesh: Bench, echo: Any, count: int) -> list[float]:
    found = []
    for number in range(count):
        begin = time.perf_counter()
        result = mesh.session.submit(echo, {"value": number}).result().one("value")
        found.append(time.perf_counter() - begin)
        if result != number:
            raise ValueError(f"{result} came where {number} was due")
    return found


def cancelled(job: Any) -> bool:
    try:
        job.result(timeout=END_SECONDS)
    except JobCancelledError:
        return True
    return False


def producer_stream(sizes: Sizes) -> tuple[Verdicts, Watch]:
    """A slow operation reads the stream."""
    return slow_consumer(sizes, stream_pipeline, "slow operation that reads a stream")


def producer_loop(sizes: Sizes) -> tuple[Verdicts, Watch]:
    """A slow loop body."""
    return slow_consumer(sizes, loop_pipeline, "slow loop over a stream")


CASES = {
    "slow-stream": producer_stream,
    "slow-loop": producer_loop,
    "whole-stream": whole_stream,
    "whole-loop": whole_loop,
    "untaken": untaken,
    "sets": parameter_sets,
    "waiting": waiting_jobs,
}

__all__ = ["CASES", "Sizes"]
