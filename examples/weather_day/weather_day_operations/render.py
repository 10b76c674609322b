"""Maps as PNG: temperature in colour, isobars, coast lines, graticule, legend. North is up."""

from __future__ import annotations

import io
from datetime import datetime
from typing import TYPE_CHECKING, Any

from weather_day_operations.basemap import MAP_BOX, basemap, to_pixels
from weather_day_operations.lettering import font, write_with_halo
from weather_day_operations.palette import band_of, colours

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

ISOBAR_STEP = 4
"""Between isobars, hPa."""

_LABELLED_MERIDIANS = (-150, -122, -104, -88, -70)
_INK, _FREEZING = (32, 32, 48), (20, 70, 190)


def render(temperature: dict[str, Any], pressure: dict[str, Any], hour: datetime) -> bytes:
    """Draw the map of an hour.

    Args:
        temperature: Air temperature in degC, as `analyse` gives it.
        pressure: Air pressure at mean sea level in hPa, as `analyse` gives it.
        hour: The hour, UTC; goes into the title.

    Returns:
        A PNG file.
    """
    from PIL import Image

    base = basemap()
    image = base.below.copy()
    _paint_temperature(image, temperature)
    isobars = _Contours(*enlarge(pressure), ISOBAR_STEP)
    image.paste(_INK, MAP_BOX[:2], Image.fromarray(isobars.opacity()))
    image.paste(base.above, (0, 0), base.above)
    _mark_cells(image, temperature)
    isobars.label(image)
    _write_title(image, temperature, hour)
    png = io.BytesIO()
    image.quantize(255, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(png, "PNG", compress_level=6)
    return png.getvalue()


def enlarge(field: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Bring a field to the pixels of the map, first row in the north.

    Returns:
        Values, and for each pixel whether it is near data, from 0 to 1: the edge is soft. Both float32.
    """
    import numpy as np
    from PIL import Image

    values = field["values"] if field["latitude"][0] > field["latitude"][-1] else field["values"][::-1]
    known = np.isfinite(values)
    size = (MAP_BOX[2] - MAP_BOX[0], MAP_BOX[3] - MAP_BOX[1])
    layers = (np.where(known, values, 0), known)
    filled, share = (
        np.asarray(Image.fromarray(layer.astype("f4")).resize(size, Image.Resampling.BILINEAR)) for layer in layers
    )
    edge = Image.fromarray(_blur(_blur(known.astype("f4")))).resize(size, Image.Resampling.BICUBIC)
    near = np.clip((np.asarray(edge) - np.float32(0.5)) * 9, 0, 1) * (share > 0)
    return filled / np.maximum(share, np.float32(1e-6)), near


def _blur(layer: np.ndarray) -> np.ndarray:
    """Average each cell with its eight neighbours."""
    import numpy as np

    padded = np.pad(layer, 1, mode="edge")
    rows = padded[:-2] + padded[1:-1] + padded[2:]
    return (rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]) / np.float32(9)


def _paint_temperature(image: Image.Image, temperature: dict[str, Any]) -> None:
    from PIL import Image

    values, near = enlarge(temperature)
    painted = Image.fromarray(band_of(values), "P")
    painted.putpalette(colours().tobytes())
    image.paste(painted.convert("RGB"), MAP_BOX[:2], Image.fromarray((near * 255).astype("u1")))
    freezing = _Contours(values, near, 1000)
    image.paste(_FREEZING, MAP_BOX[:2], Image.fromarray(freezing.opacity()))


class _Contours:
    """Lines of equal value on the pixels of the map: at the multiples of a step, where data is near."""

    def __init__(self, values: np.ndarray, near: np.ndarray, step: float) -> None:
        self.values, self.near, self.step = values, near, step

    def opacity(self) -> np.ndarray:
        """Give the ink of each pixel, 0 to 255: a line about 1.3 pixels wide, smooth at its edges."""
        import numpy as np

        steps = self.values / np.float32(self.step)
        down, across = np.gradient(steps)
        slope = np.maximum(np.hypot(down, across), np.float32(8e-4 / self.step))  # flat ground would be all line
        distance = np.abs(steps - np.round(steps)) / slope
        ink = np.clip(np.float32(1.15) - distance, 0, 1) * self.near
        return (ink * np.float32(215)).astype("u1")

    def label(self, image: Image.Image) -> None:
        """Write the values where lines cross a few meridians."""
        import numpy as np

        for meridian in _LABELLED_MERIDIANS:
            x = int(to_pixels(meridian, 0)[0]) - MAP_BOX[0]
            level = np.floor(self.values[:, x] / self.step)
            crossings = np.flatnonzero((np.diff(level) != 0) & (self.near[1:, x] == 1))
            last = -100
            for y in crossings:
                if y - last > 45 and 12 < y < len(level) - 12:
                    last = y
                    text = f"{max(level[y], level[y + 1]) * self.step:.0f}"
                    write_with_halo(image, (x + MAP_BOX[0], int(y) + MAP_BOX[1]), text, 11)


def _mark_cells(image: Image.Image, field: dict[str, Any]) -> None:
    """Put a faint dot on each cell that has data."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image, "RGBA")
    for latitude, longitude in field["cells"].tolist():
        x, y = to_pixels(longitude, latitude)
        draw.point((int(x), int(y)), (0, 0, 0, 110))


def _write_title(image: Image.Image, field: dict[str, Any], hour: datetime) -> None:
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image)
    left, right = MAP_BOX[0], MAP_BOX[2]
    what = f"{field['reports']:,} reports in {len(field['cells']):,} cells of 1° (dots)"
    draw.text((left, 10), "Air temperature and mean sea level pressure", _INK, font(19))
    draw.text((left, 34), f"{what} · isobars every {ISOBAR_STEP} hPa · blue line: 0 °C", (90, 90, 104), font(13))
    draw.text((right, 10), f"{hour.day} {hour:%B %Y, %H:%M} UTC", _INK, font(19), anchor="ra")
    draw.text((right, 34), "no colour: no report near", (90, 90, 104), font(13), anchor="ra")
