"""What a site's own rules of residency say about the part of a job that it is asked to run, whoever compiled it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from dfmesh.config import ResidencyRule
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.errors import DfmeshError, SourceLocation
from dfmesh.netir import (
    NOTHING_BOUND,
    BoundValues,
    Breach,
    Call,
    NetIR,
    Reduce,
    Route,
    Sites,
    Store,
    Transition,
    follow,
    may_have,
    reduced,
    sites_among,
    with_clients,
)

MAX_OBJECTIONS = 20
"""Objections to one net that are told."""

_WAY_OUT = (
    "the plan was not compiled with that rule; load the federation file again (Federation.load), and prepare and "
    "submit the pipeline in a session of it"
)

_CALLS = (Call, Reduce)
_EVERYWHERE = frozenset({""})  # Of no site's name, so that it is within no rule.


class ResidencyError(DfmeshError):
    """A value would get, or has got, where the site that made it does not allow it to be."""

    shows_no_value = True


def bound_values(net: NetIR, adapters: SiteAdapters) -> BoundValues:
    """Follow what the rules of a site, and of those that send to it, bind in its part of a job.

    Args:
        net: Its part.
        adapters: The site's own.
    """
    made, arriving = _made(net, adapters), _arriving(net)
    if not made and not arriving:
        return NOTHING_BOUND
    bound = follow([net], made, arriving)
    by_id = {transition.id: transition for transition in net.transitions}
    rules: dict[Sites, str] = {}
    for number, sites in made.items():
        rules.setdefault(sites, _place_of_rule(by_id[number], adapters))
    reductions = reduced([net], made, arriving)
    alone = frozenset(_alone(net, made, reductions, bound))
    return dataclasses.replace(bound, alone=alone, touched=_touched(net, reductions, bound), rules=rules)


def _touched(net: NetIR, reductions: dict[int, Sites], bound: BoundValues) -> dict[int, frozenset[Sites]]:
    """Add to what bound values touch what the single value of a reduction would, which is given as it is."""
    touched = dict(bound.touched)
    for number, sites in follow([net], reductions, {}).touched.items():
        touched[number] = touched.get(number, frozenset()) | sites
    return touched


def _alone(net: NetIR, made: dict[int, Sites], reductions: dict[int, Sites], planned: BoundValues) -> Iterator[int]:
    """Find reductions from which a single value would go, unmerged, where the plan lets only merged ones go."""
    for reduction, sites in reductions.items():
        own = made.get(reduction)
        if own is not None and own <= sites:
            continue
        single = follow([net], {reduction: sites}, {})
        unstated = (
            route for route in single.routes if route not in net.residency or not sites.issuperset(net.residency[route])
        )
        kept = (
            item.id
            for item in net.transitions
            if isinstance(item.action, Store) and item.id in single.transitions
            if not planned.transitions.get(item.id, _EVERYWHERE) <= sites
        )
        if single.breaches or any(True for _ in unstated) or any(True for _ in kept):
            yield reduction


def residency_objections(net: NetIR, adapters: SiteAdapters) -> list[str]:
    """Say on which ways a net would take values to where they may not be; nothing is loaded for that.

    Args:
        net: What the site is asked to run; all its operations are offered here.
        adapters: The site's own.
    """
    made, arriving = _made(net, adapters), _arriving(net)
    if not made and not arriving:
        return []
    bound = follow([net], made, arriving)
    if not (bound.breaches or bound.routes or arriving):
        return []
    found = [*_misplaced(net, arriving), *_breaches(net, bound.breaches, adapters), *_unstated(net, bound, adapters)]
    return list(dict.fromkeys(found))[:MAX_OBJECTIONS]


def check_told(net: NetIR, route: int, sites: Iterable[str]) -> None:
    """Hold what a site says of what it sends against what this site's net was checked with.

    Args:
        net: The receiver's part of the job.
        route: Route of what is about to come.
        sites: Where that may be, as its sender says.

    Raises:
        ResidencyError: the net takes it to be allowed at more sites.
    """
    stated = net.residency.get(route)
    if stated is None or not frozenset(sites).issuperset(stated):
        source = net.arrivals[route].source if route in net.arrivals else "another site"
        raise ResidencyError(
            f"what {source} sends may only be at {_listed(sites)}; the plan of the job does not say so to {net.site}"
        )


def _rule(operation: str, provider: str | None, adapters: SiteAdapters) -> ResidencyRule | None:
    config = adapters.config
    own = config.adapter(adapters.site_name, operation, provider).residency
    return own if own is not None else config.sites[adapters.site_name].residency


def _made(net: NetIR, adapters: SiteAdapters) -> dict[int, Sites]:
    rules = {named: _rule(*named, adapters) for named in net.operations()}
    if not any(rule is not None for rule in rules.values()):
        return {}
    sites = {named: may_have(net.site, rule.sites) for named, rule in rules.items() if rule is not None}
    made = {}
    for transition in net.transitions:
        action = transition.action
        if isinstance(action, _CALLS) and (action.operation, action.provider) in sites:
            made[transition.id] = sites[action.operation, action.provider]
    return made


def _arriving(net: NetIR) -> dict[int, Sites]:
    return {
        route: frozenset(sites)
        for route, sites in net.residency.items()
        if route in net.arrivals and net.arrivals[route].source != net.site
    }


def _misplaced(net: NetIR, arriving: dict[int, Sites]) -> Iterator[str]:
    for route, sites in arriving.items():
        if net.site not in sites:
            yield f"would get from {net.arrivals[route].source} what may only be at {_listed(sites)}"


def _breaches(net: NetIR, breaches: Iterable[Breach], adapters: SiteAdapters) -> Iterator[str]:
    by_id = {transition.id: transition for transition in net.transitions}
    for breach in breaches:
        how = "yield to the client, at" if breach.to_client else "send to"
        rule = f"it may only be at {_listed(breach.sites)}"
        if breach.to_client:
            rule += f", and {_clients(breach.sites)}"
        if breach.arrives:
            what = f"what {net.arrivals[breach.origin].source} sends it"
        else:
            origin = by_id[breach.origin]
            what = f"the result of {_statement(origin)}"
            rule += f" by {_place_of_rule(origin, adapters)}; "
            if breach.to_client:
                rule += f"clients of {breach.destination} may have it if the rule names {breach.destination}; "
            rule += _WAY_OUT
        by = "" if breach.sender.id == breach.origin and not breach.arrives else f" by {_statement(breach.sender)}"
        yield f"may not {how} site {breach.destination!r}{by} {what}: {rule}"


def _unstated(net: NetIR, bound: BoundValues, adapters: SiteAdapters) -> Iterator[str]:
    """Find routes of which the plan says less than the rules do, so that their receivers would not keep them."""
    sent: dict[int, tuple[Transition, Route]] = {
        route.id: (transition, route) for transition in net.transitions for route in transition.routes
    }
    for number, sites in bound.routes.items():
        stated = net.residency.get(number)
        if (stated is None or not sites.issuperset(stated)) and sent[number][1].site in sites:
            transition, route = sent[number]
            yield (
                f"may send to site {route.site!r} what {_statement(transition)} gives only if the plan says that it "
                f"may only be at {_listed(sites)}, by {_places_of_rules(net, sites, adapters)}; {_WAY_OUT}"
            )


def _place_of_rule(origin: Transition, adapters: SiteAdapters) -> str:
    action = origin.action
    rule = _rule(action.operation, action.provider, adapters) if isinstance(action, _CALLS) else None
    location: SourceLocation | None = rule.location if rule is not None else None
    return "a rule of residency" + (f" ({location})" if location is not None else "")


def _places_of_rules(net: NetIR, sites: Sites, adapters: SiteAdapters) -> str:
    """Name the site's own rules which together leave these sites, or say that it is that of another."""
    made = _made(net, adapters)
    own = [item for item in net.transitions if item.id in made and made[item.id] >= sites]
    return ", ".join(dict.fromkeys(_place_of_rule(item, adapters) for item in own)) or "a rule of another site"


def _statement(transition: Transition) -> str:
    where = ", ".join(part for part in (transition.node, transition.location) if part)
    return f"{transition.name} ({where})" if where else transition.name


def _listed(sites: Iterable[str]) -> str:
    return ", ".join(sites_among(sites)) or "no site"


def _clients(sites: Iterable[str]) -> str:
    named = with_clients(sites)
    return f"of clients only those of {', '.join(named)} may have it" if named else "no client may have it"


__all__ = ["ResidencyError", "bound_values", "check_told", "residency_objections"]
