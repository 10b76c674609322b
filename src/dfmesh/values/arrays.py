"""numpy: arrays, scalars, data types. Imported when the first of them is sent or arrives.

Arrays that arrive are read-only views of the buffer they came in.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np

from dfmesh.values.array_gaps import without_gaps, without_masked
from dfmesh.values.kinds import Blob, Unsendable

_SIMPLE = re.compile(r"[<>|][biufcSUVmM]\d+(\[\d*[A-Za-zμ]+\])?")
_FLAG = "aligned"


# Data types: text such as `<f8` or `<M8[ns]`, `[base, shape]` for a subarray, a dictionary for a structure.


def reduce_dtype(dtype: np.dtype[Any]) -> Any:
    """Describe a data type by plain values."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [reduce_dtype(base), list(shape)]
    if dtype.names is not None and dtype.fields is not None:
        fields = [dtype.fields[name] for name in dtype.names]
        return {
            "names": list(dtype.names),
            "formats": [reduce_dtype(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "titles": [field[2] if len(field) > 2 else None for field in fields],
            "itemsize": dtype.itemsize,
            _FLAG: dtype.isalignedstruct,
        }
    if dtype.char == "O":
        return "O"
    text = dtype.str
    if not _SIMPLE.fullmatch(text) or np.dtype(text) != dtype:
        raise Unsendable(f"numpy data type {dtype!r} cannot be sent; convert it with .astype(...)")
    return text


def rebuild_dtype(payload: Any) -> np.dtype[Any]:
    """Make a data type from its description."""
    if type(payload) is str:
        if payload != "O" and not _SIMPLE.fullmatch(payload):
            raise ValueError(f"{payload!r} is not a data type")
        return np.dtype(payload)
    if type(payload) is list:
        base, shape = payload
        return np.dtype((rebuild_dtype(base), tuple(_checked_shape(shape))))
    fields: Any = dict(payload)
    aligned = bool(fields.pop(_FLAG))
    fields["formats"] = [rebuild_dtype(part) for part in fields["formats"]]
    if not any(fields["titles"]):
        del fields["titles"]
    structure: np.dtype[Any] = np.dtype(fields, align=aligned)
    return structure


def _checked_shape(shape: Any) -> list[int]:
    if type(shape) is not list or len(shape) > 64 or any(type(n) is not int or not 0 <= n < 1 << 63 for n in shape):
        raise ValueError(f"{shape!r} is not a shape")
    return shape


# Arrays


def reduce_array(array: np.ndarray[Any, Any]) -> Any:
    """Give `[dtype, shape, axes, bytes]`; `axes` is the order in memory, None if that is the order of the axes.

    An array of objects has a list in place of the bytes, so that what is in it is checked like everything else.
    """
    shape = list(array.shape)
    if array.dtype.hasobject:
        if array.dtype.char != "O":
            raise Unsendable(f"numpy data type {array.dtype!r} cannot be sent; convert it with .astype(...)")
        return ["O", shape, None, list(array.flat)]
    dtype = reduce_dtype(array.dtype)
    if array.flags.c_contiguous:
        return [dtype, shape, None, Blob(bytes_of(without_gaps(array)))]
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    in_memory_order = array.transpose(order)
    if in_memory_order.flags.c_contiguous:
        return [dtype, shape, order, Blob(bytes_of(without_gaps(in_memory_order)))]
    return [dtype, shape, None, Blob(bytes_of(without_gaps(np.ascontiguousarray(array))))]


def bytes_of(array: np.ndarray[Any, Any]) -> bytes | memoryview:
    """View the memory of a C-contiguous array as bytes."""
    flat: Any = array.reshape(-1)
    return memoryview(flat.view(np.uint8)) if array.nbytes else b""


def rebuild_array(payload: Any) -> np.ndarray[Any, Any]:
    """View bytes as a read-only array."""
    described, shape, axes, data = payload
    _checked_shape(shape)
    if described == "O":
        return _rebuild_objects(shape, data)
    dtype = rebuild_dtype(described)
    size = memoryview(data).nbytes
    if dtype.hasobject or dtype.subdtype is not None or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{size} bytes are not an array of shape {shape} of {dtype}")
    if axes is not None and sorted(axes) != list(range(len(shape))):
        raise ValueError(f"{axes!r} is not an order of axes")
    in_memory = shape if axes is None else [shape[axis] for axis in axes]
    array: np.ndarray[Any, Any] = np.ndarray(tuple(in_memory), dtype, buffer=data)
    _check_text(array)
    array.flags.writeable = False
    return array if axes is None else array.transpose(np.argsort(axes))


def _check_text(array: np.ndarray[Any, Any]) -> None:
    """Refuse text of numbers that are no characters: numpy raises only when it is read, wherever that is."""
    if array.dtype.names is not None:
        for name in array.dtype.names:
            _check_text(array[name])
    elif array.dtype.kind == "U" and array.nbytes:
        codes = np.ascontiguousarray(array).reshape(-1).view(f"{array.dtype.str[0]}u4")
        if codes.max() > sys.maxunicode:
            raise ValueError(f"{codes.max():#x} is no character")


def _rebuild_objects(shape: list[int], items: Any) -> np.ndarray[Any, Any]:
    if type(items) is not list or math.prod(shape) != len(items):
        raise ValueError(f"the items are not an array of shape {shape}")
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


# Masked arrays


def reduce_masked(array: np.ma.MaskedArray[Any, Any]) -> Any:
    """Give `[data that is not masked, mask, fill value, whether the mask is hard]`; None for the constant `masked`."""
    if array is np.ma.masked:
        return None
    mask = None if array.mask is np.ma.nomask else np.asarray(array.mask)
    return [without_masked(array), mask, np.asarray(array.fill_value), bool(array.hardmask)]


def rebuild_masked(payload: Any) -> Any:
    """Make a masked array; its data is a read-only view, its mask a copy."""
    if payload is None:
        return np.ma.masked
    data, mask, fill_value, hard = payload
    if not isinstance(data, np.ndarray) or np.shape(fill_value) != ():
        raise TypeError("a masked array without data or fill value")
    array: np.ma.MaskedArray[Any, Any] = np.ma.MaskedArray(
        data, mask=np.ma.nomask if mask is None else mask, hard_mask=bool(hard), copy=False
    )
    array.fill_value = fill_value[()]
    return array


# Scalars. Text has its own kind, because an array drops the zeros at the end of text.


def reduce_scalar(scalar: np.generic) -> Any:
    """Give `[dtype, bytes]`."""
    dtype = scalar.dtype
    if dtype.hasobject:
        raise Unsendable(f"a numpy scalar of {dtype!r} cannot be sent; send its fields")
    return [reduce_dtype(dtype), without_gaps(np.asarray(scalar)).tobytes()]


def rebuild_scalar(payload: Any) -> Any:
    """Make a scalar of the same numpy type."""
    dtype, data = payload
    array = rebuild_array([dtype, [], None, bytes(memoryview(data))])
    if array.dtype.hasobject:
        raise ValueError("a scalar of objects")
    return array[()]


def reduce_text(text: np.str_ | np.bytes_) -> Any:
    """Give the text or bytes as a plain value."""
    # numpy's own conversions drop the zeros, too.
    return str.__str__(text) if isinstance(text, str) else bytes.__getitem__(text, slice(None))


def rebuild_text(payload: Any) -> Any:
    """Make numpy text or bytes."""
    if type(payload) not in (str, bytes):
        raise TypeError("neither text nor bytes")
    return np.str_(payload) if type(payload) is str else np.bytes_(payload)
