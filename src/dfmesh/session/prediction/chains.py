"""Chains of causes: what had to happen, one after the other, before something could.

Every token of a predicted run carries the chain that led to it. That of the job's end is the critical path: it has no
gaps, since whatever waits for a link, a worker or a loop's window is caused by what made that free.
"""

from __future__ import annotations

from typing import Any, TypeAlias

MOST_LINKS = 256
"""Length from which on the older part of a chain is kept as a sum, so that long jobs have flat memory."""

MOST_SUMS = 16
"""Sums in a row that become one: with thousands of sites a sum has thousands of stages, and is not made anew often."""


class Stage:
    """Something that takes time, as often as it happens.

    Attributes:
        kind: `call`, `load` (an adapter's libraries), `send`, `lag`, or `start` and `end` of the job.
        what: Operation of a call; empty for others.
        node: Statement of a call; empty for others.
        site: Where it happens; for a send the sending site.
        destination: Receiving site of a send; empty for others.
    """

    __slots__ = ("destination", "kind", "node", "site", "what")

    def __init__(self, kind: str, site: str, what: str = "", node: str = "", destination: str = "") -> None:
        self.kind = kind
        self.site = site
        self.what = what
        self.node = node
        self.destination = destination


Sums = dict[Stage, list[float]]
"""Stage to its seconds and how often it happened."""

Chain: TypeAlias = "tuple[Any, Any, float, int] | None"
"""What was before, a stage (or `Sums` of many), its seconds (or the number of sums in a row), the number of links."""


def extended(chain: Chain, stage: Stage, seconds: float) -> Chain:
    """Add something that took time."""
    if seconds <= 0.0:
        return chain
    if chain is None:
        return (None, stage, seconds, 1)
    links: int = chain[3]
    if links < MOST_LINKS:
        return (chain, stage, seconds, links + 1)
    return (_shortened(chain), stage, seconds, 2)


def summed(chain: Chain) -> Sums:
    """Add up a chain by stage, the latest first."""
    sums: Sums = {}
    while chain is not None:
        chain = _add(chain, sums)
    return sums


def _add(chain: tuple[Any, Any, float, int], sums: Sums) -> Chain:
    """Add the last link of a chain to sums; gives what was before."""
    before, stage, seconds, _ = chain
    for item, (more, count) in stage.items() if isinstance(stage, dict) else ((stage, (seconds, 1)),):
        entry = sums.get(item)
        if entry is None:
            sums[item] = [more, count]
        else:
            entry[0] += more
            entry[1] += count
    return before  # type: ignore[no-any-return]


def _shortened(chain: Chain) -> Chain:
    """Give a chain of sums alone."""
    sums: Sums = {}
    older = chain
    while older is not None and not isinstance(older[1], dict):
        older = _add(older, sums)
    if older is None:
        return (None, sums, 1, 1)
    if older[2] < MOST_SUMS:
        return (older, sums, older[2] + 1, 1)
    return (None, summed(chain), 1, 1)
