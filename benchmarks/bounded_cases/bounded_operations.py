"""What the sites of the bounded cases run."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator

from bounded_cases.counting import Counter

NUMBER_BYTES = 8
LINES_SHOWN = 12

_last_snapshot: list[tracemalloc.Snapshot] = []


def item_of(number: int, size: int) -> bytes:
    """An item that carries its number."""
    return number.to_bytes(NUMBER_BYTES, "big") + bytes(size - NUMBER_BYTES)


def number_of(item: bytes) -> int:
    return int.from_bytes(item[:NUMBER_BYTES], "big")


def produce(count: int, size: int, counter: str) -> Iterator[bytes]:
    """Make items one by one, as they are wanted."""
    with Counter(counter) as made:
        for number in range(count):
            yield item_of(number, size)
            made.add()


async def consume(items: AsyncIterator[bytes], per_second: float, counter: str) -> dict[str, int]:
    """Read a stream, and see to it that the items come in order and none is missing."""
    count = 0
    begin = time.perf_counter()
    with Counter(counter) as taken:
        async for item in items:
            if number_of(item) != count:
                raise ValueError(f"item {number_of(item)} came where {count} was due")
            count += 1
            taken.add()
            if per_second:
                await asyncio.sleep(max(0.0, begin + count / per_second - time.perf_counter()))
    return {"count": count}


async def handle(item: bytes, seconds: float, counter: str) -> int:
    """Take one item."""
    if seconds:
        await asyncio.sleep(seconds)
    with Counter(counter) as taken:
        taken.add()
    return number_of(item)


def echo(value: int) -> int:
    return value


async def wait(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def allocations() -> list[str]:
    """The lines of code whose allocations have grown most since the last call, in this process."""
    if not tracemalloc.is_tracing():
        return []
    snapshot = tracemalloc.take_snapshot()
    last, _last_snapshot[:] = list(_last_snapshot), [snapshot]
    return [str(line) for line in snapshot.compare_to(last[0], "lineno")[:LINES_SHOWN]] if last else []
