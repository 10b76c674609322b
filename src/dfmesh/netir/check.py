"""The plan check: proves of the nets of a job that each token arrives once and is counted, and none waits for ever.

The compiler checks what it made, where a fault is one of dfmesh's own. A homesite checks what a client submits, which
may be broken or hostile; a site checks its own part again, since the homesite may be so, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from dfmesh.errors import DfmeshError
from dfmesh.netir.check_scopes import scope_faults
from dfmesh.netir.check_statements import statement_faults
from dfmesh.netir.net import (
    ITERATION_PORTS,
    ROOT_SCOPE,
    Arrival,
    Branch,
    LookUp,
    Loop,
    NetIR,
    Place,
    Port,
    Role,
    Route,
    SendYield,
    Store,
    Transition,
)
from dfmesh.netir.waits import WaitGraph

_ROLES = {
    Port.VALUE: Role.VALUE,
    Port.ELEMENT: Role.VALUE,
    Port.INDEX: Role.VALUE,
    Port.DONE: Role.TRIGGER,
    Port.ITERATION: Role.TRIGGER,
    Port.THEN: Role.GUARD,
    Port.ELSE: Role.GUARD,
    Port.MISS: Role.GUARD,
}

MAX_SHOWN = 20
"""Faults that an error shows; the others are in its `faults`."""


@dataclass(frozen=True, slots=True)
class NetFault:
    """Something that is wrong with the nets of a job.

    Attributes:
        site: Site in whose net it is.
        message: What is wrong, with the statements concerned.
    """

    site: str
    message: str

    def __str__(self) -> str:
        return f"site {self.site!r}: {self.message}"


class PlanError(DfmeshError):
    """The compiler made nets that cannot run: a bug of dfmesh, not of the pipeline.

    Attributes:
        faults: What is wrong with them.
    """

    def __init__(self, faults: Iterable[NetFault]) -> None:
        self.faults = tuple(faults)
        lines = ["the compiled plan is not sound; this is a bug of dfmesh, please report it with the pipeline"]
        lines += [f"  {fault}" for fault in self.faults[:MAX_SHOWN]]
        if len(self.faults) > MAX_SHOWN:
            lines.append(f"  ... and {len(self.faults) - MAX_SHOWN} more (see .faults)")
        super().__init__("\n".join(lines))


def described(transition: Transition) -> str:
    """Name a transition by the user's statement, such as `weather.Merge (%4, day.py:12)`."""
    where = ", ".join(part for part in (transition.node, transition.location) if part)
    return f"{transition.name} ({where})" if where else transition.name


def check_nets(nets: Mapping[str, NetIR]) -> list[NetFault]:
    """Check the nets of all sites of a job together.

    Args:
        nets: Net by site.

    Returns:
        All faults found; empty if the job cannot get stuck through its nets. What waits for itself is only looked for
        in nets that are sound in all else.
    """
    plan = _Plan(nets)
    faults = [*plan.identity_faults(), *plan.scope_faults(), *plan.statement_faults()]
    faults += [*plan.way_faults(), *plan.store_faults(), *plan.residency_faults()]
    return faults or list(plan.wait_faults())


def check_part(net: NetIR) -> list[NetFault]:
    """Check the net of one site by itself, as far as the site could not go on with it or would never end.

    Args:
        net: The net, from anybody.
    """
    plan = _Plan({net.site: net})
    faults = [*plan.repeated, *plan.part_faults(), *plan.statement_faults(), *plan.store_faults()]
    if faults:
        return faults
    ring = WaitGraph([net]).cycle()
    return [NetFault(net.site, _ring_text(ring))] if ring else []


def _ring_text(ring: Sequence[Transition]) -> str:
    names = [described(transition) for transition in [*ring, ring[0]]]
    return " waits for ".join(names[:2]) + "".join(f", which waits for {name}" for name in names[2:])


def independent_lookups(nets: Mapping[str, NetIR]) -> dict[str, NetIR]:
    """Mark the look-ups that must not wait for an equal key which somebody else is computing.

    Args:
        nets: Sound nets by site.

    Returns:
        The nets with these look-ups `nested`.
    """
    if not any(isinstance(transition.action, LookUp) for net in nets.values() for transition in net.transitions):
        return dict(nets)
    crossing = WaitGraph(nets.values()).crossing_lookups()
    return {site: _with_nested(net, crossing) for site, net in nets.items()} if crossing else dict(nets)


def _with_nested(net: NetIR, crossing: Mapping[int, int]) -> NetIR:
    transitions = [
        msgspec.structs.replace(transition, action=msgspec.structs.replace(transition.action, nested=True))
        if transition.id in crossing and isinstance(transition.action, LookUp)
        else transition
        for transition in net.transitions
    ]
    return msgspec.structs.replace(net, transitions=tuple(transitions))


class _Plan:
    """The nets of a job, by id.

    Attributes:
        nets: Net by site.
        transitions: Site and transition by id.
        places: Site, transition and place by id.
        routes: Site, transition and route by id.
        way_to: Route that leads to each place, once the ways were looked at.
    """

    def __init__(self, nets: Mapping[str, NetIR]) -> None:
        self.nets = nets
        self.transitions: dict[int, tuple[str, Transition]] = {}
        self.places: dict[int, tuple[str, Transition, Place]] = {}
        self.routes: dict[int, tuple[str, Transition, Route]] = {}
        self.way_to: dict[int, int] = {}
        self.repeated: list[NetFault] = []
        for site, net in nets.items():
            for transition in net.transitions:
                self._index(site, transition)

    def _index(self, site: str, transition: Transition) -> None:
        if self.transitions.setdefault(transition.id, (site, transition))[1] is not transition:
            self._repeats(site, f"two transitions have the number {transition.id}", transition)
        for place in transition.inputs:
            if self.places.setdefault(place.id, (site, transition, place))[2] is not place:
                self._repeats(site, f"two places have the number {place.id}", transition)
        for route in transition.routes:
            if self.routes.setdefault(route.id, (site, transition, route))[2] is not route:
                self._repeats(site, f"two routes have the number {route.id}", transition)

    def _repeats(self, site: str, what: str, transition: Transition) -> None:
        self.repeated.append(NetFault(site, f"{what}, one at {described(transition)}"))

    def identity_faults(self) -> Iterator[NetFault]:
        """Look for nets that do not say whose they are, and numbers given twice."""
        yield from self.repeated
        if not self.nets:
            yield NetFault("", "there is no net")
        homesites = sorted({net.homesite for net in self.nets.values()})
        if len(homesites) > 1:
            yield NetFault(homesites[0], f"the nets name several homesites: {', '.join(map(repr, homesites))}")
        for site, net in self.nets.items():
            if net.site != site:
                yield NetFault(site, f"its net is that of site {net.site!r}")
            if net.homesite not in self.nets:
                yield NetFault(site, f"the homesite {net.homesite!r} has no net")

    def part_faults(self) -> Iterator[NetFault]:
        """Look for what a net refers to and does not have; which of the ways within it lead where they should."""
        for site, net in self.nets.items():
            scopes = {scope.id for scope in net.scopes}
            for transition in net.transitions:
                for number in {transition.scope, *(place.scope for place in transition.inputs)} - scopes:
                    yield NetFault(site, f"{described(transition)} is in the scope s{number}, which is not there")
                for route in transition.routes:
                    if route.site == site and route.id not in net.arrivals:
                        yield NetFault(site, f"{described(transition)} sends along r{route.id}, which leads nowhere")
            ways = [*net.parameters.values(), net.starts, *(arrival.places for arrival in net.arrivals.values())]
            for number in (number for places in ways for number in places if number not in self.places):
                yield NetFault(site, f"something goes to the place p{number}, which is not there")
            for number, arrival in net.arrivals.items():
                if not arrival.places:
                    yield NetFault(site, f"what arrives by the route r{number} goes nowhere")
                if arrival.source == site:
                    yield from self._arrival_faults(site, number, arrival, {})
                else:
                    self.way_to.update(dict.fromkeys(arrival.places, number))

    def scope_faults(self) -> Iterator[NetFault]:
        """Look for scopes that the sites do not agree on."""
        for site, message in scope_faults(self.nets):
            yield NetFault(site, message)

    def statement_faults(self) -> Iterator[NetFault]:
        """Look for transitions that are wrong in themselves, whatever is around them."""
        for site, net in self.nets.items():
            scopes = {scope.id: scope for scope in net.scopes}
            for transition in net.transitions:
                for message in statement_faults(transition, scopes):
                    yield NetFault(site, f"{described(transition)} {message}")

    def store_faults(self) -> Iterator[NetFault]:
        """Look for keys that a look-up takes and nobody gives back, and stores without a look-up."""
        stores: dict[int, int] = {}
        for site, transition in self.transitions.values():
            action = transition.action
            if not isinstance(action, Store):
                continue
            stores[action.lookup] = stores.get(action.lookup, 0) + 1
            lookup_site, lookup = self.transitions.get(action.lookup, ("", transition))
            if not isinstance(lookup.action, LookUp):
                yield NetFault(site, f"{described(transition)} stores for t{action.lookup}, which is no look-up")
            elif lookup_site != site or lookup.scope != transition.scope:
                yield NetFault(site, f"{described(transition)} is not where its look-up is")
            elif not transition.inputs or self._source_of(transition.inputs[0]) is not lookup:
                yield NetFault(site, f"{described(transition)} does not get what its look-up found as its first input")
        for site, transition in self.transitions.values():
            count = stores.get(transition.id, 0)
            if isinstance(transition.action, LookUp) and count != 1:
                yield NetFault(site, f"{described(transition)} has {count or 'no'} stores")

    def _source_of(self, place: Place) -> Transition | None:
        """Give the transition whose whole value comes to a place."""
        sender = self.routes.get(self.way_to.get(place.id, -1))
        if sender is None:
            return None
        _, transition, route = sender
        return transition if route.port is Port.VALUE and not route.select else None

    # The ways of tokens

    def way_faults(self) -> Iterator[NetFault]:
        """Look for routes that end nowhere, and places to which not exactly one way leads."""
        fed: dict[int, int] = {}
        for site, net in self.nets.items():
            yield from self._fed_by_homesite(site, net, fed)
            for number, arrival in net.arrivals.items():
                yield from self._arrival_faults(site, number, arrival, fed)
        for site, transition, route in self.routes.values():
            yield from self._route_faults(site, transition, route)
        for number, (site, transition, _) in self.places.items():
            count = fed.get(number, 0)
            if count != 1:
                many = "nothing" if not count else f"{count} ways"
                yield NetFault(site, f"{described(transition)} has an input p{number} to which {many} leads")

    def _fed_by_homesite(self, site: str, net: NetIR, fed: dict[int, int]) -> Iterator[NetFault]:
        ways = [(f"the parameter {name!r}", Role.VALUE, places) for name, places in net.parameters.items()]
        for what, role, places in [*ways, ("the start", Role.TRIGGER, net.starts)]:
            for number in places:
                yield from self._landing_faults(site, what, number, ROOT_SCOPE, role, fed)

    def _arrival_faults(self, site: str, number: int, arrival: Arrival, fed: dict[int, int]) -> Iterator[NetFault]:
        sender = self.routes.get(number)
        if sender is None:
            yield NetFault(site, f"tokens arrive by the route r{number}, which nobody sends along")
            return
        source, transition, route = sender
        what = f"the {route.port.value} of {described(transition)}"
        if arrival.source != source:
            yield NetFault(site, f"{what} is expected from site {arrival.source!r}, and is made at {source!r}")
        if route.site != site:
            yield NetFault(site, f"{what} is sent to site {route.site!r}, and expected here by the route r{number}")
        if not arrival.places:
            yield NetFault(site, f"{what} arrives at no place")
        scope = _scope_of(transition, route.port)
        for place in arrival.places:
            self.way_to[place] = number
            yield from self._landing_faults(site, what, place, scope, _ROLES[route.port], fed)

    def _landing_faults(
        self, site: str, what: str, number: int, scope: int | None, role: Role, fed: dict[int, int]
    ) -> Iterator[NetFault]:
        fed[number] = fed.get(number, 0) + 1
        at = self.places.get(number)
        if at is None:
            yield NetFault(site, f"{what} goes to the place p{number}, which is not there")
            return
        place_site, transition, place = at
        if place_site != site:
            yield NetFault(site, f"{what} goes to {described(transition)}, which is at site {place_site!r}")
        if scope != place.scope:
            frames = "frames of no loop" if scope is None else f"frames of scope s{scope}"
            yield NetFault(site, f"{what} has {frames}, and {described(transition)} takes it as of s{place.scope}")
        if place.role is not role:
            wanted = place.role.value
            yield NetFault(site, f"{what} is a {role.value}, and {described(transition)} takes it as a {wanted}")

    def _route_faults(self, site: str, transition: Transition, route: Route) -> Iterator[NetFault]:
        what = f"{described(transition)} sends its {route.port.value}"
        if not _has_port(transition, route.port):
            yield NetFault(site, f"{what}, but has none")
        if route.select and _ROLES[route.port] is not Role.VALUE:
            yield NetFault(site, f"{what}, which is no value, with a selector")
        net = self.nets.get(route.site)
        if net is None:
            yield NetFault(site, f"{what} to site {route.site!r}, which takes no part")
        elif route.id not in net.arrivals:
            yield NetFault(site, f"{what} to site {route.site!r}, which does not expect it")

    def residency_faults(self) -> Iterator[NetFault]:
        """Look for routes of which sender and receiver are told different things."""
        if not any(net.residency for net in self.nets.values()):
            return
        for site, transition, route in self.routes.values():
            there = self.nets.get(route.site)
            if there is not None and self.nets[site].residency.get(route.id) != there.residency.get(route.id):
                what = f"the {route.port.value} of {described(transition)}"
                yield NetFault(site, f"{what} may be at other sites here than at site {route.site!r}")

    # Waiting

    def wait_faults(self) -> Iterator[NetFault]:
        """Look for transitions that wait for themselves."""
        graph = WaitGraph(self.nets.values())
        ring = graph.cycle()
        if ring:
            yield NetFault(self.transitions[ring[0].id][0], _ring_text(ring))
            return
        for number, store in graph.crossing_lookups().items():
            site, lookup = self.transitions[number]
            if isinstance(lookup.action, LookUp) and not lookup.action.nested:
                holder = described(self.transitions[store][1])
                yield NetFault(
                    site,
                    f"{described(lookup)} may wait for an equal key, while {holder}, which waits for it, holds one",
                )


def _has_port(transition: Transition, port: Port) -> bool:
    action = transition.action
    match port:
        case Port.DONE:
            return True
        case Port.VALUE:
            return not isinstance(action, Loop | Branch | SendYield)
        case Port.THEN | Port.ELSE:
            return isinstance(action, Branch)
        case Port.MISS:
            return isinstance(action, LookUp)
        case _:
            return isinstance(action, Loop)


def _scope_of(transition: Transition, port: Port) -> int | None:
    if port not in ITERATION_PORTS:
        return transition.scope
    return transition.action.body if isinstance(transition.action, Loop) else None
