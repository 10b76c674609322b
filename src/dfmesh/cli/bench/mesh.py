"""dfmesh itself under measurement: its public session API on the local target, four sites and the client."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from dfmesh.cli.bench.measures import check
from dfmesh.cli.bench.resources import command_line, processes_of_run
from dfmesh.cli.bench.system import ARRAY_WINDOW, ITEM_WINDOW, SITES, Client, System, Task, ends, worker_of

FEDERATION_FILE = Path(__file__).with_name("bench.dfm.yaml")
PLACE = "result"
SITE_MODULE = "dfmesh.targets.local.site_process"


class Mesh(System):
    """A session with prepared pipelines. Nothing is measured or learned by it while it is being measured."""

    name: ClassVar[str] = "dfmesh"
    import_statement: ClassVar[str] = "import dfmesh"

    def __enter__(self) -> Self:
        from dfmesh.session import Federation

        self._federation = Federation.load(FEDERATION_FILE)
        self._ops: Any = self._federation.ops.bench
        self._session = self._federation.session(target="local", homesite=SITES[0], measure=False)
        self._prepared: dict[Any, Any] = {}
        self._session.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def _pipeline(self, write: Callable[..., None], *arguments: Any) -> Any:
        """Write and compile a pipeline once."""
        key = (write.__name__, *arguments)
        if key not in self._prepared:
            from dfmesh.api import Pipeline

            with Pipeline() as pipeline:
                write(*arguments)
            self._prepared[key] = self._session.prepare(pipeline)
        return self._prepared[key]

    def _write_echo(self) -> None:
        from dfmesh.api import PlaceParam, Yield

        Yield(self._ops.Echo(value=PlaceParam("value"), site="a"), place=PLACE)

    def _write_first_results(self) -> None:
        from dfmesh.api import Yield

        for number, site in enumerate(SITES):
            Yield(self._ops.Echo(value=number, site=site), place=site)

    def _write_items(self) -> None:
        from dfmesh.api import ForEach, PlaceParam, Yield

        numbers = self._ops.Numbers(count=PlaceParam("count"), site="a")
        with ForEach(numbers, window=ITEM_WINDOW) as number:
            Yield(self._ops.Echo(value=number, site="b"), place=PLACE)

    def _write_arrays(self) -> None:
        from dfmesh.api import ForEach, PlaceParam, Yield

        numbers = self._ops.Numbers(count=PlaceParam("count"), site="a")
        with ForEach(numbers, window=ARRAY_WINDOW) as number:
            array = self._ops.Array(size=PlaceParam("size"), index=number, site="a")
            Yield(self._ops.Probe(array=array, site="b"), place=PLACE)

    def _write_fresh_array(self) -> None:
        from dfmesh.api import PlaceParam, Yield

        array = self._ops.FreshArray(size=PlaceParam("size"), site="a")
        Yield(self._ops.Probe(array=array, site="b"), place=PLACE)

    def _write_chain(self, hops: int) -> None:
        from dfmesh.api import PlaceParam, Yield

        value: Any = PlaceParam("value")
        for hop in range(hops):
            value = self._ops.Echo(value=value, site="a" if hop % 2 else "b")
        Yield(value, place=PLACE)

    def _write_graph(self, tasks: tuple[Task, ...], width: int) -> None:
        from dfmesh.api import PlaceParam, Yield

        iterations = PlaceParam("iterations")
        made: list[Any] = []
        for task in tasks:
            inputs = [made[source] for source in task.sources]
            site = "ab"[worker_of(task.column, width)]
            made.append(self._ops.Work(iterations=iterations, inputs=inputs, site=site))
        for index in ends(tasks):
            Yield(made[index], place=str(index))

    def first_results(self) -> list[int]:
        """Run one job with an operation at every site."""
        results = self._session.run(self._pipeline(self._write_first_results))
        return [results.one(site) for site in SITES]

    def call(self, number: int) -> int:
        """Submit a prepared job and wait for its result."""
        results = self._session.submit(self._pipeline(self._write_echo), {"value": number}).result()
        return int(results.one(PLACE))

    def first_value(self, number: int) -> float:
        """Take the value as soon as it is there, and the job's end afterwards."""
        begin = time.perf_counter()
        job = self._session.submit(self._pipeline(self._write_echo), {"value": number})
        item = next(iter(job))
        elapsed = time.perf_counter() - begin
        check(item.value, number, "a job")
        job.wait()
        return elapsed

    def client(self) -> Client:
        """Use the one session from one more thread."""
        prepared = self._pipeline(self._write_echo)

        def submit(number: int) -> tuple[int, Any]:
            return number, self._session.submit(prepared, {"value": number})

        def take(submitted: tuple[int, Any]) -> None:
            number, job = submitted
            check(job.result().one(PLACE), number, "a job")

        return Client(submit, take)

    def items(self, count: int) -> int:
        """Run one job with a loop, and take each result as it comes."""
        job = self._session.submit(self._pipeline(self._write_items), {"count": count})
        return sum(item.value for item in job)

    def arrays(self, size: int, count: int) -> list[float]:
        """Run one job with a loop over arrays that site a has already."""
        job = self._session.submit(self._pipeline(self._write_arrays), {"size": size, "count": count})
        return list(job.result()[PLACE])

    def fresh_array(self, size: int) -> float:
        """Run one job with one array that site a makes."""
        return float(self._session.run(self._pipeline(self._write_fresh_array), {"size": size}).one(PLACE))

    def chains(self, hops: int, count: int) -> list[int]:
        """Run one job with a parameter set for each chain."""
        sets = [{"value": number} for number in range(count)]
        return list(self._session.run(self._pipeline(self._write_chain, hops), sets)[PLACE])

    def site_processes(self) -> dict[str, int]:
        """Find the processes of the sites by their arguments."""
        found = {}
        for pid in processes_of_run():
            arguments = command_line(pid)
            if SITE_MODULE in arguments:
                found[arguments[arguments.index(SITE_MODULE) + 2]] = pid
        return found

    def graph(self, tasks: Sequence[Task], width: int) -> Callable[[int], list[int]]:
        """Compile one statement for each task, at site a or b."""
        prepared = self._pipeline(self._write_graph, tuple(tasks), width)
        places = [str(index) for index in ends(tasks)]

        def run(iterations: int) -> list[int]:
            results = self._session.run(prepared, {"iterations": iterations})
            return [results.one(place) for place in places]

        return run
