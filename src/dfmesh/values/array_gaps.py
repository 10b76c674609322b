"""Bytes of numpy arrays that are no part of any value, and are not sent.

`records[["age", "weight"]]` is a view of the records with all their other fields as gaps, so sending its memory would
send those, too. Gaps of aligned structures and of extended-precision numbers hold whatever was in memory before.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_EXTENDED = "gG"
_EXTENDED_BYTES = 10
"""Of an x87 number (IEEE 754 extended precision), whatever it is padded to."""


def without_gaps(array: NDArray[Any]) -> NDArray[Any]:
    """Give a C-contiguous array with zeros in its gaps: itself if it has none, else a copy.

    Args:
        array: Of any data type without objects.
    """
    dtype = array.dtype
    if dtype.names is None and dtype.char not in _EXTENDED:
        return array
    told = _told(dtype)
    if told.all() or not array.nbytes:
        return array
    copy = array.copy()
    copy.reshape(-1).view(np.uint8).reshape(-1, dtype.itemsize)[:, ~told] = 0
    return copy


@functools.lru_cache(maxsize=256)
def _told(dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    """Say of each byte of an element whether it is part of its value."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.tile(_told(base), math.prod(shape))
    told = np.ones(dtype.itemsize, bool)
    if dtype.fields is not None:
        told[:] = False
        for field, offset, *_ in dtype.fields.values():
            told[offset : offset + field.itemsize] |= _told(field)
    elif dtype.char in _EXTENDED and np.finfo(dtype).nmant == 63:
        size = np.dtype(np.longdouble).itemsize
        told.reshape(-1, size)[:, _EXTENDED_BYTES:] = False
    return told


def without_masked(array: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """Give the data of a masked array with zeros, or None where it holds objects, in place of what is masked."""
    data: NDArray[Any] = np.asarray(array.data)
    if array.mask is np.ma.nomask or (array.dtype.names is None and not array.mask.any()):
        return data
    if array.dtype.char == "O":
        data = data.copy()
        data[np.asarray(array.mask)] = None
        return data
    nothing: Any = np.zeros((), array.dtype)[()]
    return np.asarray(array.filled(nothing))
