"""The plan check of scopes: every site counts the same frames, and reports them to a loop that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dfmesh.netir.net import ROOT_SCOPE, Collect, Loop, NetIR, Reduce, Scope

SiteFault = tuple[str, str]
"""A site, and what is wrong with its net."""


def scope_faults(nets: Mapping[str, NetIR]) -> Iterator[SiteFault]:
    """Look for scopes that sites describe differently, or otherwise than they are.

    Args:
        nets: Net by site.
    """
    scopes: dict[int, tuple[str, Scope]] = {}
    for site, net in nets.items():
        yield from _own_faults(site, net, scopes)
    heads = _heads(nets)
    own = {site: {scope.id for scope in net.scopes} for site, net in nets.items()}
    taking_part = _taking_part(nets, scopes)
    for number, (site, scope) in scopes.items():
        for message in _kinship_faults(scope, scopes):
            yield site, message
        for message in _head_faults(scope, heads.get(number, []), nets[site].homesite):
            yield site, message
        yield from _presence_faults(site, scope, taking_part.get(number, set()), own)
    for body, loops in heads.items():
        if body not in scopes:
            yield loops[0][0], f"a loop opens frames of scope s{body}, which is not there"


def _own_faults(site: str, net: NetIR, scopes: dict[int, tuple[str, Scope]]) -> Iterator[SiteFault]:
    own: set[int] = set()
    for scope in net.scopes:
        if scope.id in own:
            yield site, f"scope s{scope.id} stands in its net twice"
        own.add(scope.id)
        other, known = scopes.setdefault(scope.id, (site, scope))
        if known != scope:
            yield site, f"scope s{scope.id} is described otherwise than at site {other!r}"
    if ROOT_SCOPE not in own:
        yield site, "its net has no root scope"
    for transition in net.transitions:
        if transition.scope not in own:
            yield site, f"{transition.name} ({transition.node}) is in scope s{transition.scope}, which is not there"


def _heads(nets: Mapping[str, NetIR]) -> dict[int, list[tuple[str, int]]]:
    """Give site and scope of the loops that open frames of each scope."""
    heads: dict[int, list[tuple[str, int]]] = {}
    for site, net in nets.items():
        for transition in net.transitions:
            if isinstance(transition.action, Loop):
                heads.setdefault(transition.action.body, []).append((site, transition.scope))
    return heads


def _taking_part(nets: Mapping[str, NetIR], scopes: Mapping[int, tuple[str, Scope]]) -> dict[int, set[str]]:
    """Give the sites that have something to do in each scope, or in one below it."""
    taking_part: dict[int, set[str]] = {ROOT_SCOPE: set()}
    for site, net in nets.items():
        for transition in net.transitions:
            action = transition.action
            current: int | None = action.body if isinstance(action, Collect | Reduce) else transition.scope
            while current is not None and site not in taking_part.setdefault(current, set()):
                taking_part[current].add(site)
                current = scopes[current][1].parent if current in scopes else None
    taking_part[ROOT_SCOPE].update(nets)
    return taking_part


def _kinship_faults(scope: Scope, scopes: Mapping[int, tuple[str, Scope]]) -> Iterator[str]:
    if scope.id == ROOT_SCOPE:
        if scope.parent is not None or scope.depth != 1:
            yield "the root scope has a parent, or frames of other than one number"
        return
    if scope.parent is None or scope.parent not in scopes:
        yield f"scope s{scope.id} is inside s{scope.parent}, which is not there"
        return
    _, parent = scopes[scope.parent]
    if scope.depth != parent.depth + 1:
        yield f"scope s{scope.id} has frames of {scope.depth} numbers, and s{parent.id} around it of {parent.depth}"
    if parent.tolerant and not scope.tolerant:
        yield f"scope s{scope.id} does not tolerate errors, and s{parent.id} around it does"


def _head_faults(scope: Scope, loops: list[tuple[str, int]], homesite: str) -> Iterator[str]:
    if scope.id == ROOT_SCOPE:
        if loops:
            yield "a loop opens frames of the root scope"
        if scope.head_site != homesite:
            yield f"the root scope reports to site {scope.head_site!r}, and the homesite is {homesite!r}"
    elif len(loops) != 1:
        yield f"{len(loops) or 'no'} loops open frames of scope s{scope.id}"
    elif loops[0][0] != scope.head_site:
        yield f"scope s{scope.id} reports to site {scope.head_site!r}, and its loop is at {loops[0][0]!r}"
    elif loops[0][1] != scope.parent:
        yield f"scope s{scope.id} is inside s{scope.parent}, and its loop in s{loops[0][1]}"


def _presence_faults(site: str, scope: Scope, sites: set[str], own: Mapping[str, set[int]]) -> Iterator[SiteFault]:
    expected = tuple(sorted(sites))
    if scope.participants != expected:
        stated, found = (", ".join(names) or "nobody" for names in (scope.participants, expected))
        yield site, f"in scope s{scope.id} take part {found}; it says {stated}"
    for other in (*expected, scope.head_site):
        if scope.id not in own.get(other, ()):
            yield other, f"it takes part in scope s{scope.id}, which is not in its net"
