"""All of a map that is the same every hour: drawn once, in two pictures, below and above the field.

The map is equirectangular, true to scale at 47 degrees north: longitude to the right, latitude up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from weather_day_operations.coast import land_polygons
from weather_day_operations.domain import EAST, NORTH, SOUTH, WEST
from weather_day_operations.lettering import font
from weather_day_operations.palette import BAND, COLDEST, WARMEST, colours

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

_WIDTH, _HEIGHT = 936, 732
MAP_BOX = (48, 58, 48 + _WIDTH, 58 + _HEIGHT)
"""Left, top, right, bottom of the map in the picture, pixels."""

FRAME = (MAP_BOX[2] + 88, MAP_BOX[3] + 30)
"""Width and height of the picture, pixels."""

_FINE = 2  # lines are drawn twice as large and scaled down, which smooths them
_PAPER, _SEA, _LAND = (255, 255, 255), (226, 234, 241), (238, 236, 230)
_INK, _GREY = (32, 32, 48, 255), (80, 84, 96, 255)


class Basemap(NamedTuple):
    """Paper, sea and land (RGB); coast lines, graticule, legend and their letters (RGBA)."""

    below: Image.Image
    above: Image.Image


def to_pixels(longitude: float, latitude: float) -> tuple[float, float]:
    """Give where a position is in the picture."""
    x = MAP_BOX[0] + (longitude - WEST) / (EAST - WEST) * _WIDTH
    y = MAP_BOX[1] + (NORTH - latitude) / (NORTH - SOUTH) * _HEIGHT
    return x, y


@lru_cache(maxsize=1)
def basemap() -> Basemap:
    """Draw the base map, or give the one drawn before."""
    from PIL import Image, ImageDraw

    below = Image.new("RGB", (_WIDTH * _FINE, _HEIGHT * _FINE), _SEA)
    lines = Image.new("RGBA", below.size, (*_INK[:3], 0))
    draw = ImageDraw.Draw(lines)
    _draw_graticule(draw)
    for outline in _outlines():
        ImageDraw.Draw(below).polygon(outline, fill=_LAND)
        draw.line(outline, _INK, 2 * _FINE - 1)
    paper, above = Image.new("RGB", FRAME, _PAPER), Image.new("RGBA", FRAME, (255, 255, 255, 0))
    paper.paste(below.reduce(_FINE), MAP_BOX[:2])
    above.paste(lines.reduce(_FINE), MAP_BOX[:2])
    draw = ImageDraw.Draw(above)
    draw.rectangle((MAP_BOX[0] - 1, MAP_BOX[1] - 1, MAP_BOX[2], MAP_BOX[3]), outline=_INK)
    _letter_graticule(draw)
    _draw_legend(draw)
    return Basemap(paper, above)


def _outlines() -> list[list[tuple[float, float]]]:
    """Give the land near the domain, in pixels of the large drawing; what is east of 180 degrees as west of -180."""
    turned = [[(x + turn, y) for x, y in line] for line in land_polygons() for turn in (-360, 0, 360)]
    return [[_fine(*to_pixels(*point)) for point in line] for line in turned if _is_near(line)]


def _is_near(line: list[tuple[float, float]]) -> bool:
    return min(x for x, _ in line) < EAST and max(x for x, _ in line) > WEST and max(y for _, y in line) > SOUTH


def _fine(x: float, y: float) -> tuple[float, float]:
    return (x - MAP_BOX[0]) * _FINE, (y - MAP_BOX[1]) * _FINE


def _draw_graticule(draw: ImageDraw.ImageDraw) -> None:
    for longitude in range(WEST + 20, EAST, 20):
        draw.line([_fine(*to_pixels(longitude, SOUTH)), _fine(*to_pixels(longitude, NORTH))], (*_GREY[:3], 90), _FINE)
    for latitude in range(SOUTH + 6, NORTH, 10):
        draw.line([_fine(*to_pixels(WEST, latitude)), _fine(*to_pixels(EAST, latitude))], (*_GREY[:3], 90), _FINE)


def _letter_graticule(draw: ImageDraw.ImageDraw) -> None:
    for longitude in range(WEST + 20, EAST, 20):
        draw.text((to_pixels(longitude, 0)[0], MAP_BOX[3] + 6), f"{-longitude}°W", _GREY, font(13), anchor="ma")
    for latitude in range(SOUTH + 6, NORTH, 10):
        draw.text((MAP_BOX[0] - 6, to_pixels(0, latitude)[1]), f"{latitude}°N", _GREY, font(13), anchor="rm")


def _draw_legend(draw: ImageDraw.ImageDraw) -> None:
    """Draw the colours as a column right of the map, warm at the top, with a tick each 10 degrees."""
    left, right, top, bottom = MAP_BOX[2] + 18, MAP_BOX[2] + 38, MAP_BOX[1] + 34, MAP_BOX[3] - 10
    height = (bottom - top) / (WARMEST - COLDEST)
    for number, colour in enumerate(colours().tolist()):
        y = bottom - number * BAND * height
        draw.rectangle((left, round(y - BAND * height), right, round(y)), fill=(*colour, 255))
    draw.rectangle((left, top, right, bottom), outline=_INK)
    draw.text((left, top - 10), "°C", _INK, font(15), anchor="ls")
    for degrees in range(COLDEST, WARMEST + 1, 10):
        y = round(bottom - (degrees - COLDEST) * height)
        draw.line((right, y, right + 5, y), _INK)
        draw.text((right + 9, y), f"{degrees:+d}" if degrees else "0", _INK, font(13), anchor="lm")
