"""Reading what a client submits, which may be broken or hostile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from dfmesh.netir import NetIR, check_nets

MAX_PROBLEMS = 50
"""Problems of a submission that are told."""

_REMEMBERED = 32
"""Submissions that are not read and checked again; the same pipeline is often submitted many times in a row."""


def read_nets(submitted: Mapping[str, bytes]) -> tuple[dict[str, NetIR], list[str]]:
    """Read the nets of a job and check them together.

    Args:
        submitted: Bytes of a NetIR by site.

    Returns:
        Net by site, and what is wrong with them; there are no nets if anything is.
    """
    nets, problems = _read(tuple(submitted.items()))
    return dict(nets), list(problems)


@lru_cache(maxsize=_REMEMBERED)
def _read(submitted: tuple[tuple[str, bytes], ...]) -> tuple[dict[str, NetIR], list[str]]:
    nets: dict[str, NetIR] = {}
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
