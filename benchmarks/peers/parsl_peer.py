"""Parsl: a high-throughput executor for each site. `python -m peers.parsl_peer parsl ORDERS`."""

# mypy: disable-error-code="import-not-found"
# (Parsl is only in the environment that runs this module)

from __future__ import annotations

import os
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import measuring

from dfmesh.cli.bench import operations
from dfmesh.cli.bench.measures import check
from dfmesh.cli.bench.system import ARRAY_WINDOW, SITES, Client, System, Task, ends, worker_of


def work(iterations: int, *values: int) -> int:
    """`operations.work`, with inputs that Parsl sees as arguments of their own (`inputs` means something to it)."""
    return operations.work(iterations, values)


class Parsl(System):
    """Four executors on this machine, one worker process each."""

    name: ClassVar[str] = "parsl"
    import_statement: ClassVar[str] = (
        "import parsl; from parsl.config import Config; from parsl.executors import HighThroughputExecutor"
    )

    def __enter__(self) -> Self:
        import parsl
        from parsl.config import Config
        from parsl.executors import HighThroughputExecutor
        from parsl.providers import LocalProvider

        self._directory = tempfile.TemporaryDirectory(prefix="parsl-bench-")
        executors = [
            HighThroughputExecutor(
                label=site,
                address="127.0.0.1",
                max_workers_per_node=1,
                cores_per_worker=0.1,
                provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
            )
            for site in SITES
        ]
        config = Config(executors=executors, strategy="none", run_dir=self._directory.name, usage_tracking=0)
        self._parsl = parsl
        self._loaded = parsl.load(config)
        self._apps: dict[tuple[str, Any], Any] = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._loaded.cleanup()
        self._parsl.clear()
        self._directory.cleanup()

    def _app(self, site: str, function: Callable[..., Any]) -> Any:
        if (site, function) not in self._apps:
            self._apps[site, function] = self._parsl.python_app(function, executors=[site])
        return self._apps[site, function]

    def first_results(self) -> list[int]:
        futures = [self._app(site, operations.echo)(number) for number, site in enumerate(SITES)]
        return [future.result() for future in futures]

    def call(self, number: int) -> int:
        return self._app("a", operations.echo)(number).result()

    def client(self) -> Client:
        echo = self._app("a", operations.echo)

        def take(submitted: tuple[int, Any]) -> None:
            check(submitted[1].result(), submitted[0], "a call")

        return Client(lambda number: (number, echo(number)), take)

    def items(self, count: int) -> int:
        echo = self._app("b", operations.echo)
        elements = self._app("a", operations.numbers)(count).result()
        return sum(future.result() for future in [echo(element) for element in elements])

    def arrays(self, size: int, count: int) -> list[float]:
        found: list[float] = []
        in_flight: deque[Any] = deque()
        for index in range(count):
            if len(in_flight) >= ARRAY_WINDOW:
                found.append(in_flight.popleft().result())
            array = self._app("a", operations.array)(size, index)
            in_flight.append(self._app("b", operations.probe)(array))
        return found + [future.result() for future in in_flight]

    def fresh_array(self, size: int) -> float:
        return self._app("b", operations.probe)(self._app("a", operations.fresh_array)(size)).result()

    def chains(self, hops: int, count: int) -> list[int]:
        values: list[Any] = list(range(count))
        for hop in range(hops):
            echo = self._app("a" if hop % 2 else "b", operations.echo)
            values = [echo(value) for value in values]
        return [value.result() for value in values]

    def site_processes(self) -> dict[str, int]:
        return {site: self._app(site, os.getpid)().result() for site in SITES}

    def graph(self, tasks: Sequence[Task], width: int) -> Callable[[int], list[int]]:
        """Call an app for each task, with the futures that it depends on."""
        apps = [self._app("a", work), self._app("b", work)]
        wanted = ends(tasks)

        def run(iterations: int) -> list[int]:
            made: list[Any] = []
            for task in tasks:
                app = apps[worker_of(task.column, width)]
                made.append(app(iterations, *[made[source] for source in task.sources]))
            return [made[index].result() for index in wanted]

        return run


if __name__ == "__main__":
    from peers.parsl_peer import Parsl as ImportedParsl  # workers import the module by its name

    measuring.main({Parsl.name: ImportedParsl})
