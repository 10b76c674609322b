"""JobShape: what all jobs with the same nets have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dfmesh.engine.attempts import once_only, survivable
from dfmesh.netir import NetIR, Transition

_REMEMBERED = 8
_known: dict[int, tuple[Mapping[str, NetIR], JobShape]] = {}
"""By the mapping of nets: the same pipeline is often submitted many times in a row."""


class SubmittedNets(dict[str, NetIR]):
    """Nets of a submission, which remember their shape for as long as they are remembered themselves."""

    shape: JobShape | None = None


class JobShape(NamedTuple):
    """What follows from the nets of a job.

    Attributes:
        sites: Sites that take part. One that has nothing to do, as often the homesite, does not.
        homesite: The homesite.
        once: What must not run twice, with the net it is in.
        survivable: Sites without which the job can be begun again.
        keeping: Sites that keep what must not run twice.
    """

    sites: tuple[str, ...]
    homesite: str
    once: tuple[tuple[NetIR, Transition], ...]
    survivable: frozenset[str]
    keeping: tuple[str, ...]


def shape_of(nets: Mapping[str, NetIR]) -> JobShape:
    """Give the shape of jobs with these nets.

    Args:
        nets: Net by site; must not change any more.
    """
    if isinstance(nets, SubmittedNets):
        if nets.shape is None:
            nets.shape = _shape_of(nets)
        return nets.shape
    known = _known.get(id(nets))
    if known is None or known[0] is not nets:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        known = _known[id(nets)] = (nets, _shape_of(nets))
    return known[1]


def _shape_of(nets: Mapping[str, NetIR]) -> JobShape:
    return JobShape(
        tuple(site for site, net in nets.items() if net.transitions) or tuple(nets),
        next((net.homesite for net in nets.values()), ""),
        once_only(nets.values()),
        survivable(nets),
        tuple(site for site, net in nets.items() if once_only((net,))),
    )


__all__ = ["JobShape", "SubmittedNets", "shape_of"]
