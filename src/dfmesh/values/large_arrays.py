"""Large arrays of numbers, the kind of value whose transfer is to take no longer than a copy.

How one is described depends on its shape and data type only. So the general codec works that out once, and it is
remembered here for the arrays that follow.
"""

from __future__ import annotations

import sys
from typing import Any

from dfmesh.values.kinds import flat_view
from dfmesh.values.plain import LARGE

_NUMBERS = "biufc"
_BUFFERS = frozenset({bytes, bytearray, memoryview})
_MOST_REMEMBERED = 256
_LONGEST_HEAD = 256

_heads: dict[Any, bytes] = {}
_described: dict[bytes, tuple[Any, tuple[int, ...], int]] = {}


def is_large_array(value: Any) -> bool:
    """Say whether a value is an array of numbers that would arrive as a view of its own memory, and is nothing else."""
    kind = type(value)
    if kind.__name__ != "ndarray":
        return False
    numpy = sys.modules.get("numpy")
    if numpy is None or kind is not numpy.ndarray or value.nbytes < LARGE or not value.flags.c_contiguous:
        return False
    dtype = value.dtype
    return dtype.isbuiltin == 1 and dtype.kind in _NUMBERS and dtype.metadata is None


def read_only_view(array: Any) -> Any:
    """View a large array so that it cannot be changed through the view."""
    view = array.view()
    view.flags.writeable = False
    return view


def bytes_of(array: Any) -> memoryview:
    """View the memory of a large array, read-only."""
    return memoryview(array.reshape(-1).view("u1")).toreadonly()


def known_head(array: Any) -> bytes | None:
    """Give the head of a large array; None if there was none like it."""
    return _heads.get((array.dtype, array.shape))


def remember_head(array: Any, head: bytes) -> None:
    """Take note of the head of a large array, which the general codec made."""
    if len(_heads) >= _MOST_REMEMBERED:
        _heads.clear()
    _heads[array.dtype, array.shape] = head


def known_array(head: Any, buffer: Any) -> Any | None:
    """Rebuild an array, as the general codec would; None if no such head was met before, or that would refuse it."""
    described = _described.get(head) if type(head) is bytes else None
    if described is None or type(buffer) not in _BUFFERS:
        return None
    dtype, shape, size = described
    if not memoryview(buffer).c_contiguous:
        return None
    flat = flat_view(buffer)
    if len(flat) != size:
        return None
    return sys.modules["numpy"].ndarray(shape, dtype, buffer=flat.toreadonly())


def remember_array(head: Any, value: Any) -> None:
    """Take note of what the general codec made of a head and one buffer."""
    if type(head) is bytes and len(head) <= _LONGEST_HEAD and is_large_array(value):
        if len(_described) >= _MOST_REMEMBERED:
            _described.clear()
        _described[head] = value.dtype, value.shape, value.nbytes
