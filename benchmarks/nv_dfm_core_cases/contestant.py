"""nv-dfm-core in its own environment: `python -m nv_dfm_core_cases.contestant nv-dfm-core ORDERS`.

Its pipelines cannot state a list at site a with a loop over it (`ForEach` is not compiled), so items are its nearest
equivalent: one parameter set per item, which makes every value go from the client to site a, to site b, and back.
The call of the operation at site a takes the place of the list's element.
"""

# mypy: disable-error-code="import-not-found"
# (nv-dfm-core and the package that it generates are only in the environment that runs this module)

from __future__ import annotations

import importlib
import threading
import time
from typing import Any, ClassVar, Self

import measuring

from dfmesh.cli.bench.measures import check, check_probes
from dfmesh.cli.bench.system import SITES, CannotStateError, Client, System

PLACE = "result"
JOB_LIMIT_SECONDS = 300.0
SLOTS = 4


class RunningJob:
    """One job and what it has yielded so far."""

    def __init__(self, session: Any, prepared: Any, parameters: list[dict[str, int]]) -> None:
        self.results: list[tuple[str, Any]] = []
        self.arrivals: list[float] = []
        self.begin = time.perf_counter()
        self._job = session.execute(prepared, parameters, default_callback=self._take)

    def _take(self, from_site: str, node: Any, frame: Any, place: str, data: Any) -> None:
        if place.startswith(PLACE):
            self.arrivals.append(time.perf_counter())
            self.results.append((place, data))

    def finish(self) -> list[Any]:
        """All results in order of their places, when the job has ended."""
        if not self._job.wait_until_finished(JOB_LIMIT_SECONDS):
            raise TimeoutError("the job did not end")
        return [value for _, value in sorted(self.results, key=lambda result: result[0])]


class NvDfmCore(System):
    """Target local, four sites, shipped settings but for those that the note of the table names."""

    name: ClassVar[str] = "nv-dfm-core"
    in_flight: ClassVar[int] = 1
    fixed_processes: ClassVar[bool] = False
    import_statement: ClassVar[str] = "from nv_dfm_core.api import Pipeline, PlaceParam, Yield"

    def __enter__(self) -> Self:
        from nvbench.fed.runtime.home import get_session

        self._session = get_session(target="local", max_concurrent_jobs=SLOTS)
        self._session.connect()
        self._prepared: dict[Any, Any] = {}
        self._free_slots = threading.Semaphore(SLOTS - 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def _run(self, write: Any, *arguments: Any, sets: list[dict[str, int]]) -> RunningJob:
        from nv_dfm_core.api import Pipeline

        key = (write.__name__, *arguments)
        new = key not in self._prepared
        if new:
            with Pipeline() as pipeline:
                write(*arguments)
            self._prepared[key] = self._session.prepare(pipeline)
        return RunningJob(self._session, self._prepared[key], sets)

    def _at(self, site: str) -> Any:
        return importlib.import_module(f"nvbench.fed.site.{site}.bench")

    def _write_at_each_site(self, operation: str) -> None:
        from nv_dfm_core.api import Yield

        for number, site in enumerate(SITES):
            Yield(value=getattr(self._at(site), operation)(value=number), place=f"{PLACE}{number}")

    def _write_echo(self) -> None:
        from nv_dfm_core.api import PlaceParam, Yield

        Yield(value=self._at("a").Echo(value=PlaceParam(place="value")), place=PLACE)

    def _write_chain(self, hops: int) -> None:
        from nv_dfm_core.api import PlaceParam, Yield

        value: Any = PlaceParam(place="value")
        for hop in range(hops):
            value = self._at("a" if hop % 2 else "b").Echo(value=value)
        Yield(value=value, place=PLACE)

    def _write_array(self, operation: str, parameters: tuple[str, ...], at: str) -> None:
        from nv_dfm_core.api import PlaceParam, Yield

        array = getattr(self._at("a"), operation)(**{name: PlaceParam(place=name) for name in parameters})
        Yield(value=self._at(at).Probe(array=array), place=PLACE)

    def first_results(self) -> list[int]:
        return self._run(self._write_at_each_site, "Echo", sets=[{}]).finish()

    def call(self, number: int) -> int:
        return self._run(self._write_echo, sets=[{"value": number}]).finish()[0]

    def first_value(self, number: int) -> float:
        job = self._run(self._write_echo, sets=[{"value": number}])
        check(job.finish(), [number], "a job")
        return job.arrivals[0] - job.begin

    def client(self) -> Client:
        """All threads together keep one job fewer in flight than there are slots: without a free one all block."""

        def submit(number: int) -> tuple[int, RunningJob]:
            self._free_slots.acquire()
            return number, self._run(self._write_echo, sets=[{"value": number}])

        def take(submitted: tuple[int, RunningJob]) -> None:
            number, job = submitted
            check(job.finish(), [number], "a job")
            self._free_slots.release()

        return Client(submit, take)

    def items(self, count: int) -> int:
        sets = [{"value": number} for number in range(count)]
        return sum(self._run(self._write_chain, 2, sets=sets).finish())

    def arrays(self, size: int, count: int) -> list[float]:
        """Each array is a parameter set; callbacks come in any order of the frames, so the sum is what is checked."""
        from dfmesh.cli.bench.operations import probes

        sets = [{"size": size, "index": index} for index in range(count)]
        found = self._run(self._write_array, "Array", ("size", "index"), "b", sets=sets).finish()
        expected = probes(size, count)
        check_probes(sorted(found), sorted(expected))
        return expected

    def fresh_array(self, size: int) -> float:
        return self._run(self._write_array, "FreshArray", ("size",), "b", sets=[{"size": size}]).finish()[0]

    def chains(self, hops: int, count: int) -> list[int]:
        sets = [{"value": number} for number in range(count)]
        return sorted(self._run(self._write_chain, hops, sets=sets).finish())

    def site_processes(self) -> dict[str, int]:
        """Processes that run the operations of a job; another job may run in others."""
        pids = self._run(self._write_at_each_site, "Pid", sets=[{}]).finish()
        if len(set(pids)) < len(SITES):
            raise CannotStateError("its sites are not one process each")
        return dict(zip(SITES, pids, strict=True))


if __name__ == "__main__":
    measuring.main({NvDfmCore.name: NvDfmCore})
