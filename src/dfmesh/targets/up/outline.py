"""What a client has to know of a job to show its results in order, read from what was submitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dfmesh.netir import NetIR, SendYield


class JobOutline(NamedTuple):
    """The places of a job's results.

    Attributes:
        sources: Place to the number of Yields that send to it.
        order: Position of each Yield in the pipeline, by the id of the statement.
    """

    sources: dict[str, int]
    order: dict[str, int]


def outline_of(nets: Mapping[str, NetIR]) -> JobOutline:
    """Read the outline of a job from its nets: transitions are numbered in the order of the pipeline."""
    yields = sorted(
        (transition.id, transition.node, transition.action.place)
        for net in nets.values()
        for transition in net.transitions
        if isinstance(transition.action, SendYield)
    )
    sources: dict[str, int] = {}
    for _, _, place in yields:
        sources[place] = sources.get(place, 0) + 1
    return JobOutline(sources, {node: number for number, node, _ in yields})
