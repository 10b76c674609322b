"""How much is made of smoothed relaxations, and at which temperatures."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dfmesh.compiler.placement.rounding import PART, Care


@dataclass(frozen=True, slots=True)
class Ascent:
    """How much is made of a smoothed relaxation.

    Attributes:
        effort: Offers or ways that the ascent may look at, at the beginning.
        rounds: Steps of it at most.
        warm: Temperature at the beginning, as a share of what a usual shipment is charged.
        cool: At the end.
        again: Steps by which it is continued each time.
        repeats: How often that is done, each time without what is known to be too dear by then.
        parts: How many parts of a placement are made anew each time.
        part: Variables of a part.
        doubtful: Share of the variables from which parts start.
        worthwhile: How much dearer than the best a site may look to be part of a placement, as such a share.
        care: How carefully a part is.
    """

    effort: int
    rounds: int
    warm: float
    cool: float
    again: int
    repeats: int
    parts: int
    part: int
    doubtful: float
    worthwhile: float
    care: Care


PAIRED = Ascent(
    7_000_000,
    200,
    0.5,
    0.005,
    again=4,
    repeats=4,
    parts=12,
    part=35,
    doubtful=0.1,
    worthwhile=1.0,
    care=PART,
)
CONTINUED = replace(PAIRED, effort=9_000_000, rounds=150, warm=0.3, again=12)
"""Where an ascent begins with what messages have moved."""

AMONG_FEW = replace(PAIRED, rounds=200, warm=1.0, cool=0.01)
"""Among a few sites of each variable."""

BRANCH = replace(PAIRED, rounds=60, warm=1.0, cool=0.01)
"""Where some variables are fixed."""

WHOLE_AMONG_FEW = Care(10, 20, 0.2, 0.02, 0.01, rough=False)

__all__ = ["AMONG_FEW", "BRANCH", "CONTINUED", "PAIRED", "WHOLE_AMONG_FEW", "Ascent"]
