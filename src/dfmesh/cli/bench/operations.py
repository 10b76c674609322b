"""The operations that every system under measurement runs; numpy is loaded by those that need it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

SEED = 20_260_101
FLOATS_PER_PAGE = 512


def echo(value: int) -> int:
    """Give the value back."""
    return value


def numbers(count: int) -> list[int]:
    """Make the elements of a loop, as a list that exists in full before the loop starts."""
    return list(range(count))


@cache
def array(size: int, index: int) -> NDArray[np.float64]:
    """Give a float64 array of `size` bytes, made once per process so that making it is not measured.

    Each index has other contents, so that neither a processor's cache nor a system that remembers what it sent before
    makes a transfer look cheaper than it is. It is read-only, as who keeps what it returns does well to say: else
    dfmesh takes a copy of its own.
    """
    import numpy as np

    made = np.random.default_rng(SEED + index).random(size // 8)
    made.flags.writeable = False
    return made


def fresh_array(size: int) -> NDArray[np.float64]:
    """Make a float64 array of `size` bytes that nothing keeps."""
    import numpy as np

    return np.ones(size // 8)


def probe(array: NDArray[np.float64]) -> float:
    """Read one value of every memory page: shows that all of the array arrived, at little cost of its own."""
    return float(array[::FLOATS_PER_PAGE].sum())


def probes(size: int, count: int) -> list[float]:
    """Say what the probes of the first `count` arrays of a size give."""
    return [probe(array(size, index)) for index in range(count)]


def work(iterations: int, inputs: Sequence[int]) -> int:
    """Burn a known number of turns of a loop, and make something of all inputs.

    Args:
        iterations: Turns.
        inputs: What the tasks gave on which this one depends.
    """
    value = sum(inputs) + 1
    for _ in range(iterations):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return value
