"""pandas: frames and series, by way of Arrow. Imported when the first of them is sent or arrives."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from dfmesh.values.kinds import Unsendable

_TEXT = ("string", "empty")


def reduce_frame(frame: Any) -> Any:
    """Give the Arrow table of a frame."""
    for name in frame.columns[[str(kind) == "object" for kind in frame.dtypes]]:
        found = pd.api.types.infer_dtype(frame[name], skipna=True)
        if found not in _TEXT:
            raise Unsendable(f"column {name!r} of the DataFrame holds objects ({found}); give it a pandas dtype")
    try:
        return pa.Table.from_pandas(frame)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise Unsendable(f"this pandas object cannot be sent by way of Arrow: {error}") from error


def rebuild_frame(table: Any) -> Any:
    """Make a frame."""
    if not isinstance(table, pa.Table):
        raise TypeError("a DataFrame without a table")
    return table.to_pandas()


def reduce_series(series: Any) -> Any:
    """Give `[name, table of one column]`."""
    return [series.name, reduce_frame(series.to_frame("values"))]


def rebuild_series(payload: Any) -> Any:
    """Make a series."""
    name, table = payload
    return rebuild_frame(table)["values"].rename(name)
