"""Calls that do not all take as long: what waits for the last of several waits longer than one call usually takes."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

ROUNDS = 8
"""Times that all of them are gone through, each time a little differently, before they come again."""

EACH = 16
"""Calls of a round: its times are spread evenly over all that are likely, so that few calls have the mean, too."""

_NORMAL = NormalDist()


def varied(mean: float, spread: float, name: str) -> list[float]:
    """Give times with a mean and a standard deviation, in an order that only depends on a name.

    They are quantiles of a log-normal distribution, which fits times: none is negative, and few are much longer.

    Args:
        mean: Seconds.
        spread: Standard deviation, seconds.
        name: What they are for.

    Returns:
        `ROUNDS` times `EACH` of them; none if there is no spread.
    """
    if mean <= 0 or spread <= 0:
        return []
    width = math.sqrt(math.log1p((spread / mean) ** 2))
    count = ROUNDS * EACH
    quantiles = [math.exp(width * _NORMAL.inv_cdf((number + 0.5) / count)) for number in range(count)]
    scale = mean * count / sum(quantiles)
    order = random.Random(name)  # noqa: S311 - the same order each time
    times: list[float] = []
    for first in order.sample(range(ROUNDS), ROUNDS):
        times += [time * scale for time in order.sample(quantiles[first::ROUNDS], EACH)]
    return times
