"""Compares what a run gave with what the plain evaluation expects."""

from __future__ import annotations

from collections import Counter
from typing import Any

from calc_plain import canonical

from .conftest import Outcome
from .interpreter import Expected, Run

Blocks = tuple[Run, ...]


def differences(expected: Expected, found: Outcome) -> list[str]:
    """List how a run differs from what is expected; empty if it does not.

    What stands in the block of a TryFromCache comes or does not, as the cache has the key; but all of a block comes or
    nothing, and of those that ask for a key at least one computes it.
    """
    lines, came, absent = _compare_items(expected, found)
    more, failed, not_failed = _compare_failures(expected, found)
    came, absent = [*came, *failed], [*absent, *not_failed]
    ran = expected.computes.union(*came)
    lines += more
    lines += [f"only a part of the block {blocks[-1]} came" for blocks in absent if ran.issuperset(blocks)]
    lines += _nobody_computes(expected, ran, absent)
    status = "failed" if found.errors else "finished"
    if found.status != status:
        lines.append(f"status: expected {status}, found {found.status}")
    return lines


def _compare_items(expected: Expected, found: Outcome) -> tuple[list[str], list[Blocks], list[Blocks]]:
    left = Counter((place, tuple(frame), canonical(value)) for place, frame, value in found.items)
    lines: list[str] = []
    came: list[Blocks] = []
    absent: list[Blocks] = []
    for place, frame, value, blocks in expected.items:
        key = (place, frame, canonical(value))
        if left[key]:
            left[key] -= 1
            came.append(blocks)
        elif expected.certain(blocks):
            got = [text for other, at, text in left.elements() if (other, at) == (place, frame)]
            lines.append(f"place {place!r} frame {frame}: expected {key[2]}, found {got}")
        else:
            absent.append(blocks)
    lines += [f"place {place!r} frame {frame}: unexpected {text}" for place, frame, text in left.elements()]
    return lines, came, absent


def _compare_failures(expected: Expected, found: Outcome) -> tuple[list[str], list[Blocks], list[Blocks]]:
    origins = found.origins()
    certain = {(node, frame) for node, frame, blocks in expected.failures if expected.certain(blocks)}
    if not certain <= origins <= expected.origins:
        described = "; ".join(map(str, found.errors))
        missing, unexpected = sorted(certain - origins), sorted(origins - expected.origins)
        return [f"origins: missing {missing}, unexpected {unexpected}, found {described}"], [], []
    times = Counter((node, frame) for node, frame, _ in expected.failures)
    alone = [(blocks, (node, frame)) for node, frame, blocks in expected.failures if times[node, frame] == 1]
    return (
        [],
        [blocks for blocks, origin in alone if origin in origins],
        [blocks for blocks, origin in alone if origin not in origins],
    )


def _nobody_computes(expected: Expected, ran: set[Run], absent: list[Blocks]) -> list[str]:
    """Find keys that were asked for, and of which it is seen that nobody has computed them."""
    idle = {blocks[-1] for blocks in absent}
    return [
        f"nobody has computed {key}"
        for key, askers in expected.groups.items()
        if all(run in idle and run not in ran and ran.issuperset(around) for run, around in askers)
    ]


def described(found: Any) -> str:
    """Write what came, for a failing test."""
    return "\n".join(f"{place!r} {frame}: {canonical(value)}" for place, frame, value in sorted(found.items, key=str))
