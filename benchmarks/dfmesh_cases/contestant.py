"""The dfmesh contestant: `python -m dfmesh_cases.contestant KIND PARAMETERS`."""

from __future__ import annotations

import time

_BEGIN = time.perf_counter()

from collections.abc import Callable  # noqa: E402 - the clock of the cold start begins before the imports
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from sampling import (  # noqa: E402
    ARRAY_WINDOW,
    ITEM_WINDOW,
    Client,
    check,
    emit,
    emit_latencies,
    order_from_command_line,
    pipelined_rate,
    timed_calls,
)

from dfmesh import Federation, ForEach, Pipeline, PlaceParam, Yield  # noqa: E402

FEDERATION_FILE = Path(__file__).parent / "bench.dfm.yaml"


def echo_pipeline(ops: Any) -> Pipeline:
    with Pipeline() as pipeline:
        Yield(ops.bench.Echo(value=PlaceParam("value"), site="a"), place="result")
    return pipeline


def items_pipeline(ops: Any) -> Pipeline:
    with Pipeline() as pipeline:
        numbers = ops.bench.Numbers(count=PlaceParam("count"), site="a")
        with ForEach(numbers, window=ITEM_WINDOW) as number:
            Yield(ops.bench.Echo(value=number, site="b"), place="result")
    return pipeline


def arrays_pipeline(ops: Any) -> Pipeline:
    with Pipeline() as pipeline:
        numbers = ops.bench.Numbers(count=PlaceParam("count"), site="a")
        with ForEach(numbers, window=ARRAY_WINDOW) as number:
            array = ops.bench.Array(size=PlaceParam("size"), index=number, site="a")
            Yield(ops.bench.Probe(array=array, site="b"), place="result")
    return pipeline


def measure_latency(session: Any, ops: Any, seconds: float) -> None:
    prepared = session.prepare(echo_pipeline(ops))

    def run(number: int) -> None:
        results = session.submit(prepared, {"value": number}).result()
        check(results.one("result"), number, "a job")

    timed_calls(run, seconds=0.3)
    emit_latencies("job", timed_calls(run, seconds))
    measure_first_result(session, prepared, seconds)


def measure_first_result(session: Any, prepared: Any, seconds: float) -> None:
    """Time to the first value, which may come before the job's end."""
    waits: list[float] = []

    def run(number: int) -> None:
        begin = time.perf_counter()
        for item in session.submit(prepared, {"value": number}):
            waits.append(time.perf_counter() - begin)
            check(item.value, number, "a job")

    timed_calls(run, seconds)
    emit("first_result_p50", sorted(waits)[len(waits) // 2])


def measure_parallel(session: Any, ops: Any, seconds: float) -> None:
    prepared = session.prepare(echo_pipeline(ops))

    def submit(number: int) -> tuple[int, Any]:
        return number, session.submit(prepared, {"value": number})

    def take(submitted: tuple[int, Any]) -> None:
        number, job = submitted
        check(job.result().one("result"), number, "a job")

    client = Client(submit, take)
    pipelined_rate(lambda _: client, seconds=0.2)
    emit("jobs_per_second", pipelined_rate(lambda _: client, seconds))


def measure_items(session: Any, ops: Any, seconds: float, count: int) -> None:
    prepared = session.prepare(items_pipeline(ops))

    def run(count: int) -> None:
        total = sum(item.value for item in session.submit(prepared, {"count": count}))
        check(total, count * (count - 1) // 2, "the items")

    run(min(count, 1_000))
    durations = timed_calls(lambda _: run(count), seconds, at_least=1)
    emit("items_per_second", count * len(durations) / sum(durations))


def measure_arrays(session: Any, ops: Any, seconds: float, size: int, count: int) -> None:
    from arrays import probes

    prepared = session.prepare(arrays_pipeline(ops))
    expected = probes(size, count)

    def run(_: int) -> None:
        results = session.submit(prepared, {"size": size, "count": count}).result()
        check(list(results["result"]), expected, "the arrays")

    run(0)
    durations = timed_calls(run, seconds)
    emit("bytes_per_second", size * count * len(durations) / sum(durations))


MEASURES: dict[str, Callable[..., None]] = {
    "latency": measure_latency,
    "parallel": measure_parallel,
    "items": measure_items,
    "arrays": measure_arrays,
}


def main() -> None:
    kind, parameters = order_from_command_line()
    federation = Federation.load(FEDERATION_FILE)
    with federation.session(target="local", homesite="home") as session:
        if kind == "cold":
            results = session.run(echo_pipeline(federation.ops), value=1)
            check(results.one("result"), 1, "the first job")
            emit("connect_first_result", time.perf_counter() - _BEGIN)
        else:
            MEASURES[kind](session, federation.ops, **parameters)


if __name__ == "__main__":
    main()
