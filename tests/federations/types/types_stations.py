"""A class that is registered where it is defined, and one that is not."""

from __future__ import annotations

from dataclasses import dataclass

from dfmesh import register_type


@register_type
@dataclass
class Station:
    """A place with instruments."""

    name: str


@dataclass
class Private:
    """Nobody registers it."""

    name: str
