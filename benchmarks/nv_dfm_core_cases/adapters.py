"""What the sites of the nv-dfm-core benchmark run; the same work as in the other contestants."""

from __future__ import annotations

import arrays
import numpy as np
from numpy.typing import NDArray


class Echo:
    """Give the value back."""

    def body(self, value: int) -> int:
        return value


class Array:
    """The array of that size and number, made once per process."""

    def body(self, size: int, index: int) -> NDArray[np.float64]:
        return arrays.float_array(size, index)


class Probe:
    """Look at every page of the array."""

    def body(self, array: NDArray[np.float64]) -> float:
        return arrays.probe(array)
