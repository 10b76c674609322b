"""Text on maps, in the font that comes with Pillow."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image, ImageFont


@lru_cache(maxsize=16)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Give the font in a size, in pixels."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def write_with_halo(image: Image.Image, centre: tuple[int, int], text: str, size: int) -> None:
    """Write a dark text with a light rim, readable on any colour; `centre` is in pixels."""
    label = _label(text, size)
    image.paste(label, (centre[0] - label.width // 2, centre[1] - label.height // 2), label)


@lru_cache(maxsize=256)
def _label(text: str, size: int) -> Image.Image:
    """Keep a text as a picture: drawing letters with a rim is the slow part, and the same few come again and again."""
    from PIL import Image, ImageDraw

    left, top, right, bottom = font(size).getbbox(text, stroke_width=2)
    label = Image.new("RGBA", (int(right - left) + 2, int(bottom - top) + 2), (255, 255, 255, 0))
    where = (1 - left, 1 - top)
    ImageDraw.Draw(label).text(where, text, (24, 24, 40), font(size), stroke_width=2, stroke_fill=(255, 255, 255))
    return label
