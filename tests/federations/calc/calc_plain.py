"""What the operations of the calc federation compute, as plain functions.

The adapters in `calc_operations` wrap them in all the shapes that an adapter may have; the interpreter of the
conformance tests calls them directly. Nothing here knows of dfmesh.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


def canonical(value: Any) -> str:
    """Write a value as text that differs whenever value, type or order of keys differs."""
    kind = type(value).__name__
    if isinstance(value, list | tuple):
        return f"{kind}({', '.join(map(canonical, value))})"
    if isinstance(value, dict):
        return f"{kind}({', '.join(f'{canonical(key)}: {canonical(item)}' for key, item in value.items())})"
    if isinstance(value, np.ndarray):
        return f"{kind}({value.dtype.str}, {value.shape}, {value.tolist()!r})"
    return f"{kind}({value!r})"


def mix(values: Any) -> int:
    """Digest a structure to a number below a million that tells tuples from lists and 1 from True."""
    return zlib.crc32(canonical(values).encode()) % 1_000_000


def add(a: int, b: int) -> int:
    return (a + b) % 1_000_000


def combine(left: int, right: int) -> int:
    """Neither commutative nor associative, so that a fold in another order is seen."""
    return (left * 31 + right * 7 + 1) % 1_000_000


def pair(x: Any) -> tuple[Any, int]:
    return (x, mix(x))


def record(x: Any, n: int) -> dict[Any, Any]:
    return {"value": x, "n": n, "deep": {"pair": (n, [n + 1, n + 2])}, 7: "seven"}


def numbers(n: int) -> list[int]:
    """Give 0 to 4 numbers that depend on n."""
    return [(n * 13 + k * 7) % 101 for k in range(n % 5)]


def stream(n: int) -> Iterator[int]:
    yield from numbers(n + 3)


def table(n: int) -> list[dict[str, Any]]:
    """Give 1 to 3 rows with a list inside, for loops in loops."""
    return [{"k": n + row, "items": numbers(n + row), "at": (row, str(row))} for row in range(1 + n % 3)]


def total(items: Iterable[int]) -> int:
    return sum(items) % 1_000_000


def concat(parts: Iterable[Any]) -> str:
    return "|".join(str(part) for part in parts)


def fail_if(x: int, modulus: int) -> int:
    if x % modulus == 0:
        raise ValueError(f"{x} is a multiple of {modulus}")
    return x


def array(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32)
