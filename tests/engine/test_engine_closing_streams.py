"""Async generators that nobody wants any more are closed, whatever else happens in the same turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

from dfmesh.engine.adapters import ThisCall
from dfmesh.engine.call_plan import CallOutcome
from dfmesh.engine.call_work import CallWork
from dfmesh.engine.generators import Generators
from dfmesh.engine.live_inputs import LiveInputs
from dfmesh.engine.pulling import OpenStream
from dfmesh.engine.worker_threads import WorkerThreads

CALL = 7
LIMIT = 60.0


class Inputs:
    """Of calls that are fed with nothing."""

    def forget(self, call: int) -> None: ...

    def end_consumed(self, call: int) -> None: ...


class Items(CallOutcome):
    """Notes items."""

    def __init__(self) -> None:
        self.given: list[Any] = []
        self.came = asyncio.Event()

    def streams(self, call: int) -> None: ...

    def items(self, call: int, given: list[Any], seconds: float, *, more: bool) -> None:
        self.given += given
        self.came.set()


class Closing:
    """A stream that waits at a `yield`, and what may happen to it."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.threads = WorkerThreads(asyncio.get_running_loop(), "site 'us'")
        self.work = CallWork(self.threads)
        self.outcome = Items()
        self.generators = Generators(self.work, cast(LiveInputs, Inputs()), self.outcome, lambda *_: None)

    async def items(self) -> AsyncIterator[int]:
        try:
            for number in range(10**9):
                yield number
        finally:
            await asyncio.sleep(0.01)
            self.closed.set()

    async def begin(self) -> None:
        self.generators.open(CALL, OpenStream(self.items(), ThisCall("op"), None, None))
        self.generators.pull(CALL, 1)
        await self.outcome.came.wait()
        await asyncio.gather(*self.work.tasks.values())

    def pull(self) -> None:
        self.generators.pull(CALL, 5)

    def drop(self) -> None:
        self.generators.drop(CALL)

    def end_job(self) -> None:
        self.generators.close()
        self.work.close()


@pytest.mark.parametrize(
    "happenings",
    [
        [Closing.drop],
        [Closing.end_job],
        [Closing.pull, Closing.drop],
        [Closing.pull, Closing.end_job],
        [Closing.drop, Closing.end_job],
        [Closing.pull, Closing.drop, Closing.end_job],
    ],
    ids=lambda happenings: ", ".join(one.__name__ for one in happenings),
)
def test_it_is_closed(happenings: list[Callable[[Closing], None]]) -> None:
    async def main() -> None:
        it = Closing()
        await it.begin()
        for happening in happenings:
            happening(it)
        if it.work.closed:
            await asyncio.wait_for(it.work.ended(), LIMIT)
            assert it.closed.is_set(), "the job has ended before it was closed"
        await asyncio.wait_for(it.closed.wait(), LIMIT)
        it.threads.close()

    asyncio.run(main())
