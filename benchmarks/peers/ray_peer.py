"""Ray: an actor for each site, and a compiled graph where latency counts. `python -m peers.ray_peer ray ORDERS`."""

# mypy: disable-error-code="import-not-found"
# (Ray is only in the environment that runs this module)

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import measuring

from dfmesh.cli.bench import operations
from dfmesh.cli.bench.measures import check
from dfmesh.cli.bench.system import ARRAY_WINDOW, ITEM_WINDOW, SITES, Client, System, Task, ends, worker_of


class Site:
    """What runs in an actor."""

    def pid(self) -> int:
        return os.getpid()

    def echo(self, value: int) -> int:
        return operations.echo(value)

    def numbers(self, count: int) -> Any:
        """A stream of the elements, for whoever takes them one by one."""
        for number in operations.numbers(count):  # noqa: UP028 - Ray sends to it, which a list's iterator cannot take
            yield number

    def array(self, size: int, index: int) -> Any:
        return operations.array(size, index)

    def fresh_array(self, size: int) -> Any:
        return operations.fresh_array(size)

    def probe(self, array: Any) -> float:
        return operations.probe(array)

    def work(self, iterations: int, *inputs: int) -> int:
        return operations.work(iterations, inputs)


class Ray(System):
    """One Ray node without dashboard; four actors."""

    name: ClassVar[str] = "ray"
    import_statement: ClassVar[str] = "import ray"

    def __enter__(self) -> Self:
        import ray

        self._ray = ray
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
        self._actor = ray.remote(num_cpus=0)(Site)
        self._sites = {site: self._actor.remote() for site in SITES}
        self._compiled: Any = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._compiled is not None:
            self._compiled.teardown()
        self._ray.shutdown()

    def first_results(self) -> list[int]:
        return self._ray.get([self._sites[site].echo.remote(number) for number, site in enumerate(SITES)])

    def call(self, number: int) -> int:
        """Run a compiled graph of one actor's method; that actor does nothing else."""
        if self._compiled is None:
            from ray.dag import InputNode

            with InputNode() as value:
                graph = self._actor.remote().echo.bind(value)
            self._compiled = graph.experimental_compile()
        return self._ray.get(self._compiled.execute(number))

    def client(self) -> Client:
        site = self._sites["a"]

        def take(submitted: tuple[int, Any]) -> None:
            check(self._ray.get(submitted[1]), submitted[0], "a call")

        return Client(lambda number: (number, site.echo.remote(number)), take)

    def items(self, count: int) -> int:
        """Take references from a's stream and hand them to b, with a window of calls in flight."""
        echo = self._sites["b"].echo
        stream = self._sites["a"].numbers.options(num_returns="streaming").remote(count)
        in_flight: deque[Any] = deque()
        total = 0
        for element in stream:
            in_flight.append(echo.remote(element))
            if len(in_flight) >= ITEM_WINDOW:
                half = [in_flight.popleft() for _ in range(ITEM_WINDOW // 2)]
                total += sum(self._ray.get(half))
        return total + sum(self._ray.get(list(in_flight)))

    def arrays(self, size: int, count: int) -> list[float]:
        found: list[float] = []
        in_flight: deque[Any] = deque()
        for index in range(count):
            if len(in_flight) >= ARRAY_WINDOW:
                found.append(self._ray.get(in_flight.popleft()))
            array = self._sites["a"].array.remote(size, index)
            in_flight.append(self._sites["b"].probe.remote(array))
        return found + self._ray.get(list(in_flight))

    def fresh_array(self, size: int) -> float:
        return self._ray.get(self._sites["b"].probe.remote(self._sites["a"].fresh_array.remote(size)))

    def chains(self, hops: int, count: int) -> list[int]:
        values: list[Any] = list(range(count))
        for hop in range(hops):
            site = self._sites["a" if hop % 2 else "b"]
            values = [site.echo.remote(value) for value in values]
        return self._ray.get(values)

    def site_processes(self) -> dict[str, int]:
        return {site: self._ray.get(actor.pid.remote()) for site, actor in self._sites.items()}

    def graph(self, tasks: Sequence[Task], width: int) -> Callable[[int], list[int]]:
        """Submit a call of an actor's method for each task, with references to what it depends on."""
        workers = [self._sites["a"], self._sites["b"]]
        wanted = ends(tasks)

        def run(iterations: int) -> list[int]:
            made: list[Any] = []
            for task in tasks:
                worker = workers[worker_of(task.column, width)]
                made.append(worker.work.remote(iterations, *[made[source] for source in task.sources]))
            return self._ray.get([made[index] for index in wanted])

        return run


if __name__ == "__main__":
    measuring.main({Ray.name: Ray})
