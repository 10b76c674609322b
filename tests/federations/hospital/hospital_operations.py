"""Operations of hospitals that say much of what they are given, as code does that was not written for others' data."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

log = logging.getLogger("hospital")


def patients() -> list[dict[str, Any]]:
    return [{"name": "SECRET-Ann", "age": 41, "key-SECRET-Ann": 1}, {"name": "SECRET-Bob", "age": 59}]


def stream() -> Iterator[dict[str, Any]]:
    yield from patients()
    raise ValueError(f"bad record {patients()[0]}")


def broken() -> None:
    raise ValueError(f"bad record {patients()[0]}")


def add(a: float, b: float) -> float:
    return a + b


def count(x: Any = None, kind: str = "") -> int:
    return len(x) + len(kind)


def to_float(x: Any) -> float:
    return float(x)


def wrapped(x: Any) -> None:
    try:
        raise KeyError(x)
    except KeyError as error:
        error.add_note(f"that was {x}")
        raise RuntimeError(f"cannot use {x}") from error


def say(x: Any) -> int:
    print("printed", x)
    print("wrong", x, file=sys.stderr)
    log.warning("logged %s", x)
    warnings.warn(f"warned of {x}", stacklevel=1)
    print("unfinished", x, end="")
    return 0


async def say_later(x: Any) -> int:
    print("later", x)
    return int(f"{x}")


def say_and_fail(x: Any) -> float:
    print("apart", x)
    return float(x)


def live(xs: Iterator[Any]) -> int:
    for x in xs:
        raise ValueError(f"cannot take {x}")
    return 0


def wait(x: Any) -> None:
    time.sleep(60)


def leave(x: Any) -> None:
    print("leaving with", x, flush=True)
    os._exit(3)
