"""Copies of values inside a process, so that a receiver who changes its own changes nobody else's."""

from __future__ import annotations

import datetime
import decimal
import fractions
import uuid
from collections.abc import Iterable
from typing import Any

from dfmesh.values.codec import from_bytes, normalise, pack, to_bytes, unpack
from dfmesh.values.large_arrays import is_large_array, read_only_view
from dfmesh.values.plain import is_plain

_UNCHANGING = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        bytes,
        datetime.date,
        datetime.datetime,
        datetime.time,
        datetime.timedelta,
        decimal.Decimal,
        fractions.Fraction,
        uuid.UUID,
    }
)

UNCHANGING = _UNCHANGING | {str}
"""Types of values of which `private_copy` makes nothing else."""


class Private:
    """A value that nobody else has, as `take_over` gives it.

    Attributes:
        value: The value.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def is_unchanging(parts: Iterable[Any]) -> bool:
    """Say whether `private_copy` would give each of these values back as it is. False where in doubt."""
    return UNCHANGING.issuperset(map(type, parts))


_SETTLED = UNCHANGING | {Private}


def are_settled(parts: Iterable[Any]) -> bool:
    """Say whether `private_copy` would make nothing new of these values: they never change, or were taken over."""
    return _SETTLED.issuperset(map(type, parts))


def settled(parts: Iterable[Any]) -> list[Any]:
    """Give what `private_copy` gives for values that `are_settled`."""
    return [part.value if type(part) is Private else part for part in parts]


def private_copy(value: Any) -> Any:
    """Give a value as a receiver elsewhere would get it: lists, dictionaries and the like are its own.

    One that was taken over is given as it is. Large arrays and Arrow data are not copied: arrays are read-only to every
    receiver, Arrow data to everybody.

    Raises:
        ValueEncodingError: as `pack`.
    """
    kind = type(value)
    if kind in _UNCHANGING:
        return value
    if kind is Private:
        return value.value
    if is_large_array(value):
        return read_only_view(value)
    if kind is str or kind.__module__.partition(".")[0] == "pyarrow":
        return normalise(value)
    if is_plain(value):
        return from_bytes(to_bytes(value))
    return unpack(*pack(value))
