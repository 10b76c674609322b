"""Dask: futures of a local cluster, and actors where latency counts. `python -m peers.dask_peer dask ORDERS`."""

# mypy: disable-error-code="import-not-found"
# (Dask is only in the environment that runs this module)

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import measuring

from dfmesh.cli.bench import operations
from dfmesh.cli.bench.measures import check
from dfmesh.cli.bench.system import ARRAY_WINDOW, SITES, Client, System, Task, ends, worker_of


class Site:
    """What runs as an actor at a worker."""

    def echo(self, value: int) -> int:
        return operations.echo(value)


class Dask(System):
    """A local cluster of four worker processes with one thread each."""

    name: ClassVar[str] = "dask"
    import_statement: ClassVar[str] = "from dask.distributed import Client"

    def __enter__(self) -> Self:
        import dask
        from dask.distributed import Client as DaskClient
        from dask.distributed import LocalCluster

        dask.config.set({"distributed.admin.log-format": "%(message)s"})
        self._cluster = LocalCluster(
            n_workers=len(SITES), threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=40
        )
        self._client = DaskClient(self._cluster)
        self._client.wait_for_workers(len(SITES))
        addresses = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
        self._workers = dict(zip(SITES, addresses, strict=True))
        self._actor: Any = None
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._cluster.close()

    def _submit(self, site: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, workers=[self._workers[site]], pure=False)

    def _site_actor(self) -> Any:
        if self._actor is None:
            self._actor = self._client.submit(Site, actor=True, workers=[self._workers["a"]]).result()
        return self._actor

    def first_results(self) -> list[int]:
        return self._client.gather([self._submit(site, operations.echo, n) for n, site in enumerate(SITES)])

    def call(self, number: int) -> int:
        """Call an actor: the client talks to the worker directly."""
        return self._site_actor().echo(number).result()

    def client(self) -> Client:
        actor = self._site_actor()

        def take(submitted: tuple[int, Any]) -> None:
            check(submitted[1].result(), submitted[0], "a call")

        return Client(lambda number: (number, actor.echo(number)), take)

    def items(self, count: int) -> int:
        """Map over the list in batches of the scheduler's choosing, and gather the results."""
        elements = self._submit("a", operations.numbers, count).result()
        futures = self._client.map(operations.echo, elements, workers=[self._workers["b"]], pure=False)
        return sum(self._client.gather(futures))

    def arrays(self, size: int, count: int) -> list[float]:
        found: list[float] = []
        in_flight: deque[Any] = deque()
        for index in range(count):
            if len(in_flight) >= ARRAY_WINDOW:
                found.append(in_flight.popleft().result())
            array = self._submit("a", operations.array, size, index)
            in_flight.append(self._submit("b", operations.probe, array))
        return found + self._client.gather(list(in_flight))

    def fresh_array(self, size: int) -> float:
        return self._submit("b", operations.probe, self._submit("a", operations.fresh_array, size)).result()

    def chains(self, hops: int, count: int) -> list[int]:
        values: list[Any] = list(range(count))
        for hop in range(hops):
            site = "a" if hop % 2 else "b"
            values = [self._submit(site, operations.echo, value) for value in values]
        return self._client.gather(values)

    def site_processes(self) -> dict[str, int]:
        pids = self._client.run(os.getpid)
        return {site: pids[address] for site, address in self._workers.items()}

    def graph(self, tasks: Sequence[Task], width: int) -> Callable[[int], list[int]]:
        """Submit a future for each task, with the futures that it depends on."""
        wanted = ends(tasks)

        def run(iterations: int) -> list[int]:
            made: list[Any] = []
            for task in tasks:
                inputs = [made[source] for source in task.sources]
                made.append(self._submit("ab"[worker_of(task.column, width)], operations.work, iterations, inputs))
            return self._client.gather([made[index] for index in wanted])

        return run


if __name__ == "__main__":
    measuring.main({Dask.name: Dask})
