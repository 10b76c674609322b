"""The bins of the weather day from the three files pooled in one process: pyarrow, numpy, and nothing of the example.

The rules of quality control are written down here a second time, row by row, on purpose.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Cell = tuple[int, int]
Bins = dict[Cell, tuple[int, float]]

VARIABLES = ("air_temperature", "air_pressure_at_mean_sea_level")
HOURS = [datetime(1995, 3, 18) + timedelta(hours=hour) for hour in range(24)]

RANGES = {
    "air_temperature": (-80, 60),
    "dew_point_temperature": (-80, 35),
    "air_pressure_at_mean_sea_level": (920, 1080),
    "wind_speed": (0, 75),
    "wind_from_direction": (0, 360),
    "visibility": (0, 300),
}


def pooled_rows(directory: Path) -> list[dict[str, Any]]:
    """All reports of all services, in the order of the files."""
    return pa.concat_tables([pq.read_table(directory / f"{site}.parquet") for site in ("us", "ca", "mx")]).to_pylist()


def clean(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Reports that stay, with impossible values set to None, and how many were dropped why."""
    dropped: dict[str, int] = defaultdict(int)
    best: dict[tuple[datetime, str], tuple[int, dict[str, Any]]] = {}
    for row in rows:
        if not (-90 <= row["latitude"] <= 90 and -180 <= row["longitude"] <= 180):
            dropped["position"] += 1
            continue
        checked = dict(row)
        for name, (low, high) in RANGES.items():
            if row[name] is not None and not low <= row[name] <= high:
                dropped[name] += 1
                checked[name] = None
        complete = sum(checked[name] is not None for name in RANGES)
        key = (row["time"], row["station"])
        if key in best:
            dropped["repeated"] += 1
        if key not in best or complete > best[key][0]:
            best[key] = (complete, checked)
    return [row for _, row in best.values()], dict(dropped)


def bins_by_hour(rows: list[dict[str, Any]], variable: str) -> dict[datetime, Bins]:
    """For each hour: south-west corner of a 1 degree cell to count and exact sum."""
    values: dict[tuple[datetime, Cell], list[float]] = defaultdict(list)
    for row in rows:
        if row[variable] is not None:
            cell = (int(np.floor(row["latitude"])), int(np.floor(row["longitude"])))
            values[row["time"], cell].append(row[variable])
    hours: dict[datetime, Bins] = defaultdict(dict)
    for (hour, cell), numbers in values.items():
        hours[hour][cell] = (len(numbers), math.fsum(numbers))
    return hours


def corners(cells: np.ndarray) -> Iterator[Cell]:
    """South-west corners of numbered cells: 360 to a row, from 90 south and 180 west."""
    for number in cells.tolist():
        yield number // 360 - 90, number % 360 - 180


def assert_same_bins(grids: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Compare merged bins, hour by hour, with those of the pooled rows: counts exactly, sums to 1e-5."""
    kept, _ = clean(rows)
    for variable in VARIABLES:
        wanted = bins_by_hour(kept, variable)
        for hour, grid in zip(HOURS, grids, strict=True):
            found = grid["variables"][variable]
            cells = list(corners(found["cells"]))
            assert sorted(cells) == sorted(wanted[hour])
            assert found["counts"].tolist() == [wanted[hour][cell][0] for cell in cells]
            np.testing.assert_allclose(found["sums"], [wanted[hour][cell][1] for cell in cells], rtol=1e-5, atol=1e-5)
