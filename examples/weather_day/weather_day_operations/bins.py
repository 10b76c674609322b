"""Sums and counts on the cells of a 1 degree grid: all that leaves a national service.

Cell `c` covers latitudes from `c // 360 - 90` and longitudes from `c % 360 - 180`, one degree each: 64,800 cells, so
a cell number fits 16 bits. Only cells with values are kept. On its way between sites a variable is one `bytes`, see
`pack`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

ROWS, COLUMNS = 180, 360
VARIABLES = ("air_temperature", "air_pressure_at_mean_sea_level")

_RECORD = [("step", "<u2"), ("count", "<u2"), ("sum", "<f4")]
_RECORD_SIZE = 8


def bin_reports(reports: pa.Table, variables: Sequence[str] = VARIABLES) -> dict[str, Any]:
    """Add up the values of each cell.

    Args:
        reports: Checked reports: `latitude` and `longitude` in degrees, and the variables.
        variables: Which columns to add up; nulls are left out.

    Returns:
        `reports`: number of reports; `variables`: name to packed bins.
    """
    cells = cell_numbers(reports["latitude"].to_numpy(), reports["longitude"].to_numpy())
    packed = {name: pack(*add_up(cells, reports[name].to_numpy())) for name in variables}
    return {"reports": reports.num_rows, "variables": packed}


def merge_bins(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Add up the bins of several sites.

    Args:
        parts: What `bin_reports` gave, at least one; all with the same variables.

    Returns:
        `reports`: number of reports; `variables`: name to `cells` (uint16, ascending), `counts` (int64) and `sums`
        (float64, in the variable's unit), one element per cell that has values.
    """
    names = list(parts[0]["variables"])
    merged = {name: _merge([unpack(part["variables"][name]) for part in parts]) for name in names}
    return {"reports": sum(part["reports"] for part in parts), "variables": merged}


def cell_numbers(latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """Number the cells of positions on Earth. The north pole and 180 degrees east fall into the last row and column."""
    import numpy as np

    row = np.minimum(np.floor(latitude.astype(float) + 90), ROWS - 1)
    column = np.minimum(np.floor(longitude.astype(float) + 180), COLUMNS - 1)
    return (row * COLUMNS + column).astype("u2")


def add_up(cells: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the cells that have values, ascending, with counts and sums."""
    import numpy as np

    there = np.isfinite(values)
    used, place = np.unique(cells[there], return_inverse=True)
    counts = np.bincount(place, minlength=len(used))
    return used, counts, np.bincount(place, weights=values[there], minlength=len(used))


def pack(cells: np.ndarray, counts: np.ndarray, sums: np.ndarray) -> bytes:
    """Pack bins for the way to another site: about 3.5 bytes a cell.

    A cell is 8 bytes: distance from the cell before it and count (16 bits each), sum (32 bit float, so good to 6e-8).
    All first bytes stand together, then all second ones, and so on: those are alike, and deflate well.

    Raises:
        ValueError: If a cell has more than 65,535 values.
    """
    import numpy as np

    if counts.max(initial=0) > np.iinfo("u2").max:
        raise ValueError(f"a cell has {counts.max()} values; packed bins hold at most 65,535 per cell")
    records = np.empty(len(cells), _RECORD)
    records["step"] = np.diff(cells, prepend=cells.dtype.type(0))
    records["count"] = counts
    records["sum"] = sums
    return zlib.compress(records.view("u1").reshape(-1, _RECORD_SIZE).T.tobytes(), 9)


def unpack(packed: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Undo `pack`: cells (uint16), counts (int64), sums (float64)."""
    import numpy as np

    planes = np.frombuffer(zlib.decompress(packed), "u1").reshape(_RECORD_SIZE, -1)
    records = np.ascontiguousarray(planes.T).view(_RECORD).reshape(-1)
    return np.cumsum(records["step"], dtype="u2"), records["count"].astype("i8"), records["sum"].astype("f8")


def _merge(bins: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    import numpy as np

    cells, counts, sums = (np.concatenate(column) for column in zip(*bins, strict=True))
    used, place = np.unique(cells, return_inverse=True)
    return {
        "cells": used,
        "counts": np.bincount(place, weights=counts, minlength=len(used)).astype("i8"),
        "sums": np.bincount(place, weights=sums, minlength=len(used)),
    }
