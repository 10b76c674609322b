"""Reading what a client submits, which may be broken or hostile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from dfmesh.engine.job_shape import SubmittedNets
from dfmesh.netir import NetIR, check_nets

MAX_PROBLEMS = 50
"""Problems of a submission that are told."""

_SMALL = 2**16
"""Bytes of a small submission. Read, it takes some six times as much memory."""

_LARGEST = 2**20
"""Bytes of a submission that is remembered."""


def read_nets(submitted: Mapping[str, bytes]) -> tuple[dict[str, NetIR], list[str]]:
    """Read the nets of a job and check them together.

    Args:
        submitted: Bytes of a NetIR by site.

    Returns:
        Net by site, not to be changed, and what is wrong with them; there are no nets if anything is.
    """
    size = sum(map(len, submitted.values()))
    read = _read_small if size <= _SMALL else _read_large if size <= _LARGEST else _read_anew
    nets, problems = read(tuple(submitted.items()))
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


# The same pipeline is often submitted many times in a row.
_read_small = lru_cache(maxsize=32)(_read_anew)
_read_large = lru_cache(maxsize=2)(_read_anew)
