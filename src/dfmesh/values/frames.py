"""pandas: frames and series, by way of Arrow. Imported when the first of them is sent or arrives.

Arrow has only text for the names of columns and of levels of an index. Others go beside the table, and so does an index
of columns that is more than names, and which kind of text a column has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dfmesh.values.frame_texts import kind_of_text, restored_text
from dfmesh.values.kinds import Unsendable

_TEXTS = "texts"
_INDEX = -1
"""Stands for the index among the positions of columns."""

_USUAL = pd.Index(["a"]).dtype


def reduce_frame(frame: Any) -> Any:
    """Give the Arrow table of a frame, or what the table cannot say with it.

    That is `[table, columns, names of the index]`; `[None, columns, index]` for a frame without columns, since its rows
    are in no column. Where a column has a kind of text that Arrow has not, it is `["texts", kinds, one of these]`.
    """
    if not frame.shape[1]:
        return [None, _reduce_index(frame.columns), _reduce_index(frame.index)]
    texts = list(_texts(frame))
    return [_TEXTS, texts, _reduce_named(frame)] if texts else _reduce_named(frame)


def _texts(frame: Any) -> Iterator[list[Any]]:
    """Iterate over `[position, kind of text, what is missing]` of columns and index."""
    for position, dtype in enumerate(frame.dtypes):
        if not isinstance(dtype, np.dtype) or dtype.kind == "O":
            kind = kind_of_text(frame.iloc[:, position], f"column {frame.columns[position]!r} of the DataFrame")
            if kind is not None:
                yield [position, *kind]
    if type(frame.index) is pd.Index:
        try:
            kind = kind_of_text(frame.index, "the index of the DataFrame")
        except Unsendable as error:
            raise Unsendable(f"this pandas object cannot be sent: {error}") from None
        if kind is not None:
            yield [_INDEX, *kind]


def _reduce_named(frame: Any) -> Any:
    names = list(frame.index.names)
    if _is_usual(frame.columns) and all(map(_is_text, names)):
        return _table_of(frame)
    bare = frame.copy(deep=False)
    bare.columns = pd.Index([str(position) for position in range(frame.shape[1])], dtype=_USUAL)
    bare.index = frame.index.set_names([None] * len(names))
    return [_table_of(bare), _reduce_index(frame.columns), names]


def _is_usual(columns: Any) -> bool:
    """Say whether Arrow keeps an index of columns: it has different names, all of them text."""
    labels = list(columns) if type(columns) is pd.Index and columns.dtype == _USUAL else []
    return bool(labels) and {*map(type, labels)} == {str} and columns.is_unique and _is_text(columns.name)


def _is_text(name: Any) -> bool:
    return name is None or type(name) is str


def _table_of(frame: Any) -> Any:
    try:
        return pa.Table.from_pandas(frame)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        raise Unsendable(f"this pandas object cannot be sent by way of Arrow: {error}") from error


def rebuild_frame(payload: Any) -> Any:
    """Make a frame."""
    if isinstance(payload, pa.Table):
        return payload.to_pandas()
    if payload[0] == _TEXTS:
        return _with_texts(rebuild_frame(payload[2]), payload[1])
    table, columns, index = payload
    if table is None:
        none, rows = _rebuild_index(columns), _rebuild_index(index)
        if len(none):
            raise ValueError("columns without data")
        return pd.DataFrame(index=rows, columns=none)
    if not isinstance(table, pa.Table):
        raise TypeError("a DataFrame without a table")
    frame = table.to_pandas()
    frame.columns = _rebuild_index(columns)
    frame.index = frame.index.set_names(index)
    return frame


def _with_texts(frame: Any, texts: list[Any]) -> Any:
    """Give a frame back the kinds of text that a table has not."""
    for position, kind, missing in texts:
        if position == _INDEX:
            made = restored_text(frame.index, kind, missing)
            frame.index = pd.Index(made, dtype=made.dtype, name=frame.index.name, tupleize_cols=False)
        else:
            made = restored_text(frame.iloc[:, position], kind, missing)
            frame.isetitem(position, pd.Series(made, index=frame.index, dtype=made.dtype))
    return frame


# An index: `[kind, names, what there is of it]`


def _reduce_index(index: Any) -> list[Any]:
    names = list(index.names)
    if isinstance(index, pd.RangeIndex):
        return ["range", names, [index.start, index.stop, index.step]]
    if isinstance(index, pd.MultiIndex):
        codes = [[int(code) for code in level] for level in index.codes]
        return ["levels", names, [[_reduce_index(level) for level in index.levels], codes]]
    if type(index) is pd.Index and (index.dtype == object or index.dtype == _USUAL):
        return ["labels", names, [str(index.dtype), list(index)]]
    return ["table", names, _table_of(pd.DataFrame(index=index.rename(None)))]


def _rebuild_index(payload: Any) -> Any:
    kind, names, content = payload
    index: Any
    match kind:
        case "range":
            index = pd.RangeIndex(*content)
        case "levels":
            levels, codes = content
            index = pd.MultiIndex([_rebuild_index(level) for level in levels], codes)
        case "labels":
            dtype, labels = content
            if dtype not in ("object", "str", "string"):
                raise ValueError(f"{dtype!r} is no data type of labels")
            index = pd.Index(labels, dtype=dtype, tupleize_cols=False)
        case "table" if isinstance(content, pa.Table):
            index = content.to_pandas().index
        case _:
            raise TypeError(f"{kind!r} is no kind of index")
    return index.set_names(names)


def reduce_series(series: Any) -> Any:
    """Give `[name, frame of one column]`."""
    return [series.name, reduce_frame(series.to_frame("values"))]


def rebuild_series(payload: Any) -> Any:
    """Make a series."""
    name, frame = payload
    return rebuild_frame(frame)["values"].rename(name)
