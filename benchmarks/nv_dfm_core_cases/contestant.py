"""The nv-dfm-core contestant: `python -m nv_dfm_core_cases.contestant KIND PARAMETERS`, in its own environment.

Its `ForEach` does not compile, so the items of a loop are parameter sets: one frame each, from the client to site a,
on to site b, and back. The call of the operation at site a takes the place of the list's element.
"""

# mypy: disable-error-code="import-not-found"
# (nv-dfm-core and the package that it generates are only in the environment that runs this module)

from __future__ import annotations

import sys
import threading
import time

_BEGIN = time.perf_counter()

from collections.abc import Callable  # noqa: E402 - the clock of the cold start begins before the imports
from typing import Any  # noqa: E402

from sampling import Client, check, emit, emit_latencies, order_from_command_line, pipelined_rate, timed_calls  # noqa: E402

PLACE = "result"
JOB_LIMIT_SECONDS = 300.0
SLOTS = 4


def echo_pipeline() -> Any:
    import nvbench.fed.site.a.bench as at_a
    from nv_dfm_core.api import Pipeline, PlaceParam, Yield

    with Pipeline() as pipeline:
        Yield(value=at_a.Echo(value=PlaceParam(place="value")), place=PLACE)
    return pipeline


def items_pipeline() -> Any:
    import nvbench.fed.site.a.bench as at_a
    import nvbench.fed.site.b.bench as at_b
    from nv_dfm_core.api import Pipeline, PlaceParam, Yield

    with Pipeline() as pipeline:
        Yield(value=at_b.Echo(value=at_a.Echo(value=PlaceParam(place="value"))), place=PLACE)
    return pipeline


def arrays_pipeline() -> Any:
    import nvbench.fed.site.a.bench as at_a
    import nvbench.fed.site.b.bench as at_b
    from nv_dfm_core.api import Pipeline, PlaceParam, Yield

    with Pipeline() as pipeline:
        array = at_a.Array(size=PlaceParam(place="size"), index=PlaceParam(place="index"))
        Yield(value=at_b.Probe(array=array), place=PLACE)
    return pipeline


def arrays_at_home_pipeline() -> Any:
    """Makes the arrays at site a, and moves nothing."""
    import nvbench.fed.site.a.bench as at_a
    from nv_dfm_core.api import Pipeline, PlaceParam, Yield

    with Pipeline() as pipeline:
        array = at_a.Array(size=PlaceParam(place="size"), index=PlaceParam(place="index"))
        Yield(value=at_a.Probe(array=array), place=PLACE)
    return pipeline


class RunningJob:
    """One job and what it has yielded so far."""

    def __init__(self, session: Any, prepared: Any, parameters: list[dict[str, int]]) -> None:
        self.results: list[Any] = []
        self.arrivals: list[float] = []
        self.begin = time.perf_counter()
        self._job = session.execute(prepared, parameters, default_callback=self._take)

    def _take(self, from_site: str, node: Any, frame: Any, place: str, data: Any) -> None:
        if place == PLACE:
            self.arrivals.append(time.perf_counter())
            self.results.append(data)

    def finish(self) -> list[Any]:
        """All results, when the job has ended."""
        if not self._job.wait_until_finished(JOB_LIMIT_SECONDS):
            sys.exit("the job did not end")
        return self.results


def warm(run: Callable[[int], object]) -> None:
    """One job for every slot, because each slot has processes of its own that are slow the first time."""
    for number in range(SLOTS):
        run(number)


def measure_latency(session: Any, seconds: float) -> None:
    prepared = session.prepare(echo_pipeline())
    waits: list[float] = []

    def run(number: int) -> None:
        job = RunningJob(session, prepared, [{"value": number}])
        check(job.finish(), [number], "a job")
        waits.append(job.arrivals[0] - job.begin)

    warm(run)
    waits.clear()
    emit_latencies("job", timed_calls(run, seconds, at_least=5))
    emit("first_result_p50", sorted(waits)[len(waits) // 2])


def measure_parallel(session: Any, seconds: float) -> None:
    """As many jobs in flight as it has slots less one: a submission without a free slot blocks everything for 30 s."""
    prepared = session.prepare(echo_pipeline())
    free_slots = threading.Semaphore(SLOTS - 1)

    def submit(number: int) -> tuple[int, RunningJob]:
        free_slots.acquire()
        return number, RunningJob(session, prepared, [{"value": number}])

    def take(submitted: tuple[int, RunningJob]) -> None:
        number, job = submitted
        check(job.finish(), [number], "a job")
        free_slots.release()

    warm(lambda number: take(submit(number)))
    emit("jobs_per_second", pipelined_rate(lambda _: Client(submit, take), seconds, depth=1))


def measure_items(session: Any, seconds: float, count: int) -> None:
    prepared = session.prepare(items_pipeline())

    def run(count: int) -> None:
        job = RunningJob(session, prepared, [{"value": number} for number in range(count)])
        check(sum(job.finish()), count * (count - 1) // 2, "the items")

    warm(lambda _: run(10))
    durations = timed_calls(lambda _: run(count), seconds, at_least=1)
    emit("items_per_second", count * len(durations) / sum(durations))


def measure_arrays(session: Any, seconds: float, size: int, count: int) -> None:
    from arrays import probes

    prepared = session.prepare(arrays_pipeline())
    expected = sorted(probes(size, count))
    parameters = [{"size": size, "index": index} for index in range(count)]

    local = session.prepare(arrays_at_home_pipeline())

    def run(_: int) -> None:
        found = RunningJob(session, prepared, parameters).finish()
        check(sorted(found), expected, "the arrays")  # callbacks come in any order of the frames

    # without moving the arrays: in 5 of 7 runs of five 256 MB jobs on a busy machine one aborted and never ended
    warm(lambda _: RunningJob(session, local, parameters).finish())
    warm(lambda _: RunningJob(session, prepared, [{"size": 8, "index": 0}]).finish())
    durations = timed_calls(run, seconds, at_least=1)
    emit("bytes_per_second", size * count * len(durations) / sum(durations))


def measure_cold(session: Any) -> None:
    job = RunningJob(session, session.prepare(echo_pipeline()), [{"value": 1}])
    check(job.finish(), [1], "the first job")
    emit("connect_first_result", job.arrivals[0] - _BEGIN)


MEASURES: dict[str, Callable[..., None]] = {
    "cold": measure_cold,
    "latency": measure_latency,
    "parallel": measure_parallel,
    "items": measure_items,
    "arrays": measure_arrays,
}


def main() -> None:
    from nvbench.fed.runtime.home import get_session

    kind, parameters = order_from_command_line()
    session = get_session(target="local", max_concurrent_jobs=SLOTS)
    session.connect()
    try:
        MEASURES[kind](session, **parameters)
    finally:
        session.close()


if __name__ == "__main__":
    main()
