"""The arrays that the contestants move, and the operation that the receiving site runs on them."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

SEED = 20_260_101
FLOATS_PER_PAGE = 512


@cache
def float_array(size: int, index: int) -> NDArray[np.float64]:
    """A float64 array of `size` bytes, made once per process so that making it is not measured.

    Each index has other contents, so that neither a processor's cache nor a system that remembers what it sent before
    makes a transfer look cheaper than it is.
    """
    return np.random.default_rng(SEED + index).random(size // 8)


def probe(array: NDArray[np.float64]) -> float:
    """Read one value of every memory page: shows that all of the array arrived, at little cost of its own."""
    return float(array[::FLOATS_PER_PAGE].sum())


def probes(size: int, count: int) -> list[float]:
    """What the probes of the first `count` arrays of a size give."""
    return [probe(float_array(size, index)) for index in range(count)]
