"""Nodes in layers that can be computed at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Level:
    """Nodes that can be computed at once, with their edges ordered by node; `starts` marks each node's first."""

    nodes: npt.NDArray[np.intp]
    edges: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]


def levels_of(count: int, edges: Iterable[tuple[int, int]]) -> list[Level]:
    """Put nodes that an edge `(node, earlier)` names into levels, those without an earlier one left out."""
    before: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for edge, (node, earlier) in enumerate(edges):
        before[node].append((edge, earlier))
        after[earlier].append(node)
    waiting = [len(found) for found in before]
    ready = [node for node in range(count) if not waiting[node]]
    levels = []
    while ready:
        following = []
        for node in ready:
            for later in after[node]:
                waiting[later] -= 1
                if not waiting[later]:
                    following.append(later)
        ready = sorted(following)
        if ready:
            counts = np.array([len(before[node]) for node in ready], np.intp)
            found = np.array([edge for node in ready for edge, _ in before[node]], np.intp)
            levels.append(Level(np.array(ready, np.intp), found, np.concatenate(([0], counts.cumsum()[:-1]))))
    return levels


__all__ = ["Level", "levels_of"]
