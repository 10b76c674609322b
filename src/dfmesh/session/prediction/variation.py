"""Calls that do not all take as long: what waits for the last of several waits longer than one call usually takes."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

TIMES = 128
"""Different times that the calls of one statement take."""

_NORMAL = NormalDist()


def varied(mean: float, spread: float, name: str) -> list[float]:
    """Give times with a mean and a standard deviation, in an order that only depends on a name.

    They are quantiles of a log-normal distribution, which fits times: none is negative, and few are much longer.

    Args:
        mean: Seconds.
        spread: Standard deviation, seconds.
        name: What they are for.

    Returns:
        `TIMES` of them; none if there is no spread.
    """
    if mean <= 0 or spread <= 0:
        return []
    width = math.sqrt(math.log1p((spread / mean) ** 2))
    times = [math.exp(width * _NORMAL.inv_cdf((number + 0.5) / TIMES)) for number in range(TIMES)]
    scale = mean * TIMES / sum(times)
    times = [time * scale for time in times]
    random.Random(name).shuffle(times)  # noqa: S311 - the same order each time
    return times
