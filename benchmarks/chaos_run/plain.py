"""What the operations of the chaos federation do, in plain Python: written down again, not shared with the sites."""

from __future__ import annotations

import random
import zlib
from typing import Any

import numpy as np


def numbers(n: int, seed: int) -> list[int]:
    return random.Random(seed).sample(range(1_000_000), n)


def summed_up(items: list[int]) -> list[int]:
    mark = 0
    for item in items:
        mark = (mark * 31 + item) % 1_000_003
    return [len(items), sum(items), mark]


def described(x: Any) -> dict[Any, Any]:
    return {"x": x, "pair": (x, [x]), 3: b"three", "nothing": None, "half": 0.5}


def array(n: int, seed: int) -> np.ndarray:
    return np.arange(n, dtype=np.int64) * (seed % 97 + 1) + seed


def digest(values: np.ndarray) -> list[int]:
    return [len(values), int(values.sum()), zlib.crc32(np.ascontiguousarray(values).data)]


def canonical(value: Any) -> Any:
    """Give a form of a value in which equal means: same type, same content, same order."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, zlib.crc32(np.ascontiguousarray(value).data))
    if isinstance(value, dict):
        return ("dict", [(canonical(key), canonical(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [canonical(item) for item in value])
    return (type(value).__name__, value)
