"""Values to bytes and back: the functions that `dfmesh.values` offers.

A plain value is MessagePack, nothing else. Other values are MessagePack with extensions. Bytes that begin with a code
that MessagePack never uses hold a head and its large buffers one after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from dfmesh.errors import ValueDecodingError
from dfmesh.values.decoding import REFUSALS, decode_in_place, decode_with, no_value
from dfmesh.values.encoding import encode, encode_carefully
from dfmesh.values.kinds import flat_view
from dfmesh.values.large_arrays import (
    bytes_of,
    known_head,
    known_value,
    large_arrays_in,
    remember_head,
    remember_value,
)
from dfmesh.values.plain import is_plain

Buffer: TypeAlias = bytes | memoryview

_FRAMED = 0xC1
_START = struct.Struct("<BxxxIQ")
_ALIGNMENT = 64


class Packed(NamedTuple):
    """A value, ready to be sent.

    Attributes:
        head: The value without its large buffers.
        buffers: Read-only runs of bytes, each of 64 KiB or more, that share the memory of the value.
    """

    head: bytes
    buffers: tuple[Buffer, ...]


_packed = partial(tuple.__new__, Packed)


def pack(value: Any) -> Packed:
    """Encode a value; its large buffers stay where they are and are handed out beside the head.

    The value must not change until the buffers are sent.

    Raises:
        ValueEncodingError: a part of the value may not be sent; says which, why and what to do.
    """
    if is_plain(value):
        try:
            return _packed((encode(value), ()))
        except (OverflowError, UnicodeEncodeError):
            pass
    arrays = large_arrays_in(value)
    known = known_head(value, arrays) if arrays else None
    if known is not None:
        return _packed((known, tuple(map(bytes_of, arrays))))
    head, buffers = encode_carefully(value, out_of_band=True)
    if arrays:
        remember_head(value, arrays, head)
    return _packed((head, tuple(buffers)))


def unpack(head: bytes | bytearray | memoryview, buffers: Sequence[Any] = ()) -> Any:
    """Give the value back. Its arrays are read-only views of the buffers, which must not change any more.

    Raises:
        ValueDecodingError: it is no value, does not fit the buffers, or has an instance of a class not known here.
    """
    if not buffers:
        try:
            return decode_in_place(head)
        except REFUSALS as error:
            raise no_value(error) from error
    value = known_value(head, buffers)
    if value is None:
        value = decode_with(head, buffers)
        remember_value(head, value, _head_of)
    return value


def _head_of(value: Any) -> bytes:
    return encode_carefully(value, out_of_band=True)[0]


def to_bytes(value: Any) -> bytes:
    """Encode a value into one run of bytes. Equal values of equal types, in equal order, give equal bytes.

    Raises:
        ValueEncodingError: a part of the value may not be sent; says which, why and what to do.
    """
    if is_plain(value):
        try:
            return encode(value)
        except (OverflowError, UnicodeEncodeError):
            pass
    head, buffers = encode_carefully(value, out_of_band=True)
    return _join(head, buffers) if buffers else head


def from_bytes(data: bytes | bytearray | memoryview) -> Any:
    """Give the value of bytes that `to_bytes` made. Large arrays in it are read-only views of `data`.

    Raises:
        ValueDecodingError: it is no value, or has an instance of a class not known here.
    """
    try:
        if data[0] != _FRAMED:
            return decode_in_place(data)
    except REFUSALS as error:
        raise no_value(error) from error
    return decode_with(*_split(memoryview(data)))


def normalise(value: Any) -> Any:
    """Give what the receiver of a value would get, without copying large buffers.

    Plain values and large buffers are shared with `value`, so neither may be changed afterwards.

    Raises:
        ValueEncodingError: as `pack`.
    """
    if is_plain(value):
        return value
    return unpack(*pack(value))


def _join(head: bytes, buffers: Sequence[Buffer]) -> bytes:
    sizes = [len(buffer) for buffer in buffers]
    start = _START.pack(_FRAMED, len(buffers), len(head)) + struct.pack(f"<{len(sizes)}Q", *sizes)
    parts: list[Buffer] = [start, head, _padding(len(start) + len(head))]
    for buffer in buffers:
        parts += (buffer, _padding(len(buffer)))
    return b"".join(parts)


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNMENT)


def _split(data: memoryview) -> tuple[memoryview, list[memoryview]]:
    data = flat_view(data)
    try:
        _, count, head_size = _START.unpack_from(data)
        sizes = struct.unpack_from(f"<{count}Q", data, _START.size)
    except struct.error as error:
        raise no_value(error) from error
    position = _START.size + 8 * count
    head = data[position : position + head_size]
    position += head_size
    buffers = []
    for size in sizes:
        position += -position % _ALIGNMENT
        buffers.append(data[position : position + size])
        position += size
    if position + -position % _ALIGNMENT != len(data):
        raise ValueDecodingError(f"data that arrived is cut off or too long: {len(data)} bytes instead of {position}")
    return head, buffers
