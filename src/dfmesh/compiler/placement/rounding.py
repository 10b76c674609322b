"""Placements from a smoothed relaxation: it tells which sites are worth choosing, for all variables at once.

A placement is made by fixing the surest variables, letting the relaxation take that in, and so on. Then parts of it,
some variables that are near one another, are made anew in the same way, with all others fixed where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from dfmesh.compiler.placement.pair_smoothing import PairSmoothing
from dfmesh.compiler.placement.problem import Floats, Indices, Problem

SURE = 0.97
"""Weight of a site from which on a variable is fixed in any case."""

NEIGHBOURS = 12
"""Neighbours of a variable that a part is continued with at most."""

CROWD = 9
"""Variables of a shipment up to which each is a neighbour of all others; beyond, takers of the sender alone."""

DOUBTFUL = 0.6
"""Share of the variables, the least sure, from which parts start."""


@dataclass(frozen=True, slots=True)
class Care:
    """How carefully a placement is made.

    Attributes:
        turns: How often variables are fixed.
        rounds: Steps of the ascent between.
        share: Share of the open variables that is fixed each time.
        warm: Temperature at the beginning, as a share of what a usual shipment is charged.
        cool: At the end.
        rough: Whether steps of the ascent may be rough.
    """

    turns: int
    rounds: int
    share: float
    warm: float
    cool: float
    rough: bool


PART = Care(4, 8, 0.35, 0.1, 0.03, rough=True)


def rounded(smoothing: PairSmoothing, scale: float, care: Care) -> list[int]:
    """Give the site of each variable.

    Args:
        smoothing: The relaxation.
        scale: What a usual shipment is charged.
        care: How carefully.
    """
    smoothing.ascend(2 * care.rounds, care.warm * scale, care.warm * scale, rough=care.rough)
    for turn in range(1, care.turns + 1):
        keep = _surest(smoothing, care.share if turn < care.turns else 1.0)
        if keep is None:
            break
        smoothing = smoothing.restricted(keep)
        warmth = care.warm * (care.cool / care.warm) ** (turn / care.turns) * scale
        if turn < care.turns:
            smoothing.ascend(care.rounds, warmth, warmth, rough=care.rough)
    found: list[int] = smoothing.site.tolist()
    return found


def likeliest(smoothing: PairSmoothing) -> list[int]:
    """Give the site of each variable that weighs most, whatever the others have."""
    keep = _surest(smoothing, 1.0)
    found: list[int] = (smoothing.site if keep is None else smoothing.site[keep]).tolist()
    return found


def _surest(smoothing: PairSmoothing, share: float) -> np.ndarray | None:
    """Tell which choices are left when the surest variables are fixed; None if all are."""
    starts, weights = smoothing.starts, smoothing.weights
    lengths = np.diff(np.append(starts, len(weights)))
    sureness = np.maximum.reduceat(weights, starts)
    open_ones = np.flatnonzero(lengths > 1)
    if not len(open_ones):
        return None
    order = open_ones[np.argsort(-sureness[open_ones], kind="stable")]
    count = max(1, int(len(order) * share), int((sureness[open_ones] > SURE).sum()))
    fixed = np.zeros(len(starts), np.bool_)
    fixed[order[:count]] = True
    number = np.arange(len(weights))
    best = np.where(weights >= np.repeat(sureness, lengths), number, len(weights))
    chosen = np.repeat(np.minimum.reduceat(best, starts), lengths)
    keep: np.ndarray = ~np.repeat(fixed, lengths) | (number == chosen)
    return keep


class Parts:
    """Draws variables that are near one another; the same calls give the same parts."""

    def __init__(self, problem: Problem, sureness: Floats, doubtful: float = DOUBTFUL) -> None:
        """Note who is near whom.

        Args:
            problem: The problem.
            sureness: Of each variable.
            doubtful: Share of the variables, the least sure, from which parts start.
        """
        near: list[set[int]] = [set() for _ in problem.members]
        for shipment in problem.shipments:
            group = (shipment.source, *shipment.consumers)
            for variable in group:
                near[variable].update(group if len(group) <= CROWD else group[:1])
        self._near = [sorted(others) for others in near]
        self._doubtful = doubtful
        self._random = Random(0)  # noqa: S311
        self.look_at(sureness)

    def look_at(self, sureness: Floats) -> None:
        """Let parts start from variables that are unsure now."""
        order = [variable for variable in np.argsort(sureness, kind="stable").tolist() if self._near[variable]]
        self._starts = order[: max(1, int(len(order) * self._doubtful))]

    def draw(self, size: int) -> list[int]:
        """Draw some variables, as many as are said or fewer."""
        part = [self._starts[self._random.randrange(len(self._starts))]]
        known = set(part)
        for variable in part:
            if len(part) >= size:
                break
            around = [other for other in self._near[variable] if other not in known]
            self._random.shuffle(around)
            part += around[:NEIGHBOURS]
            known.update(part)
        return part[:size]


def improved(
    smoothing: PairSmoothing,
    scale: float,
    parts: Parts,
    start: tuple[list[int], int],
    total: Callable[[list[int]], int],
    trials: int,
    size: int,
    care: Care,
) -> tuple[list[int], int]:
    """Make parts of a placement anew, and give the cheapest with what it is charged.

    Args:
        smoothing: The relaxation, after an ascent; not changed.
        scale: What a usual shipment is charged.
        parts: Where the parts come from.
        start: A placement, and what it is charged.
        total: Says what a placement is charged.
        trials: How many parts are made anew.
        size: Variables of a part.
        care: How carefully a part is made.
    """
    chosen, least = start
    for _ in range(trials):
        free = np.zeros(len(chosen), np.bool_)
        free[parts.draw(size)] = True
        at: Indices = np.array(chosen, np.intp)
        here = smoothing.site == at[smoothing.variable]
        # A site may have been found too dear for anything better, though it is part of the best placement so far.
        fixed = np.zeros(len(chosen), np.bool_)
        fixed[smoothing.variable[here]] = True
        keep = here | (free | ~fixed)[smoothing.variable]
        other = rounded(smoothing.restricted(keep), scale, care)
        found = total(other)
        if found <= least:
            chosen, least = other, found
    return chosen, least


__all__ = ["PART", "Care", "Parts", "improved", "likeliest", "rounded"]
