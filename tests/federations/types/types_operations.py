"""Adapters that take and give stations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from types_stations import Private, Station


def name(station: Station) -> str:
    """Give the name of a station."""
    return station.name


def same(value: object) -> object:
    """Give what comes."""
    return value


def make(what: str) -> object:
    """Make an object."""
    return Station(what) if what != "private" else Private(what)


def each(names: list[str]) -> Iterator[object]:
    """Make objects one by one."""
    for name in names:
        yield make(name)


async def each_async(names: list[str]) -> AsyncIterator[object]:
    """Make objects one by one."""
    for name in names:
        yield make(name)
