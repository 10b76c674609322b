"""What stands behind the operations: two services of each airport, and sums."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).parent
CLASSES = {"below 2 miles": (0, 2), "2 to 5 miles": (2, 5), "5 miles and more": (5, float("inf"))}

Delays = dict[str, list[int]]


def flights(file: str) -> Iterator[pa.Table]:
    """A generator makes a stream: a month is on its way while the next one is read."""
    for month in range(1, 13):
        yield pq.read_table(HERE / file, filters=[("month", "=", month)])


def weather(file: str) -> pa.Table:
    return pq.read_table(HERE / file)


def delays(flights: pa.Table, weather: pa.Table) -> Delays:
    departed = flights.filter(pc.is_valid(flights["dep_delay"]))
    joined = departed.join(weather, ["month", "day", "hour"], join_type="inner")
    found = {}
    for name, (least, beyond) in CLASSES.items():
        visible = joined["visib"]
        within = joined.filter(pc.and_(pc.greater_equal(visible, least), pc.less(visible, beyond)))
        found[name] = [within.num_rows, pc.sum(within["dep_delay"]).as_py() or 0]
    return found


def add(left: Delays, right: Delays) -> Delays:
    return {name: [sum(pair) for pair in zip(left[name], right[name], strict=True)] for name in left}


def means(delays: Delays) -> dict[str, float]:
    return {name: minutes / flights for name, (flights, minutes) in delays.items()}
