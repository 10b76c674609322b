"""Adapters for tests of the engine: tiny, and telling about how they were called."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

calls: Counter[str] = Counter()
"""How often each name was tallied."""


def add(a: int, b: int) -> int:
    return a + b


def fold(left: Any, right: Any) -> str:
    """Show the order and grouping of a fold."""
    return f"({left} {right})"


def echo(x: Any) -> Any:
    return x


def sites(x: Any, y: Any) -> list[Any]:
    return [x, y]


def fail(x: Any) -> Any:
    raise ValueError(f"fails for {x}")


def fail_at(x: int, at: int) -> int:
    if x == at:
        raise ValueError(f"fails at {at}")
    return x


def tally(name: str, x: Any) -> Any:
    calls[name] += 1
    return x


def tally_fail(name: str, times: int) -> str:
    """Fail the first `times` calls."""
    calls[name] += 1
    if calls[name] <= times:
        raise ValueError(f"call {calls[name]} fails")
    return name


def count(n: int) -> Iterator[int]:
    yield from range(n)


async def count_async(n: int) -> AsyncIterator[int]:
    for item in range(n):
        yield item


def failing_count(n: int) -> Iterator[int]:
    yield from range(n)
    raise ValueError("the stream broke")


def take(items: Iterator[int], n: int) -> list[int]:
    """Leave a stream after n items."""
    return [item for item, _ in zip(items, range(n), strict=False)]


def total(items: Iterator[int]) -> int:
    return sum(items)


def gather(items: Iterable[int]) -> list[int]:
    return list(items)


def pairs(xs: Iterator[int], ys: Iterator[int]) -> Iterator[tuple[int, int]]:
    yield from zip(xs, ys, strict=False)


def merge_stream(a: Any, b: Any) -> Iterator[Any]:
    yield a
    yield b


def block(seconds: float) -> str:
    time.sleep(seconds)
    return threading.current_thread().name


def unsendable() -> Any:
    return object()
