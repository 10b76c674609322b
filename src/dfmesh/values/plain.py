"""Tells plain values, which MessagePack carries as they are, from those that need more.

Nearly all values on the hot path are plain, and MessagePack alone would turn tuples, sets, dates and the like into
something else without a word. So the check looks at exact types, as far as possible with loops that run in C.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from typing import Any

MAX_DEPTH = 100
"""Levels of containers that a value may have. Far below the depth at which the interpreter or a C library gives up."""

LARGE = 64 * 1024
"""Bytes from which a buffer travels out of band."""

TEXT_ATOMS = frozenset({type(None), bool, int, float, str})
"""Exact types that are always encoded in place."""

ATOMS = TEXT_ATOMS | {bytes}
"""Exact types without parts."""

_all_text_atoms = TEXT_ATOMS.issuperset
_PLAIN = ATOMS | {list, dict}
_FEW = 8
_MANY = 1 << 16


def is_plain(value: Any) -> bool:
    """Say whether a value is made of lists, dictionaries and atoms only, with nothing that travels out of band.

    False where in doubt: cyclic, very deep, or widely shared values are left to the careful encoder.
    Integers beyond 64 bits and text that is not Unicode pass here and are refused by MessagePack.
    """
    kind = type(value)
    if kind in TEXT_ATOMS:
        return True
    if kind is list:
        return _all_text_atoms(map(type, value)) or _are_plain(value, MAX_DEPTH - 1, [_MANY])
    if kind is dict:
        if not _all_text_atoms(map(type, value)):
            return _is_plain_by_level([value], MAX_DEPTH)
        items = value.values()
        return _all_text_atoms(map(type, items)) or _are_plain(items, MAX_DEPTH - 1, [_MANY])
    return kind is bytes and len(value) < LARGE


def _are_plain(parts: Collection[Any], levels: int, budget: list[int]) -> bool:
    """Check parts one by one.

    Args:
        parts: What a container holds.
        levels: Levels of containers that there may be in it.
        budget: Parts that may be visited before the check goes on level by level.
    """
    count = len(parts)
    budget[0] -= count
    if levels and count > _FEW and _are_rows(parts):
        return True
    if budget[0] < 0:
        return _is_plain_by_level(parts, levels)
    for part in parts:
        kind = type(part)
        if kind in TEXT_ATOMS:
            continue
        if kind is dict:
            if not _all_text_atoms(map(type, part)):
                return False
            part = part.values()
        elif kind is not list:
            if kind is bytes and len(part) < LARGE:
                continue
            return False
        if not levels or not (_all_text_atoms(map(type, part)) or _are_plain(part, levels - 1, budget)):
            return False
    return True


def _are_rows(parts: Collection[Any]) -> bool:
    """Check for the frequent case of many flat dictionaries, or many flat lists."""
    kinds = set(map(type, parts))
    if kinds == {dict}:
        values = chain.from_iterable(map(dict.values, parts))
        return _all_text_atoms(map(type, chain.from_iterable(parts))) and _all_text_atoms(map(type, values))
    return kinds == {list} and _all_text_atoms(map(type, chain.from_iterable(parts)))


def _is_plain_by_level(parts: Collection[Any], levels: int) -> bool:
    """Check all parts of one level of nesting at a time; fast for large values, and cannot run away."""
    parts = list(parts)
    for _ in range(levels + 1):
        kinds = set(map(type, parts))
        if bytes in kinds and any(len(part) >= LARGE for part in parts if type(part) is bytes):
            return False
        if kinds <= ATOMS:
            return True
        lists = [part for part in parts if type(part) is list]
        dicts = [part for part in parts if type(part) is dict]
        keys = set(map(type, chain.from_iterable(dicts)))
        if not kinds <= _PLAIN or not keys <= ATOMS or _are_widely_shared(lists) or _are_widely_shared(dicts):
            return False
        parts = list(chain(chain.from_iterable(lists), chain.from_iterable(map(dict.values, dicts))))
    return False


def _are_widely_shared(containers: list[Any]) -> bool:
    return len(containers) > _MANY and len(set(map(id, containers))) < len(containers) // 2
