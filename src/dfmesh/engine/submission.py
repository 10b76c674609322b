"""Reading what a client submits, which may be broken or hostile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from dfmesh.engine.job_shape import SubmittedNets
from dfmesh.netir import NetIR, check_nets

MAX_PROBLEMS = 50
"""Problems of a submission that are told."""

_REMEMBERED = 32
"""Submissions that are not read and checked again; the same pipeline is often submitted many times in a row."""

LARGEST = 2**20
"""Bytes of a submission that is remembered."""


def read_nets(submitted: Mapping[str, bytes]) -> tuple[dict[str, NetIR], list[str]]:
    """Read the nets of a job and check them together.

    Args:
        submitted: Bytes of a NetIR by site.

    Returns:
        Net by site, not to be changed, and what is wrong with them; there are no nets if anything is.
    """
    small = sum(map(len, submitted.values())) <= LARGEST
    nets, problems = (_read if small else _read_anew)(tuple(submitted.items()))
    return nets, list(problems)


def _read_anew(submitted: tuple[tuple[str, bytes], ...]) -> tuple[dict[str, NetIR], list[str]]:
    nets = SubmittedNets()
    for site, data in submitted:
        try:
            nets[site] = NetIR.from_bytes(data)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            return {}, [f"the net for site {site!r} cannot be read: {error}"]
        except RecursionError:
            return {}, [f"the net for site {site!r} cannot be read: its expressions are too deep"]
    faults = check_nets(nets)
    problems = [f"the plan is not sound: {fault}" for fault in faults[:MAX_PROBLEMS]]
    return ({}, problems) if problems else (nets, [])


_read = lru_cache(maxsize=_REMEMBERED)(_read_anew)
