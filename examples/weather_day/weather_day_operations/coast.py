"""Coast lines from a TopoJSON file: arcs of whole-number steps, shared by the polygons that meet there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

Line = list[tuple[float, float]]
"""Longitude and latitude, degrees, of the points of a line."""

_LAND = Path(__file__).resolve().parent.parent / "data" / "land-110m.json"


@lru_cache(maxsize=2)
def land_polygons(path: Path = _LAND) -> list[Line]:
    """Give the outline of each piece of land as a closed line; the first ring of a polygon is its outside.

    A line that crosses 180 degrees goes on beyond it (to 190, or -190) instead of jumping around the Earth. Holes (the
    Caspian Sea) are left out: none lies in the mapped domain.
    """
    topology = json.loads(path.read_text("utf-8"))
    arcs = [_decode(arc, topology["transform"]) for arc in topology["arcs"]]
    return [_unroll(_join(rings[0], arcs)) for rings in _polygons(topology["objects"]["land"])]


def _decode(arc: list[list[int]], transform: dict[str, list[float]]) -> Line:
    """Add up the steps of an arc, then scale and shift."""
    (scale_x, scale_y), (shift_x, shift_y) = transform["scale"], transform["translate"]
    xs, ys = (accumulate(steps) for steps in zip(*arc, strict=True))
    return [(x * scale_x + shift_x, y * scale_y + shift_y) for x, y in zip(xs, ys, strict=True)]


def _polygons(geometry: dict[str, Any]) -> Iterator[list[list[int]]]:
    """Give each polygon below a geometry as its rings of arc numbers."""
    if geometry["type"] == "GeometryCollection":
        for member in geometry["geometries"]:
            yield from _polygons(member)
    elif geometry["type"] == "MultiPolygon":
        yield from geometry["arcs"]
    elif geometry["type"] == "Polygon":
        yield geometry["arcs"]


def _join(ring: list[int], arcs: list[Line]) -> Line:
    """Join the arcs of a ring. A number below zero means the arc `~number`, backwards; arcs share their end points."""
    line: Line = []
    for number in ring:
        arc = arcs[number] if number >= 0 else arcs[~number][::-1]
        line += arc if not line else arc[1:]
    return line


def _unroll(line: Line) -> Line:
    turns, before, unrolled = 0, line[0][0], []
    for x, y in line:
        turns += (x - before < -180) - (x - before > 180)
        before = x
        unrolled.append((x + 360 * turns, y))
    return unrolled
