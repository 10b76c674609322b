"""Adapters that keep what they give, and change it afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np

STEPS = 4


def _new(size: int) -> Any:
    """Give an array, or a short list, of nothing but -1."""
    return np.full(size, -1.0) if size else [-1.0]


class Step:
    """Goes on from its state for arrays of a size, which it gives each time."""

    def __init__(self, site: Any, provider: Any) -> None:
        self.states: dict[int, Any] = {}

    def body(self, x: int, size: int) -> Any:
        if x == 0:
            self.states[size] = _new(size)
        self.states[size][0] += 1
        return self.states[size]


class AsyncStep(Step):
    """As `Step`, on the event loop."""

    async def body(self, x: int, size: int) -> Any:  # type: ignore[override]
        return Step.body(self, x, size)


def rows(size: int) -> Iterator[Any]:
    """Give one row after the other, in the same buffer."""
    row = _new(size)
    for _ in range(STEPS):
        row[0] += 1
        yield row


async def async_rows(size: int) -> AsyncIterator[Any]:
    """As `rows`, on the event loop."""
    for row in rows(size):
        yield row


def firsts(rows: Any) -> list[float]:
    """Give the first number of each."""
    return [float(row[0]) for row in rows]


def live_firsts(rows: Iterator[Any]) -> list[float]:
    """As `firsts`, when all have come one by one."""
    return firsts(list(rows))
