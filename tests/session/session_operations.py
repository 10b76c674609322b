"""Adapters that misbehave, each in its own way."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count, islice
from typing import Any


class NoText(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise KeyboardInterrupt


class _Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name == "__name__":
            raise SystemExit(5)
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=_Nameless):  # noqa: N818
    pass


def misbehave(how: str) -> str:
    match how:
        case "no text":
            raise NoText
        case "no name":
            raise Nameless
        case "surrogate":
            raise ValueError("not text: \ud800")
        case "huge":
            raise ValueError("x" * 5_000_000)
        case "tracing":
            sys.settrace(lambda *_: 1 / 0)  # type: ignore[arg-type, return-value]
        case "file":
            return open(__file__)  # type: ignore[return-value]
    return how


async def deaf(seconds: float) -> str:
    end = asyncio.get_running_loop().time() + seconds
    while (left := end - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue
    return "slept"


def add(a: float, b: float) -> float:
    return a + b


def numbers(n: int) -> list[int]:
    return list(range(n))


def spoil(values: list[Any]) -> int:
    values.append("spoiled")
    return len(values)


def same(values: list[Any]) -> list[Any]:
    return values


def kind(thing: Any) -> str:
    return type(thing).__name__


def endless() -> Iterator[int]:
    yield from count()


async def endless_async() -> AsyncIterator[int]:
    for number in count():
        yield number


def first(items: Iterator[int], n: int) -> list[int]:
    return list(islice(items, n))


def counted(n: int) -> Iterator[int]:
    yield from range(n)


def total(items: Iterator[int]) -> int:
    return sum(items)


def block(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
