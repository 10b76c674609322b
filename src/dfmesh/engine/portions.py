"""Cutting values that are there at the same time into portions, each of which travels in one message.

Only small plain values travel together, and a few large arrays: each can be decoded wherever the others can, and none
is held up by another that takes long to send.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dfmesh import values
from dfmesh.values.large_arrays import is_large_array
from dfmesh.values.plain import is_plain

PORTION_VALUES = 256
"""Most values in one portion."""

PORTION_BYTES = 16 * 1024
"""Estimated size of a portion, from which on a further value goes into the next one."""

ARRAYS_BYTES = 2 * 2**20
"""Size of the large arrays in one portion, from which on a further one goes into the next."""

ARRAYS_TOGETHER = 16
"""Most large arrays in one portion."""

_SMALLEST = frozenset({type(None), bool, int, float})
"""Types whose values are too small to be measured."""


def portions(given: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Cut values into portions, in order.

    Yields:
        Position of the first value, and the values. One that is large, or not plain, is alone, or an array among
        arrays.
    """
    if _SMALLEST.issuperset(map(type, given)):
        if 0 < len(given) <= PORTION_VALUES:
            yield 0, given
        else:
            for first in range(0, len(given), PORTION_VALUES):
                yield first, given[first : first + PORTION_VALUES]
        return
    first, size, were_arrays = 0, 0, False
    for position, value in enumerate(given):
        arrays = is_large_array(value)
        own, bytes_at_most, most = _limits(value, arrays)
        together = arrays is were_arrays and size + own <= bytes_at_most and position - first < most
        if position > first and not together:
            yield first, given[first:position]
            first, size = position, 0
        size, were_arrays = size + own, arrays
    if first < len(given):
        yield first, given[first:]


def _limits(value: Any, array: bool) -> tuple[int, int, int]:
    """Give the size of a value, and how many bytes and values a portion with it may have."""
    if array:
        return value.nbytes, ARRAYS_BYTES, ARRAYS_TOGETHER
    return values.size_of(value) if is_plain(value) else PORTION_BYTES, PORTION_BYTES, PORTION_VALUES
