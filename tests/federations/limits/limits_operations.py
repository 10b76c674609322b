"""Adapters that note how many of them compute at the same time."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

_lock = threading.Lock()
_now: dict[str, int] = {}


class _Inside:
    def __init__(self, name: str) -> None:
        self.name = name
        self.most = 0

    def __enter__(self) -> _Inside:
        with _lock:
            _now[self.name] = self.most = _now.get(self.name, 0) + 1
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _now[self.name] -= 1


def compute(number: int) -> int:
    """Give how many computed when this call had begun."""
    with _Inside("all") as inside:
        time.sleep(0.01)
        return inside.most


def compute_alone(number: int) -> int:
    """As `compute`, counting this adapter only."""
    with _Inside("alone") as inside:
        time.sleep(0.01)
        return inside.most


def compute_apart(number: int) -> tuple[float, float]:
    """Give when this call began and ended."""
    began = time.monotonic()
    time.sleep(0.01)
    return began, time.monotonic()


async def ask(number: int) -> int:
    """As `compute`, in a coroutine."""
    with _Inside("ask") as inside:
        await asyncio.sleep(0.01)
        return inside.most


def make(count: int) -> Iterator[int]:
    """Produce numbers."""
    for number in range(count):
        with _Inside("make") as inside:
            assert inside.most == 1
            time.sleep(0.002)
        yield number


def total(items: Iterator[int]) -> int:
    """Add up numbers as they come."""
    return sum(items)


def late(how: str) -> Iterator[int] | AsyncIterator[int]:
    """Produce two items at once and a third one too late."""
    return _late_async() if how == "async" else _late(how)


def _late(how: str) -> Iterator[int]:
    never = threading.Event()
    if how == "first":
        never.wait()
    yield 1
    yield 2
    never.wait()
    yield 3


async def _late_async() -> AsyncIterator[int]:
    yield 1
    yield 2
    await asyncio.sleep(600)
    yield 3


def hold(mark: str) -> int:
    """Say that it runs, then compute until the mark is taken away."""
    path = Path(mark)
    path.write_text(str(os.getpid()))
    while path.exists():
        time.sleep(0.005)
    return 1
