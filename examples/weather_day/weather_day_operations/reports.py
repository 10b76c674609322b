"""Where reports come from: the hours of a day, and the reports of one hour from a site's own file."""

from __future__ import annotations

import threading
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

MEASURED = (
    "air_temperature",
    "dew_point_temperature",
    "air_pressure_at_mean_sea_level",
    "wind_speed",
    "wind_from_direction",
    "visibility",
)
"""The measured quantities of a report; their units are in the metadata of the file's fields."""

COLUMNS = ("time", "station", "latitude", "longitude", *MEASURED)
"""What is read of a file; the rest of it (the elevation) nobody needs."""

_FEDERATION = Path(__file__).resolve().parent.parent


def hours_of_day(day: str | date) -> list[datetime]:
    """List the 24 hours of a day.

    Args:
        day: The day in UTC, such as `1995-03-18`.

    Returns:
        Midnight to 23:00, UTC, without a time zone, as the times in the files.
    """
    start = datetime.combine(date.fromisoformat(day) if isinstance(day, str) else day, datetime.min.time())
    return [start + timedelta(hours=hour) for hour in range(24)]


class ReadReports:
    """Reads the reports of one hour. The file is opened once per site, however many hours and jobs ask."""

    def __init__(self) -> None:
        self._tables: dict[str, pa.Table] = {}
        self._reading = threading.Lock()

    def body(self, hour: datetime, file: str) -> pa.Table:
        """Give the reports of an hour as they are in the file, faults included.

        Args:
            hour: Full hour, UTC.
            file: The site's Parquet file, relative to the federation file.

        Returns:
            One row per report with the columns `COLUMNS`.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self._table(file)
        wanted = pa.scalar(hour.replace(tzinfo=None), table.schema.field("time").type)
        return table.filter(pc.equal(table["time"], wanted))

    def _table(self, file: str) -> pa.Table:
        import pyarrow.parquet as pq

        with self._reading:  # several hours may ask at once, from several threads
            if file not in self._tables:
                self._tables[file] = pq.read_table(_FEDERATION / file, columns=list(COLUMNS)).combine_chunks()
            return self._tables[file]
