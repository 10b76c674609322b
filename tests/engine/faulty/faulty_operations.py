"""Adapters for tests with faults: some may run again, and those that must not tell if they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

ran: Counter[Any] = Counter()
"""How often each call was made of those that must not be made twice."""


def add(a: int, b: int) -> int:
    return a + b


def count(n: int) -> Iterator[int]:
    yield from range(n)


def total(items: Iterator[int]) -> int:
    return sum(items)


def gather(items: list[int]) -> list[int]:
    return list(items)


def fail_at(x: int, at: int) -> int:
    if x == at:
        raise ValueError(f"fails at {at}")
    return x


def send(key: Any, x: int) -> int:
    """Do what must be done once only."""
    ran[repr(("send", key))] += 1
    return x + 1


def refuse(key: Any) -> int:
    """Fail once only."""
    ran[repr(("refuse", key))] += 1
    raise ValueError("refused")


def draw(left: int, right: int) -> int:
    """Merge once only."""
    ran[repr(("draw", left, right))] += 1
    return left + right


def emit(n: int) -> Iterator[int]:
    """A stream that is made once only."""
    ran[repr(("emit", n))] += 1
    yield from range(n)


def drain(key: Any, items: Iterator[int]) -> int:
    """Take a stream once only."""
    ran[repr(("drain", key))] += 1
    return sum(items)
