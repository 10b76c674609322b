"""Cutting values that are there at the same time into portions, each of which travels in one message.

Only small plain values travel together: each can be decoded wherever the others can, and none is held up by another
that takes long to send.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dfmesh import values
from dfmesh.values.plain import is_plain

PORTION_VALUES = 256
"""Most values in one portion."""

PORTION_BYTES = 16 * 1024
"""Estimated size of a portion, from which on a further value goes into the next one."""

_SMALLEST = frozenset({type(None), bool, int, float})
"""Types whose values are too small to be measured."""


def portions(given: list[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Cut values into portions, in order.

    Yields:
        Position of the first value, and the values. One that is large, or not plain, is alone.
    """
    if _SMALLEST.issuperset(map(type, given)):
        if 0 < len(given) <= PORTION_VALUES:
            yield 0, given
        else:
            for first in range(0, len(given), PORTION_VALUES):
                yield first, given[first : first + PORTION_VALUES]
        return
    first, size = 0, 0
    for position, value in enumerate(given):
        own = values.size_of(value) if is_plain(value) else PORTION_BYTES
        if position > first and (size + own > PORTION_BYTES or position - first == PORTION_VALUES):
            yield first, given[first:position]
            first, size = position, 0
        size += own
    if first < len(given):
        yield first, given[first:]
