"""Sharing out what several takers of a shipment may bear, so that it raises most what they pay at the least."""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.problem import Indices, Whole

PARTS = (4, 2, 1)
"""Parts of what could still be shared out that one taker may have at a time, so that the first does not get it all."""

TURNS = (4, 2, 1, 1, 1)
"""The same where all takers get theirs at once, which are less where they want more than there is."""

ALMOST = 1 - 1e-9
"""Factor that keeps rounded parts from being more than the whole."""


def raised_together(needs: Whole, pool: Whole) -> Whole:
    """Raise what all takers pay at the least, per site, out of a pool per site: `[taker, site]` and `[site]`."""
    given = np.zeros_like(needs)
    pool = pool.copy()
    for part in TURNS:
        least = needs.min(1)
        level = least + ((needs + pool).min(1) - least) // part
        more = np.clip(level[:, None] - needs, 0, pool)
        wanted = more.sum(0)
        lowered = np.minimum(1.0, pool / np.maximum(wanted, 1)) * ALMOST
        more = np.where(wanted > pool, np.floor(more * lowered), more).astype(np.int64)
        pool -= more.sum(0)
        needs = needs + more
        given += more
    return given


def raised(needs: list[Whole], columns: list[Indices], pool: Whole) -> list[Whole]:
    """Raise what each taker pays at the least, per site of the source, out of a pool per site; the pool is used up."""
    given = [np.zeros_like(need) for need in needs]
    for part in PARTS:
        for which, at in enumerate(columns):
            free = pool[:, at]
            least = needs[which].min(1)
            level = least + ((needs[which] + free).min(1) - least) // part
            more = np.minimum(np.maximum(level[:, None] - needs[which], 0), free)
            pool[:, at] -= more
            needs[which] = needs[which] + more
            given[which] += more
    return given


__all__ = ["raised", "raised_together"]
