"""The colours of temperature: diverging around 0 degC, the same for every map.

Lightness falls evenly from near white at the freezing point to both ends, so that a map read in grey still shows how
far from freezing it is; hue says on which side. One colour per `BAND` degrees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

COLDEST, WARMEST, BAND = -40, 40, 2
"""Range of the scale and width of one colour, degC. What is beyond takes the last colour."""

# Stops of the two arms, from the freezing point outwards: lightness, chroma, hue (degrees) in OKLCh.
_COLD = [(0.965, 0.022, 215), (0.84, 0.085, 225), (0.66, 0.135, 248), (0.47, 0.150, 268), (0.28, 0.120, 295)]
_WARM = [(0.965, 0.045, 100), (0.84, 0.140, 82), (0.66, 0.180, 45), (0.47, 0.170, 25), (0.28, 0.105, 12)]

_LMS = [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.2914855480]]
_RGB = [
    [4.0767416621, -3.3077115913, 0.2309699292],
    [-1.2684380046, 2.6097574011, -0.3413193965],
    [-0.0041960863, -0.7034186147, 1.7076147010],
]


def colours() -> np.ndarray:
    """Give the colours from coldest to warmest as sRGB bytes, an (n, 3) array."""
    import numpy as np

    each = (WARMEST - COLDEST) // BAND // 2
    cold, warm = _arm(_COLD, each), _arm(_WARM, each)
    return np.concatenate([cold[::-1], warm])


def band_of(temperature: np.ndarray) -> np.ndarray:
    """Give the number of the colour of each temperature (degC), as bytes. NaN gives any."""
    import numpy as np

    last = (WARMEST - COLDEST) // BAND - 1
    return np.clip((np.nan_to_num(temperature) - COLDEST) / BAND, 0, last).astype("u1")


def _arm(stops: list[tuple[float, float, float]], number: int) -> np.ndarray:
    import numpy as np

    at = np.linspace(0, len(stops) - 1, number)
    lightness, chroma, hue = (np.interp(at, range(len(stops)), column) for column in zip(*stops, strict=True))
    return _srgb(np.stack([lightness, chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))], axis=1))


def _srgb(oklab: np.ndarray) -> np.ndarray:
    import numpy as np

    linear = np.clip((oklab @ np.array(_LMS).T) ** 3 @ np.array(_RGB).T, 0, 1)
    gamma = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.round(gamma * 255).astype("u1")
