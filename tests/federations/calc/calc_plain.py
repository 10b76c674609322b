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
    if hasattr(value, "to_pylist"):
        return f"{kind}({value.to_pylist()!r})"
    if kind == "IterationError":
        # Where and in which line it happened depends on the placement; the words of dfmesh's own errors are its own.
        message = value.message if value.operation.startswith("calc.") else ""
        return f"{kind}({value.operation}, {value.kind}, {message})"
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
    return "|".join(map(_text, parts))


def _text(part: Any) -> str:
    """Write a value as Python does, unless that would tell where an error happened or how a table is stored."""
    exact = canonical(part)
    return exact if "IterationError(" in exact or "Table(" in exact else str(part)


def fail_if(x: int, modulus: int) -> int:
    if x % modulus == 0:
        raise ValueError(f"{x} is a multiple of {modulus}")
    return x


def array(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.float32)


def grid(n: int) -> np.ndarray:
    """Give 0 to 3 rows of two numbers, for loops over arrays of more than one dimension."""
    return np.arange(2 * (n % 4), dtype=np.int64).reshape(n % 4, 2) + n


def columns(n: int) -> Any:
    """Give an Arrow table of 0 to 3 rows."""
    import pyarrow as pa

    numbers_of_rows = [n + row for row in range(n % 4)]
    return pa.table(
        {"k": pa.array(numbers_of_rows, pa.int64()), "name": pa.array(map(str, numbers_of_rows), pa.string())}
    )


def names(n: int) -> dict[str, int]:
    """Give a dictionary of 1 to 3 numbers."""
    return {"xyz"[k]: n + k for k in range(1 + n % 3)}


def span(n: int) -> range:
    """Give a range of 0 to 4 numbers."""
    return range(n, n + 2 * (n % 5), 2)


def breaking(n: int) -> Iterator[int]:
    """Give 0 to 4 numbers, and break after them unless n is a multiple of 3."""
    yield from numbers(n)
    if n % 3:
        raise ValueError(f"the stream of {n} broke")


def running(items: Iterable[int]) -> Iterator[int]:
    """Give the sums so far."""
    total_so_far = 0
    for item in items:
        total_so_far = (total_so_far + item) % 1_000_000
        yield total_so_far


def unsteady(x: int, times: int, attempts: int) -> int:
    """Give what is left of an operation that fails `times` times and is called `attempts` times at most."""
    if times >= attempts:
        raise ValueError(f"call {attempts} of {x} fails")
    return x
