"""LiveInput: a stream as an iterator on a thread, an async iterator, or a list."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from dfmesh.engine.live_input import LiveInput, StreamBrokenError
from dfmesh.engine.message_parts import Failure

FAILURE = Failure("a", "x.Stream", "%1", (0,), "", "ValueError", "it broke")
LIMIT = 20.0


def run(test: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(test, LIMIT))


async def fed(stream: LiveInput, items: int, *, early: int, failure: Failure | None = None) -> None:
    """Put some items before anyone reads, the others while somebody does."""
    for item in range(early, items):
        await asyncio.sleep(0)
        stream.put(item)
    stream.end(failure)


@pytest.mark.parametrize("items", [0, 1, 15, 16, 17, 500])
@pytest.mark.parametrize("how", ["thread", "async", "list"])
@pytest.mark.parametrize("early", [0, 10])
def test_all_items_come_in_order_and_are_told_as_taken(items: int, how: str, early: int) -> None:
    async def test() -> None:
        taken: list[int] = []
        stream = LiveInput(taken.append)
        early_items = min(early, items)
        for item in range(early_items):
            stream.put(item)
        feeder = asyncio.create_task(fed(stream, items, early=early_items))
        if how == "thread":
            iterator = stream.iterate()
            found = await asyncio.to_thread(list, iterator)
        elif how == "async":
            found = [item async for item in stream.iterate_async()]
        else:
            found = await stream.gather()
            assert await stream.gather() is found
        await feeder
        await asyncio.sleep(0)
        assert found == list(range(items))
        assert sum(taken) <= items
        assert items - sum(taken) < 16, "what is taken must be told before the sender has to stop"
        assert stream.consumed is (how != "list")

    run(test())


@pytest.mark.parametrize("how", ["thread", "async", "list"])
def test_a_broken_stream_raises_after_its_items(how: str) -> None:
    async def test() -> None:
        stream = LiveInput(lambda _count: None)
        feeder = asyncio.create_task(fed(stream, 3, early=0, failure=FAILURE))
        found: list[int] = []
        if how == "thread":
            reading: Any = asyncio.to_thread(found.extend, stream.iterate())
        elif how == "async":
            reading = extended(found, stream)
        else:
            reading = stream.gather()
        with pytest.raises(StreamBrokenError, match="it broke") as caught:
            await reading
        assert caught.value.failure is FAILURE
        assert found == ([] if how == "list" else [0, 1, 2])
        await feeder

    run(test())


async def extended(found: list[int], stream: LiveInput) -> None:
    async for item in stream.iterate_async():
        found.append(item)  # noqa: PERF401 - what came before the error counts


def test_a_reader_that_is_slow_is_not_told_ahead() -> None:
    """The items that lie in wait are not taken: the sender's window stays honest."""

    async def test() -> None:
        taken: list[int] = []
        stream = LiveInput(taken.append)
        for item in range(100):
            stream.put(item)
        iterator = stream.iterate()
        assert [next(iterator) for _ in range(10)] == list(range(10))
        await asyncio.sleep(0)
        assert sum(taken) <= 10

    run(test())


def test_a_reader_on_a_thread_is_woken_by_the_end() -> None:
    async def test() -> None:
        stream = LiveInput(lambda _count: None)
        reading = asyncio.create_task(asyncio.to_thread(list, stream.iterate()))
        await asyncio.sleep(0)
        stream.end(None)
        assert await reading == []

    run(test())
