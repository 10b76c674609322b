"""Adapters of the calc federation: small, deterministic, and in every shape that an adapter may have."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import calc_plain
import numpy as np


def add(a: int, b: int) -> int:
    return calc_plain.add(a, b)


class Combine:
    """A class with a body and no constructor."""

    def body(self, left: int, right: int) -> int:
        return calc_plain.combine(left, right)


async def mix(values: Any) -> int:
    await asyncio.sleep(0)
    return calc_plain.mix(values)


def pair(x: Any) -> tuple[Any, int]:
    return calc_plain.pair(x)


class Record:
    """A class with an async body."""

    async def body(self, x: Any, n: int) -> dict[Any, Any]:
        await asyncio.sleep(0)
        return calc_plain.record(x, n)


def numbers(n: int) -> list[int]:
    return calc_plain.numbers(n)


def stream(n: int) -> Iterator[int]:
    yield from calc_plain.stream(n)


async def async_stream(n: int) -> AsyncIterator[int]:
    for item in calc_plain.stream(n):
        await asyncio.sleep(0)
        yield item


class StreamBody:
    """A class whose body is a generator."""

    def body(self, n: int) -> Iterator[int]:
        yield from calc_plain.stream(n)


def table(n: int) -> list[dict[str, Any]]:
    return calc_plain.table(n)


def total(items: Iterable[int]) -> int:
    return calc_plain.total(items)


def live_total(items: Iterator[int]) -> int:
    """Read a stream live: the annotation asks for an iterator."""
    return calc_plain.total(items)


async def concat(parts: Iterable[Any]) -> str:
    return calc_plain.concat(parts)


def identity(x: Any) -> Any:
    return x


def fail_if(x: int, modulus: int) -> int:
    return calc_plain.fail_if(x, modulus)


def array(n: int) -> np.ndarray:
    return calc_plain.array(n)


def array_sum(values: np.ndarray) -> float:
    return float(values.sum())


def grid(n: int) -> np.ndarray:
    return calc_plain.grid(n)


def columns(n: int) -> Any:
    return calc_plain.columns(n)


def names(n: int) -> dict[str, int]:
    return calc_plain.names(n)


def span(n: int) -> range:
    return calc_plain.span(n)


# Streams that break, and streams made of streams.


def breaking(n: int) -> Iterator[int]:
    yield from calc_plain.breaking(n)


async def async_breaking(n: int) -> AsyncIterator[int]:
    for item in calc_plain.breaking(n):
        await asyncio.sleep(0)
        yield item


class BreakingBody:
    """A class whose body is a generator that breaks."""

    def body(self, n: int) -> Iterator[int]:
        yield from calc_plain.breaking(n)


def running(items: Iterator[int]) -> Iterator[int]:
    """Read a stream live and make another."""
    yield from calc_plain.running(items)


async def async_running(items: AsyncIterator[int]) -> AsyncIterator[int]:
    """As `running`; where no stream is given, but a list, that comes as it is."""
    total_so_far = 0
    if isinstance(items, AsyncIterator):
        async for item in items:
            total_so_far = calc_plain.add(total_so_far, item)
            yield total_so_far
    else:
        for item in calc_plain.running(items):
            yield item


class Running:
    """A class whose body reads a stream live."""

    def body(self, items: Iterator[int]) -> Iterator[int]:
        yield from calc_plain.running(items)


# Optional parameters and constructor arguments.


def optional(x: int, y: int = 5, z: Any = "left out") -> list[Any]:
    """The operation gives no default for y and z: the adapter's hold, None is not passed."""
    return [x, y, z]


class Scaled:
    """Built once per set of constructor arguments, and told its site if it asks."""

    _built = itertools.count(1)

    def __init__(self, site: Any, factor: int, offset: int = 0) -> None:
        self.site = site.name
        self.factor = factor
        self.offset = offset
        self.instance = next(self._built)

    def body(self, x: int) -> dict[str, Any]:
        return {"site": self.site, "value": x * self.factor + self.offset, "instance": self.instance}


def constants(flag: Any, number: Any, text: Any, nothing: Any) -> list[Any]:
    """All four come from constants of the federation file, and all are falsy."""
    return [flag, number, text, nothing]


def provided(x: int, factor: int, site: str) -> list[Any]:
    """Offered by a provider, with values of the provider and the site."""
    return [x * factor, site]


class Where:
    """Says where it runs."""

    def __init__(self, site: Any) -> None:
        self.site = site.name

    def body(self) -> dict[str, Any]:
        return {"site": self.site, "pid": os.getpid()}


def where_only() -> str:
    return "only b"


# Time and order.


def tick() -> int:
    """Nanoseconds on a clock that all processes of a machine share."""
    return time.monotonic_ns()


async def sleep(seconds: float) -> int:
    await asyncio.sleep(seconds)
    return time.monotonic_ns()


def block(seconds: float) -> int:
    """Sleep as a plain function does: the thread is held."""
    time.sleep(seconds)
    return time.monotonic_ns()


def gate(path: str, x: Any = None) -> Any:
    """Wait until a file exists; so a test decides when this ends. Gives up after a minute."""
    for _ in range(6000):
        if Path(path).exists():
            return x
        time.sleep(0.01)
    raise TimeoutError(path)


def leave(path: str) -> str:
    """Make a file, as a sign that this has run."""
    Path(path).write_text(str(os.getpid()))
    return path


_barriers: dict[str, threading.Barrier] = {}
_lock = threading.Lock()


def _barrier(name: str, parties: int) -> threading.Barrier:
    with _lock:
        return _barriers.setdefault(name, threading.Barrier(parties))


def meet(name: str, parties: int) -> str:
    """Return only if `parties` calls with this name are going on in this process at the same time."""
    _barrier(name, parties).wait(timeout=60)
    return name


_arrived: dict[str, tuple[list[None], asyncio.Event]] = {}


async def async_meet(name: str, parties: int) -> str:
    """As `meet`, on the event loop of the site."""
    calls, everyone = _arrived.setdefault(name, ([], asyncio.Event()))
    calls.append(None)
    if len(calls) == parties:
        everyone.set()
    await asyncio.wait_for(everyone.wait(), 60)
    return name


def meeting_stream(name: str, n: int) -> Iterator[int]:
    """Two streams of one name only come to an end if they run at the same time in one process."""
    for k in range(n):
        _barrier(f"{name}.{k}", 2).wait(timeout=60)
        yield k


def endless() -> Iterator[int]:
    """A stream that only ends when nobody wants it any more."""
    yield from itertools.count()


# What goes wrong.


def fail(message: str) -> Any:
    raise ValueError(message)


async def async_fail(message: str) -> Any:
    await asyncio.sleep(0)
    raise ValueError(message)


def failing_stream(n: int) -> Iterator[int]:
    """Break after n items."""
    yield from range(n)
    raise ValueError("the stream broke")


def leave_process(code: Any = 3) -> Any:
    sys.exit(code)


async def async_leave_process() -> Any:
    sys.exit(4)


def interrupt() -> Any:
    raise KeyboardInterrupt


def kill() -> Any:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def unsendable() -> Any:
    return {"deep": [object()]}


def unsendable_function() -> Any:
    return lambda: None


def unsendable_keys() -> Any:
    """Looks harmless, and is not a value of the codec."""
    return {"a": 1}.keys()


class OddError(Exception):
    """An exception that cannot be copied, and whose text cannot be had."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __str__(self) -> str:
        raise RuntimeError("no text")


def fail_oddly() -> Any:
    raise OddError


class BrokenConstructor:
    """Its constructor raises."""

    def __init__(self) -> None:
        raise RuntimeError("the constructor broke")

    def body(self) -> int:
        return 1


def flaky(path: str, times: int) -> int:
    """Fail as often as told, then give the number of calls; counts in a file, so that any process may run it."""
    file = Path(path)
    calls = len(file.read_text()) + 1 if file.exists() else 1
    file.write_text("x" * calls)
    if calls <= times:
        raise ValueError(f"call {calls} fails")
    return calls


_calls: dict[str, int] = {}


def unsteady(key: Any, x: int, times: int, attempts: int) -> int:
    """Fail as often as told; begins anew after the last call there can be, so that it may run many times.

    Args:
        key: Tells this call from all others that may go on at the same time; its retries have the same.
        x: What is given back.
        times: How often to fail.
        attempts: How many calls there are at most.
    """
    name = calc_plain.canonical(key)
    with _lock:
        calls = _calls[name] = _calls.get(name, 0) + 1
        if calls == attempts or calls > times:
            del _calls[name]
    if calls <= times:
        raise ValueError(f"call {calls} of {x} fails")
    return x


async def async_unsteady(key: Any, x: int, times: int, attempts: int) -> int:
    await asyncio.sleep(0)
    return unsteady(key, x, times, attempts)
