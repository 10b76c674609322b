"""Where the values that a residency rule binds go in nets: the one meaning of the rule, for compiler and sites.

A bound value stays bound in whatever hands it on: expressions, loops, lists that are gathered, choices, caches. What an
operation makes of it is a new value. How many elements there are, the outcome of a condition and the mere end of
something are not the value. What is said of a bound value (errors, printed lines) is taken to show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dfmesh.netir.net import Branch, Call, NetIR, Port, Reduce, Route, SendYield, Store, Transition

Sites = frozenset[str]
"""All sites that may have a value, the one that makes it included, and `clients_at` those whose clients may."""

_CLIENTS = "@"  # Not in any name of a site.

_NEW = Call | Reduce | Branch
"""What gives nothing of its inputs on as it is."""

_CARRIES_VALUES = (Port.VALUE, Port.ELEMENT)


def clients_at(site: str) -> str:
    """Give what stands among `Sites` for the clients that are attached to a site."""
    return _CLIENTS + site


def may_have(maker: str, named: Iterable[str]) -> Sites:
    """Give who may have a value by a rule.

    Args:
        maker: Site that makes it, and may keep it.
        named: Sites that the rule names: they, and their clients.
    """
    names = list(named)
    return frozenset((maker, *names, *map(clients_at, names)))


def sites_among(sites: Iterable[str]) -> list[str]:
    """Give the names of those among `Sites` that are sites, sorted."""
    return sorted(name for name in sites if not name.startswith(_CLIENTS))


def with_clients(sites: Iterable[str]) -> list[str]:
    """Give the names of the sites whose clients are among `Sites`, sorted."""
    return sorted(name.removeprefix(_CLIENTS) for name in sites if name.startswith(_CLIENTS))


@dataclass(frozen=True, slots=True)
class Breach:
    """A way on which a bound value would get where it may not be.

    Attributes:
        origin: Id of the transition that makes it, or of the route by which it arrives.
        arrives: Whether it arrives.
        sites: Where it may be.
        sender: Transition that would send it.
        destination: Site it would be sent to.
        to_client: Whether it would go there as a result for the client.
    """

    origin: int
    arrives: bool
    sites: Sites
    sender: Transition
    destination: str
    to_client: bool


@dataclass(frozen=True, slots=True)
class BoundValues:
    """What bound values do in nets.

    Attributes:
        routes: Where what is sent along a route to another site may be, by route; routes that carry nothing bound are
            left out.
        transitions: Where what a transition gives may be, by its id, as far as it hands bound values on.
        breaches: Ways that the rules forbid.
        alone: Reductions that may not give the value of a single iteration, which they would give as it is.
        touched: Where the bound values may be that a transition makes, hands on or reads, by its id: what is said of
            it, errors and printed lines, may show them.
        rules: What a rule is called in a message, by where it lets values be; those of other sites are left out.
    """

    routes: dict[int, Sites]
    transitions: dict[int, Sites]
    breaches: list[Breach]
    alone: frozenset[int] = frozenset()
    touched: dict[int, frozenset[Sites]] = field(default_factory=dict)
    rules: dict[Sites, str] = field(default_factory=dict)


NOTHING_BOUND = BoundValues({}, {}, [])


def follow(nets: Iterable[NetIR], made: Mapping[int, Sites], arriving: Mapping[int, Sites]) -> BoundValues:
    """Follow bound values through the nets of one or more sites of a job, which may be hostile.

    Args:
        nets: The nets.
        made: Where the new value of a transition may be, by its id, if a rule binds it.
        arriving: The same of what arrives by a route from a site whose net is not among them.
    """
    if not made and not arriving:
        return NOTHING_BOUND
    ways = _Ways(nets)
    found = BoundValues({}, {}, [])
    origins: dict[Sites, list[tuple[int, bool]]] = {}
    for arrives, bound in ((False, made), (True, arriving)):
        for number, sites in bound.items():
            origins.setdefault(sites, []).append((number, arrives))
    for sites, starts in origins.items():
        ways.spread(sites, starts, found)
    return found


def reduced(nets: Iterable[NetIR], made: Mapping[int, Sites], arriving: Mapping[int, Sites]) -> dict[int, Sites]:
    """Find the reductions that bound values reach, also through others that give a single one as it is.

    Args:
        nets: As for `follow`.
        made: As there.
        arriving: As there.

    Returns:
        Where what they get may be, by the id of their transition.
    """
    ways, found = _Ways(nets), dict[int, Sites]()
    for sites in dict.fromkeys([*made.values(), *arriving.values()]):
        waiting = [number for number, bound in made.items() if bound == sites]
        routes = [number for number, bound in arriving.items() if bound == sites]
        seen = set(waiting)
        while waiting or routes:
            if not routes:
                _, transition = ways.at[waiting.pop()]
                routes = [route.id for route in _value_routes(transition)]
                continue
            for taker in ways.landing.get(routes.pop(), ()):
                if isinstance(taker.action, Reduce):
                    found[taker.id] = found.get(taker.id, sites) & sites
                if taker.id not in seen and not isinstance(taker.action, Call | Branch):
                    seen.add(taker.id)
                    waiting.append(taker.id)
    return found


class _Ways:
    """Where the outputs of transitions lead, among some nets."""

    def __init__(self, nets: Iterable[NetIR]) -> None:
        self.at: dict[int, tuple[NetIR, Transition]] = {}
        self.landing: dict[int, list[Transition]] = {}
        places: dict[int, list[Transition]] = {}
        nets = list(nets)
        for net in nets:
            for transition in net.transitions:
                self.at[transition.id] = net, transition
                for place in transition.inputs:
                    places.setdefault(place.id, []).append(transition)
        for net in nets:
            for number, arrival in net.arrivals.items():
                self.landing[number] = [taker for place in arrival.places for taker in places.get(place, ())]

    def spread(self, sites: Sites, starts: Iterable[tuple[int, bool]], found: BoundValues) -> None:
        """Follow values with one rule from all their origins at once."""
        origin_of: dict[int, tuple[int, bool]] = {}
        waiting: list[int] = []

        def touch(number: int) -> None:
            found.touched[number] = found.touched.get(number, frozenset()) | {sites}

        def hand(taker: Transition, origin: tuple[int, bool]) -> None:
            touch(taker.id)
            if not isinstance(taker.action, _NEW) and taker.id not in origin_of:
                origin_of[taker.id] = origin
                waiting.append(taker.id)

        for origin in starts:
            number, arrives = origin
            if arrives:
                for taker in self.landing.get(number, ()):
                    hand(taker, origin)
            elif number in self.at:
                touch(number)
                origin_of[number] = origin
                waiting.append(number)
        while waiting:
            number = waiting.pop()
            net, transition = self.at[number]
            origin = origin_of[number]
            found.transitions[number] = found.transitions.get(number, sites) & sites
            if isinstance(transition.action, SendYield) and clients_at(net.homesite) not in sites:
                found.breaches.append(Breach(*origin, sites, transition, net.homesite, to_client=True))
            if isinstance(transition.action, Store) and transition.action.lookup in self.at:
                hand(self.at[transition.action.lookup][1], origin)  # It gives it the next time.
            for route in _value_routes(transition):
                if route.site != net.site:
                    found.routes[route.id] = found.routes.get(route.id, sites) & sites
                    if route.site not in sites:
                        found.breaches.append(Breach(*origin, sites, transition, route.site, to_client=False))
                for taker in self.landing.get(route.id, ()):
                    hand(taker, origin)


def _value_routes(transition: Transition) -> Iterator[Route]:
    return (route for route in transition.routes if route.port in _CARRIES_VALUES)


__all__ = [
    "NOTHING_BOUND",
    "BoundValues",
    "Breach",
    "Sites",
    "clients_at",
    "follow",
    "may_have",
    "reduced",
    "sites_among",
    "with_clients",
]
