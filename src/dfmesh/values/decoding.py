"""The decoder: bytes that came from elsewhere to values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.msgpack import Decoder

from dfmesh.errors import ValueDecodingError
from dfmesh.values import kinds, libraries, registry, standard  # noqa: F401 - they fill the table of kinds
from dfmesh.values.kinds import BY_CODE, flat_view

REFUSALS = (msgspec.MsgspecError, RecursionError, TypeError, ValueError, OverflowError, MemoryError, IndexError)
"""What the MessagePack decoder raises for bytes that are no value."""

_MANY = 1000


class Reader:
    """Decodes heads that refer to `buffers`.

    Attributes:
        decode: From the bytes of a value to the value. Raises any of `REFUSALS` or `ValueDecodingError`.
    """

    __slots__ = ("_buffers", "_decode_tuple", "decode")

    def __init__(self, buffers: Sequence[Any]) -> None:
        self._buffers = buffers
        self.decode: Callable[[Any], Any] = Decoder(ext_hook=self._rebuild).decode
        self._decode_tuple: Callable[[Any], Any] = Decoder(tuple, ext_hook=self._rebuild).decode

    def release(self) -> None:
        """Break the cycle of references that would keep the buffers alive until the next garbage collection."""
        del self.decode, self._decode_tuple
        self._buffers = ()

    def _rebuild(self, code: int, data: memoryview) -> Any:
        if code == kinds.TUPLE:
            return self._decode_tuple(data)
        if code in _RAW:
            return _RAW[code](data)
        payload = self.decode(data)
        try:
            if code == kinds.BUFFER:
                return self._buffer(payload)
            return _FROM_PAYLOAD[code](payload) if code in _FROM_PAYLOAD else BY_CODE[code].rebuild(payload)
        except ValueDecodingError:
            raise
        except Exception as error:
            # Constructors of any type may refuse a payload that somebody made up, in any way they like.
            raise refusal(code, error) from error

    def _buffer(self, index: Any) -> memoryview:
        if type(index) is not int or not 0 <= index < len(self._buffers):
            raise ValueError(f"it has {len(self._buffers)} buffers and refers to number {index!r}")
        return flat_view(self._buffers[index]).toreadonly()


def refusal(code: int, error: Exception) -> ValueDecodingError:
    """Make the error for a payload that cannot be rebuilt."""
    kind = BY_CODE.get(code)
    if kind is None and code not in _FROM_PAYLOAD and code != kinds.BUFFER:
        return ValueDecodingError(f"data that arrived has a part of unknown kind {code}; is the sender's dfmesh newer?")
    what = "a part" if kind is None else f"a part of kind {kind.tag!r}"
    return ValueDecodingError(f"{what} in data that arrived cannot be rebuilt: {type(error).__name__}: {error}")


def rebuild_pairs(payload: Any) -> dict[Any, Any]:
    """Make a dictionary of its keys and values in turn. May raise anything."""
    keys, items = payload[::2], payload[1::2]
    check_hashes(keys)
    return dict(zip(keys, items, strict=True))


def rebuild_set(payload: Any) -> set[Any]:
    """Make a set of its elements. May raise anything."""
    check_hashes(payload)
    return set(payload)


def check_hashes(keys: list[Any]) -> None:
    """Refuse keys that were made to collide, which would take quadratic time to put into a table.

    Raises:
        ValueError: far fewer hashes than keys.
    """
    if len(keys) > _MANY and len(set(map(hash, keys))) < len(keys) // 2:
        raise ValueError(f"most of its {len(keys)} keys have equal hashes")


def _refuse(code: int, _: memoryview) -> Any:
    raise ValueDecodingError(
        f"data that arrived has a list of tuples with a part of kind {code}; it may have atoms only"
    )


_RAW: dict[int, Callable[[memoryview], Any]] = {
    kinds.BIG_INT: lambda data: int.from_bytes(data, "little", signed=True),
    kinds.TUPLES: Decoder(list[tuple[Any, ...]], ext_hook=_refuse).decode,
    kinds.ODD_TEXT: lambda data: str(data, "utf-8", "surrogatepass"),
}

_FROM_PAYLOAD: dict[int, Callable[[Any], Any]] = {
    kinds.PAIRS: rebuild_pairs,
    kinds.SET: rebuild_set,
    kinds.FROZENSET: lambda payload: frozenset(rebuild_set(payload)),
}

decode_in_place = Reader(()).decode
"""Decodes a head that refers to no buffers."""


def decode_with(head: Any, buffers: Sequence[Any]) -> Any:
    """Decode a head that may refer to buffers.

    Raises:
        ValueDecodingError: it is no value, or does not fit the buffers.
    """
    reader = Reader(buffers) if buffers else None
    try:
        return decode_in_place(head) if reader is None else reader.decode(head)
    except REFUSALS as error:
        raise no_value(error) from error
    finally:
        if reader is not None:
            reader.release()


def no_value(error: Exception) -> ValueDecodingError:
    """Make the error for bytes that are no value."""
    return ValueDecodingError(f"data that arrived is not a value: {error}")
