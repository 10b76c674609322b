"""Adapters that take their site down, or show how often they ran."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path


def step(x: int) -> int:
    time.sleep(0.01)
    return x


def count(n: int) -> Iterator[int]:
    yield from range(n)


def kill_once(path: str, x: int) -> int:
    """Die in the middle, the first time."""
    if not Path(path).exists():
        Path(path).touch()
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def kill_always(x: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return x


def write(path: str, x: int) -> int:
    with Path(path).open("a") as file:
        file.write(f"{x}\n")
    return x


def hold(seconds: float) -> float:
    """Work for so long without ever giving up the interpreter's lock: all of the loop is in C."""
    end = time.perf_counter() + seconds
    next(itertools.dropwhile(end.__gt__, iter(time.perf_counter, None)))
    return seconds
