"""What the sites of the dfmesh benchmark run; the same work as in the other contestants."""

from __future__ import annotations

import arrays
import numpy as np
from numpy.typing import NDArray


def echo(value: int) -> int:
    """Give the value back."""
    return value


def numbers(count: int) -> list[int]:
    """The elements of the loop, as a list that exists in full before the loop starts."""
    return list(range(count))


def array(size: int, index: int) -> NDArray[np.float64]:
    """The array of that size and number, made once per process."""
    return arrays.float_array(size, index)


def probe(array: NDArray[np.float64]) -> float:
    """Look at every page of the array."""
    return arrays.probe(array)
