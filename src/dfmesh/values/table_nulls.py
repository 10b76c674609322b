"""What Arrow arrays hold in memory but do not show, and is not sent: values under nulls, and rows outside of a slice.

`pa.array(values, mask=mask)`, and pandas' nullable columns, only mark a value as null; it stays where it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from dfmesh.values.kinds import Unsendable

_PLAIN_WIDTHS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
_REAL = {16: np.float16, 32: np.float32, 64: np.float64}


def without_hidden(array: Any) -> Any:
    """Give an equal array of which every byte that is sent is part of what it shows.

    Args:
        array: A `pyarrow.Array`.

    Returns:
        Itself, if it is flat and hides nothing, else a copy.

    Raises:
        Unsendable: Arrow cannot make such a copy of this type.
    """
    if _is_fixed(array.type):
        return array if not array.null_count or _is_clean(array) else _taken(array)
    if _is_text(array.type):
        return _taken(array) if array.null_count else array
    return _rebuilt(array)


def _is_fixed(kind: Any) -> bool:
    return any(test(kind) for test in (types.is_primitive, types.is_decimal, types.is_fixed_size_binary))


def _is_text(kind: Any) -> bool:
    tests = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    return any(test(kind) for test in tests)


def _taken(array: Any) -> Any:
    """Copy what is not null; for a null, Arrow writes zeros, and nothing in what is nested."""
    positions = np.arange(len(array))
    if array.null_count:
        return pc.take(array, pa.array(positions, mask=np.asarray(array.is_null())))
    return pc.take(array, pa.array(positions))


def _is_clean(array: Any) -> bool:
    """Whether a flat array of a fixed width has nothing but zeros (or no numbers) under its nulls."""
    width = array.type.bit_width
    data = array.buffers()[1]
    if width not in _PLAIN_WIDTHS or data is None:
        return False
    real = types.is_floating(array.type)
    kind: Any = _REAL[width] if real else _PLAIN_WIDTHS[width]
    items: NDArray[Any] = np.frombuffer(data, kind, len(array), array.offset * (width // 8))
    hidden = items[np.asarray(array.is_null())]
    return not (hidden[~np.isnan(hidden)] if real else hidden).any()


def _rebuilt(array: Any) -> Any:
    """Copy an array that is not flat."""
    kind = array.type
    try:
        if isinstance(array, pa.ExtensionArray):
            return pa.ExtensionArray.from_storage(kind, without_hidden(array.storage))
        if types.is_string_view(kind):
            return _taken(array.cast(pa.large_string())).cast(kind)
        if types.is_binary_view(kind):
            return _taken(array.cast(pa.large_binary())).cast(kind)
        if types.is_run_end_encoded(kind):
            decoded = without_hidden(pc.run_end_decode(array))
            return pc.run_end_encode(decoded, run_end_type=kind.run_end_type)
        if types.is_dictionary(kind):
            indices, words = without_hidden(array.indices), without_hidden(array.dictionary)
            return pa.DictionaryArray.from_arrays(indices, words, ordered=kind.ordered)
        if types.is_null(kind):
            return array
        if types.is_union(kind) and kind.mode == "sparse":
            return _chosen(array)
        if _can_take(kind):
            return _taken(array)
        copy = pa.array(array.to_pylist(), kind)
    except (pa.ArrowException, NotImplementedError, ValueError, TypeError, OverflowError) as error:
        raise Unsendable(f"this Arrow array of {kind} cannot be sent: {error}") from error
    if not copy.equals(array):
        raise Unsendable(f"an Arrow array of {kind} cannot be sent; use a simpler type")
    return copy


def _chosen(array: Any) -> Any:
    """Copy of each child of a sparse union the items that it gives."""
    kind, codes = array.type, np.asarray(array.type_codes)
    positions = np.arange(len(array))
    children = [
        without_hidden(pc.take(array.field(number), pa.array(positions, mask=codes != code)))
        for number, code in enumerate(kind.type_codes)
    ]
    names = [kind.field(number).name for number in range(kind.num_fields)]
    return pa.UnionArray.from_sparse(pa.array(codes), children, names, kind.type_codes).cast(kind)


def _can_take(kind: Any) -> bool:
    """Whether Arrow makes a copy of elements of a type, with nothing else in it."""
    if types.is_list_view(kind) or types.is_large_list_view(kind) or types.is_run_end_encoded(kind):
        return False
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return False
    if types.is_union(kind) and kind.mode == "sparse":
        return False
    return all(_can_take(inner) for inner in _inner_types(kind))


def _inner_types(kind: Any) -> list[Any]:
    if types.is_map(kind):
        return [kind.key_type, kind.item_type]
    if types.is_dictionary(kind) or hasattr(kind, "value_field"):
        return [kind.value_type]
    return [kind.field(number).type for number in range(kind.num_fields)] if kind.num_fields else []
