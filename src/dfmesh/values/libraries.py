"""Kinds of numpy, pyarrow, pandas and xarray. A library is imported when a value or arriving data needs it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from dfmesh.values.kinds import BY_TYPE, Kind, declare, drop_first


def _arrays() -> Any:
    from dfmesh.values import arrays

    return arrays


def _tables() -> Any:
    from dfmesh.values import tables

    return tables


def _frames() -> Any:
    from dfmesh.values import frames

    return frames


def _grids() -> Any:
    from dfmesh.values import grids

    return grids


ARRAY = declare(
    Kind(40, "ndarray", lambda v: _arrays().reduce_array(v), lambda p: _arrays().rebuild_array(p), drop_first)
)
SCALAR = declare(Kind(42, "numpy-scalar", lambda v: _arrays().reduce_scalar(v), lambda p: _arrays().rebuild_scalar(p)))
DTYPE = declare(Kind(43, "dtype", lambda v: _arrays().reduce_dtype(v), lambda p: _arrays().rebuild_dtype(p)))
MASKED = declare(Kind(44, "masked-array", lambda v: _arrays().reduce_masked(v), lambda p: _arrays().rebuild_masked(p)))
NUMPY_TEXT = declare(Kind(45, "numpy-text", lambda v: _arrays().reduce_text(v), lambda p: _arrays().rebuild_text(p)))

TABLE = declare(Kind(50, "arrow-table", lambda v: _tables().reduce_table(v), lambda p: _tables().rebuild_table(p)))
BATCH = declare(Kind(51, "arrow-batch", lambda v: _tables().reduce_batch(v), lambda p: _tables().rebuild_batch(p)))
COLUMN = declare(Kind(52, "arrow-array", lambda v: _tables().reduce_array(v), lambda p: _tables().rebuild_array(p)))
CHUNKED = declare(
    Kind(53, "arrow-chunked", lambda v: _tables().reduce_chunked(v), lambda p: _tables().rebuild_chunked(p))
)
CELL = declare(Kind(54, "arrow-scalar", lambda v: _tables().reduce_scalar(v), lambda p: _tables().rebuild_scalar(p)))
SCHEMA = declare(Kind(55, "arrow-schema", lambda v: _tables().reduce_schema(v), lambda p: _tables().rebuild_schema(p)))
FIELD = declare(Kind(56, "arrow-field", lambda v: _tables().reduce_field(v), lambda p: _tables().rebuild_field(p)))
ARROW_TYPE = declare(Kind(57, "arrow-type", lambda v: _tables().reduce_type(v), lambda p: _tables().rebuild_type(p)))

FRAME = declare(Kind(60, "data-frame", lambda v: _frames().reduce_frame(v), lambda p: _frames().rebuild_frame(p)))
SERIES = declare(Kind(61, "series", lambda v: _frames().reduce_series(v), lambda p: _frames().rebuild_series(p)))

DATA_ARRAY = declare(Kind(65, "xarray-array", lambda v: _grids().reduce_array(v), lambda p: _grids().rebuild_array(p)))
DATASET = declare(
    Kind(66, "xarray-dataset", lambda v: _grids().reduce_dataset(v), lambda p: _grids().rebuild_dataset(p))
)


def _numpy_kind(numpy: ModuleType, cls: type) -> Kind | None:
    if cls in (numpy.ndarray, numpy.memmap):
        return ARRAY
    if cls in (numpy.ma.MaskedArray, type(numpy.ma.masked)):
        return MASKED
    if cls in (numpy.str_, numpy.bytes_):
        return NUMPY_TEXT
    if issubclass(cls, numpy.dtype):
        return DTYPE
    return SCALAR if issubclass(cls, numpy.generic) else None


def _arrow_kind(pyarrow: ModuleType, cls: type) -> Kind | None:
    exact = {pyarrow.Table: TABLE, pyarrow.RecordBatch: BATCH, pyarrow.ChunkedArray: CHUNKED}
    exact |= {pyarrow.Schema: SCHEMA, pyarrow.Field: FIELD}
    if cls in exact:
        return exact[cls]
    families = ((pyarrow.Array, COLUMN), (pyarrow.Scalar, CELL), (pyarrow.DataType, ARROW_TYPE))
    return next((kind for base, kind in families if issubclass(cls, base)), None)


def _pandas_kind(pandas: ModuleType, cls: type) -> Kind | None:
    return {pandas.DataFrame: FRAME, pandas.Series: SERIES}.get(cls)


def _xarray_kind(xarray: ModuleType, cls: type) -> Kind | None:
    return {xarray.DataArray: DATA_ARRAY, xarray.Dataset: DATASET}.get(cls)


_FINDERS = {"numpy": _numpy_kind, "pyarrow": _arrow_kind, "pandas": _pandas_kind, "xarray": _xarray_kind}


def find_kind(cls: type) -> Kind | None:
    """Find the kind of a class of a library, and remember it. A library that is not loaded has no values."""
    top = str(cls.__module__).partition(".")[0]
    finder, library = _FINDERS.get(top), sys.modules.get(top)
    if finder is None or library is None:
        return None
    kind = finder(library, cls)
    if kind is not None:
        BY_TYPE[cls] = kind
    return kind
