"""From bins to a field: two passes of normalised Gaussian weights (Barnes), near data only.

The first pass, with a wide Gaussian, fills the gaps between far-off stations. The second adds, with a narrow one, what
the first has smoothed away at the cells that have data. Cells weigh by their counts. Distances are kilometres: a degree
of longitude shrinks with the cosine of latitude. Where the first pass finds no cell with data near enough, the field
is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from weather_day_operations.domain import EAST, NORTH, SOUTH, STEP, WEST

if TYPE_CHECKING:
    import numpy as np

_KM_PER_DEGREE = 111.2
_FEW = 0.05  # added to the weights of the second pass, so that it fades out away from data
_ROWS, _COLUMNS = NORTH - SOUTH, EAST - WEST


def analyse(grid: dict[str, Any], variable: str, radius: float, detail: float, reach: float) -> dict[str, Any]:
    """Make a smooth field of one variable.

    Args:
        grid: Merged bins, as `merge_bins` gives them.
        variable: Which of its variables.
        radius: Standard deviation of the wide Gaussian, km.
        detail: Standard deviation of the narrow Gaussian, km.
        reach: How far from a cell with data the field goes, km (about: where several are near, a little farther).

    Returns:
        `values` (float32, the variable's unit, NaN far from data), `latitude` (degrees north, rows, ascending) and
        `longitude` (degrees east, columns, ascending) of a grid of `domain.STEP` degrees over the domain; `cells`:
        latitude and longitude of the centres of the cells with data, an (n, 2) array; `reports`: as in `grid`.
    """
    import numpy as np

    sums, counts = _on_domain(grid["variables"][variable])
    present = (counts > 0).astype("f4")
    first_sums, first_counts = _weighted([sums, counts], radius, 1.0)
    missing = np.where(present, sums - counts * _mean(first_sums, first_counts), 0).astype("f4")
    wide_sums, wide_counts, presence = _weighted([sums, counts, present], radius, STEP)
    narrow_sums, narrow_counts = _weighted([missing, counts], detail, STEP)
    values = _mean(wide_sums, wide_counts) + narrow_sums / (narrow_counts + _FEW)
    near = presence >= np.exp(-0.5 * (reach / radius) ** 2)
    rows, columns = np.nonzero(present)
    return {
        "values": np.where(near, values, np.float32(np.nan)),
        "latitude": np.arange(SOUTH + STEP / 2, NORTH, STEP),
        "longitude": np.arange(WEST + STEP / 2, EAST, STEP),
        "cells": np.stack([rows + SOUTH + 0.5, columns + WEST + 0.5], axis=1),
        "reports": grid["reports"],
    }


def _on_domain(bins: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Spread sparse bins over the 1 degree cells of the domain, south to north; those outside are left out."""
    import numpy as np

    row, column = np.divmod(bins["cells"].astype(int), 360)
    row, column = row - 90 - SOUTH, column - 180 - WEST
    inside = (row >= 0) & (row < _ROWS) & (column >= 0) & (column < _COLUMNS)
    sums, counts = np.zeros((_ROWS, _COLUMNS), "f4"), np.zeros((_ROWS, _COLUMNS), "f4")
    sums[row[inside], column[inside]] = bins["sums"][inside]
    counts[row[inside], column[inside]] = bins["counts"][inside]
    return sums, counts


def _mean(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    import numpy as np

    return sums / np.maximum(counts, np.float32(1e-12))


def _weighted(layers: Sequence[np.ndarray], scale: float, step: float) -> np.ndarray:
    """Sum the cells of each layer, weighted by a Gaussian of their distance, on a grid of `step` degrees."""
    import numpy as np

    along_meridian, along_parallels = _weights(scale, step)
    # einsum, not matmul: BLAS would spread this little work over threads that fight the other sites for the cores.
    rows = np.einsum("roc,lrc->lro", along_parallels, np.stack(layers))
    return np.einsum("or,lrc->loc", along_meridian, rows)


@lru_cache(maxsize=8)
def _weights(scale: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (rows out, rows in), and for each row in (columns out, columns in)."""
    import numpy as np

    latitude, longitude = np.arange(SOUTH, NORTH) + 0.5, np.arange(WEST, EAST) + 0.5
    north = (np.arange(SOUTH + step / 2, NORTH, step)[:, None] - latitude) * _KM_PER_DEGREE
    east = (np.arange(WEST + step / 2, EAST, step)[:, None] - longitude) * _KM_PER_DEGREE
    shrunk = np.square(east / scale, dtype="f4") * np.square(np.cos(np.radians(latitude)), dtype="f4")[:, None, None]
    return np.exp(-0.5 * np.square(north / scale)).astype("f4"), np.exp(np.float32(-0.5) * shrunk)
