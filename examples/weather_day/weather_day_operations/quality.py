"""Quality control: drops what cannot be, keeps one report per station and hour, and counts what it dropped.

Three steps, in this order:

1. A report whose position is not on Earth (latitude outside -90..90, longitude outside -180..180, or missing) is
   dropped. It is not repaired: -790.2 may have been -79.02, but nobody can know.
2. A value outside `LIMITS` is dropped; the rest of its report stays.
3. Of several reports of one station and hour the most complete one stays (most measured values left after step 2),
   and among equally complete ones the first in the file.

The limits are gross: they drop what is impossible, not what is unlikely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weather_day_operations.reports import MEASURED

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

LIMITS: dict[str, tuple[float, float]] = {
    # Temperatures, wind: WMO, Guidelines on Quality Control Procedures for Data from Automatic Weather Stations
    # (I. Zahumensky, 2004), plausible value check.
    "air_temperature": (-80.0, 60.0),
    "dew_point_temperature": (-80.0, 35.0),
    "wind_speed": (0.0, 75.0),
    "wind_from_direction": (0.0, 360.0),
    # At sea level no station of the region has measured less than about 925 hPa outside hurricanes (Aleutians) nor
    # more than about 1080 hPa (Dawson, Yukon, February 1989). A lost hundred (915.3 for 1015.3) falls below.
    "air_pressure_at_mean_sea_level": (920.0, 1080.0),
    # Koschmieder's range in air without particles at sea level: 3.912 / 0.0132 per km = 296 km.
    "visibility": (0.0, 300.0),
}
"""Smallest and largest value that may be, in the units of the files (degC, m s-1, degree, hPa, km)."""


def check_reports(reports: pa.Table, site_name: str) -> dict[str, Any]:
    """Drop impossible positions and values and repeated reports.

    Args:
        reports: Reports with the columns of `reports.COLUMNS`; of one hour or of many.
        site_name: Goes into the counts.

    Returns:
        `reports`: what is left, with missing values as nulls; `counts`: `site`, `read` (rows), `bytes` (size of the
        reports as read), `kept` (rows) and `rejected`: reason to number. The reasons `position` and `repeated` are
        whole reports, those named after a quantity are single values; a reason that did not occur is left out.
    """
    import numpy as np
    import pyarrow as pa

    on_earth = _on_earth(reports)
    placed = reports.filter(pa.array(on_earth))
    values, rejected = _possible(placed)
    kept = _most_complete(placed, values)
    rejected = {"position": int(np.sum(~on_earth)), "repeated": placed.num_rows - len(kept), **rejected}
    columns = {name: placed[name].take(pa.array(kept)) for name in ("station", "latitude", "longitude")}
    columns |= {name: pa.array(column[kept], from_pandas=True) for name, column in values.items()}
    counts = {
        "site": site_name,
        "read": reports.num_rows,
        "bytes": reports.nbytes,
        "kept": len(kept),
        "rejected": {reason: number for reason, number in rejected.items() if number},
    }
    return {"reports": pa.table(columns), "counts": counts}


def _on_earth(reports: pa.Table) -> np.ndarray:
    import numpy as np

    latitude, longitude = reports["latitude"].to_numpy(), reports["longitude"].to_numpy()
    return (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)  # False for NaN too


def _possible(reports: pa.Table) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Give the measured columns with NaN for what is missing or impossible, and how many were impossible."""
    import numpy as np

    values, rejected = {}, {}
    for name in MEASURED:
        column = reports[name].to_numpy()
        low, high = LIMITS[name]
        impossible = (column < low) | (column > high)
        rejected[name] = int(np.sum(impossible))
        values[name] = np.where(impossible, np.float32(np.nan), column)
    return values, rejected


def _most_complete(reports: pa.Table, values: dict[str, np.ndarray]) -> np.ndarray:
    """Give the rows to keep, in the order of the file."""
    import numpy as np

    completeness = np.sum([~np.isnan(column) for column in values.values()], axis=0)
    station = reports["station"].combine_chunks().dictionary_encode().indices.to_numpy()
    time = reports["time"].to_numpy().view("int64")
    order = np.lexsort((np.arange(len(time)), -completeness, station, time))
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(station[order]) != 0) | (np.diff(time[order]) != 0)
    return np.sort(order[first])
