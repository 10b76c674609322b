"""Adapters that take and give stations."""

from __future__ import annotations

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
