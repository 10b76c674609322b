"""Large arrays of numbers, the kind of value whose transfer is to take no longer than a copy.

How one is described depends on its shape and data type only, and how a list of them is on those of its arrays. So the
general codec works that out once, and it is remembered here for the values that follow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from dfmesh.values.kinds import flat_view
from dfmesh.values.plain import LARGE

_NUMBERS = "biufc"
_PADDED = "gG"
"""Extended precision, of which not all bytes are part of the value (`array_gaps`)."""

_BUFFERS = frozenset({bytes, bytearray, memoryview})
_MOST_REMEMBERED = 256
_MOST_TOGETHER = 64
_LONGEST_HEAD = 4096

_heads: dict[Any, bytes] = {}
_described: dict[bytes, tuple[type, list[tuple[Any, tuple[int, ...], int]]]] = {}


def is_large_array(value: Any) -> bool:
    """Say whether a value is an array of numbers that would arrive as a view of its own memory, and is nothing else."""
    kind = type(value)
    if kind.__name__ != "ndarray":
        return False
    numpy = sys.modules.get("numpy")
    if numpy is None or kind is not numpy.ndarray or value.nbytes < LARGE or not value.flags.c_contiguous:
        return False
    dtype = value.dtype
    plain = dtype.kind in _NUMBERS and dtype.char not in _PADDED
    return plain and dtype.isbuiltin == 1 and dtype.metadata is None


def large_arrays_in(value: Any) -> list[Any]:
    """Give the parts of a value that is a large array, or a short list of nothing else; empty if it is none."""
    if type(value) is list:
        return value if 0 < len(value) <= _MOST_TOGETHER and all(map(is_large_array, value)) else []
    return [value] if is_large_array(value) else []


def read_only_view(array: Any) -> Any:
    """View a large array so that it cannot be changed through the view."""
    view = array.view()
    view.flags.writeable = False
    return view


def bytes_of(array: Any) -> memoryview:
    """View the memory of a large array, read-only."""
    try:
        return memoryview(array).cast("B").toreadonly()
    except (TypeError, ValueError):  # Complex numbers and the like, of which Python knows no format.
        return memoryview(array.reshape(-1).view("u1")).toreadonly()


def known_head(value: Any, arrays: list[Any]) -> bytes | None:
    """Give the head of a large array, or a list of them; None if there was none like it."""
    return _heads.get(_likeness(value, arrays))


def remember_head(value: Any, arrays: list[Any], head: bytes) -> None:
    """Take note of the head of a large array, or a list of them, which the general codec made."""
    if len(_heads) >= _MOST_REMEMBERED:
        _heads.clear()
    _heads[_likeness(value, arrays)] = head


def _likeness(value: Any, arrays: list[Any]) -> Any:
    return type(value), *[(array.dtype, array.shape) for array in arrays]


def known_value(head: Any, buffers: Sequence[Any]) -> Any | None:
    """Rebuild an array, or a list of them, as the general codec would.

    Returns:
        None if no such head was met before, or the general codec would refuse it.
    """
    described = _described.get(head) if type(head) is bytes else None
    if described is None:
        return None
    kind, parts = described
    if len(parts) != len(buffers):
        return None
    arrays = []
    new = sys.modules["numpy"].ndarray
    for (dtype, shape, size), buffer in zip(parts, buffers, strict=True):
        if type(buffer) not in _BUFFERS or not memoryview(buffer).c_contiguous:
            return None
        flat = flat_view(buffer)
        if len(flat) != size:
            return None
        arrays.append(new(shape, dtype, buffer=flat.toreadonly()))
    return arrays if kind is list else arrays[0]


def remember_value(head: Any, value: Any, canonical: Callable[[Any], bytes]) -> None:
    """Take note of what the general codec made of a head and its buffers.

    Args:
        head: The head.
        value: What it made of it.
        canonical: Gives the head that the general codec makes of a value: only such a one names its buffers in order.
    """
    if type(head) is not bytes or len(head) > _LONGEST_HEAD:
        return
    arrays = large_arrays_in(value)
    if arrays and canonical(value) == head:
        if len(_described) >= _MOST_REMEMBERED:
            _described.clear()
        _described[head] = type(value), [(array.dtype, array.shape, array.nbytes) for array in arrays]
