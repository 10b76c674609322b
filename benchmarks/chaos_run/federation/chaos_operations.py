"""The operations of the chaos federation: deterministic sums, and everything that goes wrong in real adapters."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

# Values


def affine(x: int, a: int, b: int, seconds: float = 0.0) -> int:
    if seconds:
        time.sleep(seconds)
    return a * x + b


def once(x: int, label: str, log: str) -> int:
    """Leave a line per call, so that a call that was made twice shows."""
    with open(log, "a") as file:
        file.write(f"{label} {x}\n")
    return 3 * x + 1


def tally(left: int, right: int) -> int:
    return left + right


def numbers(n: int, seed: int) -> list[int]:
    return random.Random(seed).sample(range(1_000_000), n)


def stream(n: int, seed: int, pause: float = 0.0) -> Iterator[int]:
    for number in numbers(n, seed):
        if pause:
            time.sleep(pause)
        yield number


def sum_up(items: Iterator[int]) -> list[int]:
    """Read a stream while it is made; order and number of its items show in the result."""
    count, total, mark = 0, 0, 0
    for item in items:
        count += 1
        total += item
        mark = (mark * 31 + item) % 1_000_003
    return [count, total, mark]


def describe(x: Any) -> dict[str, Any]:
    return {"x": x, "pair": (x, [x]), 3: b"three", "nothing": None, "half": 0.5}


# Time


async def sleep(seconds: float, x: int) -> int:
    await asyncio.sleep(seconds)
    return x


def wait(seconds: float, x: int) -> int:
    time.sleep(seconds)
    return x


def loop(seconds: float, x: int) -> int:
    """Loop in Python, which no signal or time-out of a system call interrupts."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return x


def hold(size: int, x: int) -> int:
    """Keep the interpreter to itself, as C code without a mind for others does."""
    return x + (pow(3, size) & 1) - 1


async def block_loop(seconds: float, x: int) -> int:
    """Keep the event loop of the site waiting, as a coroutine that calls a blocking library does."""
    time.sleep(seconds)  # noqa: ASYNC251
    return x


def child(seconds: float, x: int) -> int:
    """Wait for a process of its own, which must not outlive the site."""
    subprocess.run([sys.executable, "-S", "-c", f"import time; time.sleep({seconds})"], check=True)
    return x


# Failures


def raise_if(x: int, modulus: int) -> int:
    if x % modulus == 0:
        raise ValueError(f"{x} is a multiple of {modulus}")
    return x


def exit_python(code: int) -> None:
    sys.exit(code)


def leave(code: int, delay: float) -> None:
    time.sleep(delay)
    os._exit(code)


def die(name: str, delay: float) -> None:
    time.sleep(delay)
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(60)


def flaky(path: str, times: int, x: int) -> int:
    """Fail so many times, counted in a file, then be well."""
    with open(path, "a") as file:
        file.write("x")
        calls = file.tell()
    if calls <= times:
        raise ConnectionError(f"call {calls} is in vain")
    return x


def broken_stream(n: int) -> Iterator[int]:
    yield from range(n)
    raise RuntimeError(f"the stream broke after {n}")


# Large values


def array(n: int, seed: int) -> np.ndarray:
    return np.arange(n, dtype=np.int64) * (seed % 97 + 1) + seed


def shift(values: np.ndarray, by: int) -> np.ndarray:
    return values * 3 + by


def digest(values: np.ndarray) -> list[int]:
    return [len(values), int(values.sum()), zlib.crc32(np.ascontiguousarray(values).data)]


# Links

_plain = (socket.socket.send, socket.socket.sendmsg)
_slow_until = 0.0


def slow_links(seconds: float, most: int, pause: float) -> bool:
    """Let the connections of this site take no more than so many bytes at a time, with pauses, for a while."""
    global _slow_until
    _slow_until = time.monotonic() + seconds
    send, sendmsg = _plain

    def slow_send(connection: socket.socket, data: Any, *flags: int) -> int:
        if time.monotonic() > _slow_until:
            return send(connection, data, *flags)
        time.sleep(pause)
        return send(connection, memoryview(data).cast("B")[:most], *flags)

    def slow_sendmsg(connection: socket.socket, buffers: Any, *more: Any) -> int:
        if time.monotonic() > _slow_until:
            return sendmsg(connection, buffers, *more)
        time.sleep(pause)
        first = next((part for part in map(memoryview, buffers) if len(part)), memoryview(b""))
        return sendmsg(connection, [first.cast("B")[:most]], *more)

    socket.socket.send = slow_send  # type: ignore[assignment,method-assign]
    socket.socket.sendmsg = slow_sendmsg  # type: ignore[assignment,method-assign]
    return True
