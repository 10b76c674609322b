"""Whether rules between sites of variables can all be kept, and some choice that keeps them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from dfmesh.compiler.placement.problem import Flags

Rows = dict[int, Flags]
"""For some sites of a first variable the sites that a second may have then; it may have any for the others."""


@dataclass(frozen=True, slots=True)
class Consistency:
    """What was found.

    Attributes:
        sites: A site per variable that keeps all rules; None if none was found.
        complete: Whether that is certain.
    """

    sites: dict[int, int] | None
    complete: bool


def consistent(domain: Mapping[int, Flags], rules: Mapping[tuple[int, int], Rows], steps: int) -> Consistency:
    """Look for sites that keep all rules: rule out by pairs, then try, taking back what leads nowhere.

    Args:
        domain: Sites that each variable may have.
        rules: For pairs of variables.
        steps: Choices that may be tried.
    """
    search = _Consistency(rules)
    first = search.narrowed(dict(domain), domain)
    if first is None:
        return Consistency(None, complete=True)
    todo = [first]
    while todo:
        now = todo.pop()
        open_ones = [variable for variable in search.bound if now[variable].sum() > 1]
        if not open_ones:
            return Consistency({variable: int(sites.argmax()) for variable, sites in now.items()}, complete=True)
        variable = min(open_ones, key=lambda variable: (int(now[variable].sum()), variable))
        for site in reversed(np.flatnonzero(now[variable]).tolist()):
            steps -= 1
            only = np.zeros_like(now[variable])
            only[site] = True
            narrower = search.narrowed(now | {variable: only}, [variable])
            if narrower is not None:
                todo.append(narrower)
        if steps < 0:
            return Consistency(None, complete=False)
    return Consistency(None, complete=True)


class _Consistency:
    def __init__(self, rules: Mapping[tuple[int, int], Rows]) -> None:
        self._rules = rules
        self._of: dict[int, list[tuple[int, int]]] = {}
        for pair in rules:
            for variable in pair:
                self._of.setdefault(variable, []).append(pair)
        self.bound = sorted(self._of)

    def narrowed(self, domain: dict[int, Flags], changed: Iterable[int]) -> dict[int, Flags] | None:
        """Rule out what no site on the other side of a rule allows; None if nothing is left somewhere."""
        if not all(domain[variable].any() for variable in changed):
            return None
        waiting = deque(changed)
        while waiting:
            variable = waiting.popleft()
            for first, second in self._of.get(variable, ()):
                rows = self._rules[first, second]
                if variable == first:
                    other, left = second, _reachable(rows, domain[first], domain[second])
                else:
                    other, left = first, _allowing(rows, domain[first], domain[second])
                if left is not None:
                    if not left.any():
                        return None
                    domain[other] = left
                    waiting.append(other)
        return domain


def _reachable(rows: Rows, first: Flags, second: Flags) -> Flags | None:
    """Give the sites of the second that some site of the first allows; None if those are all."""
    sites = np.flatnonzero(first).tolist()
    if len(sites) > len(rows) or any(site not in rows for site in sites):
        return None
    left: Flags = second & np.logical_or.reduce([rows[site] for site in sites])
    return None if (left == second).all() else left


def _allowing(rows: Rows, first: Flags, second: Flags) -> Flags | None:
    """Give the sites of the first that allow some site of the second; None if those are all."""
    against = [site for site, allowed in rows.items() if first[site] and not (allowed & second).any()]
    if not against:
        return None
    left = first.copy()
    left[against] = False
    return left


__all__ = ["Consistency", "Rows", "consistent"]
