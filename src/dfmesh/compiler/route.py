"""Fourth and fifth pass: one send per value and destination site, and one NetIR per site."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from dfmesh.compiler.graph import Edge, Graph, Node
from dfmesh.netir import (
    ROOT_SCOPE,
    Action,
    Arrival,
    Branch,
    Call,
    Choose,
    Collect,
    Compare,
    Const,
    DictOf,
    Evaluate,
    Expression,
    Input,
    ListOf,
    Logic,
    LookUp,
    Loop,
    NetIR,
    Place,
    Port,
    Reduce,
    Role,
    Route,
    Scope,
    Selector,
    SendYield,
    Store,
    Transition,
    TupleOf,
)


def route(graph: Graph, sites: list[str], homesite: str) -> dict[str, NetIR]:
    """Cut a placed graph into one net per taking-part site.

    Args:
        graph: The logical graph.
        sites: Site of each node, by index.
        homesite: Where the client attaches; it takes part always.

    Returns:
        Nets by site, the homesite first, the others sorted.
    """
    return _Routing(graph, sites, homesite).nets()


@dataclass(slots=True)
class _SiteParts:
    transitions: list[Transition] = field(default_factory=list)
    arrivals: dict[int, Arrival] = field(default_factory=dict)
    parameters: dict[str, list[int]] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)


class _Routing:
    def __init__(self, graph: Graph, sites: list[str], homesite: str) -> None:
        self.graph = graph
        self.sites = sites
        self.homesite = homesite
        self.parts: dict[str, _SiteParts] = {site: _SiteParts() for site in [homesite, *sorted({*sites} - {homesite})]}
        self.whole: set[tuple[int, str]] = {
            (edge.source, sites[node.index])
            for node in graph.nodes
            for edge in node.edges
            if edge.source is not None and edge.port is Port.VALUE and edge.role is Role.VALUE and not edge.select
        }
        self.places = 0
        self.inputs: list[list[Place]] = []
        # Source, port, selector and destination of each send, with the places it feeds there.
        self.sends: dict[tuple[int, Port, Selector, str], list[int]] = {}
        self.live_places: set[int] = set()

    def nets(self) -> dict[str, NetIR]:
        for node in self.graph.nodes:
            self.inputs.append([self.place(node, edge) for edge in node.edges])
        routes = self.routes()
        for node in self.graph.nodes:
            self.parts[self.sites[node.index]].transitions.append(self.transition(node, routes[node.index]))
        scopes = self.scopes_by_site(self.scopes())
        return {
            site: NetIR(
                site=site,
                homesite=self.homesite,
                scopes=tuple(scopes[site]),
                transitions=tuple(part.transitions),
                arrivals=part.arrivals,
                parameters={name: tuple(part.parameters[name]) for name in sorted(part.parameters)},
                starts=tuple(part.starts),
            )
            for site, part in self.parts.items()
        }

    def selects_at_source(self, node: Node, edge: Edge) -> bool:
        """Tell whether the sender selects; not where the whole value goes to that site anyway.

        What a loop gathers has no expression that could select, so its selectors are always the sender's.
        """
        if edge.source is None:
            return False
        return isinstance(node.action, Collect | Reduce) or (edge.source, self.sites[node.index]) not in self.whole

    def place(self, node: Node, edge: Edge) -> Place:
        site = self.sites[node.index]
        place = Place(self.places, self.graph.edge_scope(edge), edge.role)
        if isinstance(node.action, Call) and edge.port is Port.VALUE and place.scope == node.scope:
            self.live_places.add(place.id)
        self.places += 1
        if edge.parameter is not None:
            self.parts[site].parameters.setdefault(edge.parameter, []).append(place.id)
        elif edge.source is None:
            self.parts[site].starts.append(place.id)
        else:
            selector = edge.select if self.selects_at_source(node, edge) else ()
            key = (edge.source, edge.port, selector, site)
            self.sends.setdefault(key, []).append(place.id)
        return place

    def routes(self) -> list[list[Route]]:
        routes: list[list[Route]] = [[] for _ in self.graph.nodes]
        for number, (key, places) in enumerate(sorted(self.sends.items(), key=lambda item: item[1])):
            source, port, selector, site = key
            live = not selector and any(place in self.live_places for place in places)
            routes[source].append(Route(number, port, site, selector, live))
            self.parts[site].arrivals[number] = Arrival(self.sites[source], tuple(places))
        return routes

    def transition(self, node: Node, routes: list[Route]) -> Transition:
        selectors = {
            index: edge.select
            for index, edge in enumerate(node.edges)
            if edge.select and not self.selects_at_source(node, edge)
        }
        return Transition(
            id=node.index,
            node=node.node,
            name=node.name,
            location=node.location,
            scope=node.scope,
            inputs=tuple(self.inputs[node.index]),
            action=_with_selectors(node.action, selectors) if selectors else node.action,
            routes=tuple(routes),
        )

    def scopes(self) -> list[Scope]:
        taking_part: list[set[str]] = [set() for _ in self.graph.scopes]
        for node in self.graph.nodes:
            own = node.action.body if isinstance(node.action, Collect | Reduce) else node.scope
            for scope in self.graph.enclosing(own):
                taking_part[scope].add(self.sites[node.index])
        taking_part[ROOT_SCOPE].update(self.parts)
        return [
            Scope(
                id=scope.id,
                parent=scope.parent,
                depth=self.graph.depth(scope.id),
                head_site=self.homesite if scope.head is None else self.sites[scope.head],
                participants=tuple(sorted(taking_part[scope.id])),
                tolerant=scope.tolerant
                or any(self.graph.scopes[outer].tolerant for outer in self.graph.enclosing(scope.id)),
            )
            for scope in self.graph.scopes
        ]

    def scopes_by_site(self, scopes: list[Scope]) -> dict[str, list[Scope]]:
        known: dict[str, list[Scope]] = {site: [] for site in self.parts}
        for scope in scopes:
            for site in {*scope.participants, scope.head_site}:
                known[site].append(scope)
        return known


def _with_selectors(action: Action, selectors: dict[int, Selector]) -> Action:
    def rewrite(expression: Expression) -> Expression:
        return _rewritten(expression, selectors)

    match action:
        case Call(operation, provider, arguments, retries, timeout, idempotent):
            return Call(operation, provider, _each(arguments, rewrite), retries, timeout, idempotent)
        case Evaluate(expression):
            return Evaluate(rewrite(expression))
        case SendYield(place, expression):
            return SendYield(place, rewrite(expression))
        case Loop(sequence, body, window):
            return Loop(rewrite(sequence), body, window)
        case Branch(condition):
            return Branch(rewrite(condition))
        case LookUp(key, ttl, nested):
            return LookUp(rewrite(key), ttl, nested)
        case Store(lookup, expression):
            return Store(lookup, rewrite(expression))
        case Choose(condition, then, otherwise):
            return Choose(rewrite(condition), rewrite(then), rewrite(otherwise))
        case Reduce(arguments=arguments, initial=initial):
            start = None if initial is None else rewrite(initial)
            return msgspec.structs.replace(action, arguments=_each(arguments, rewrite), initial=start)
        case Collect():
            return action


def _each(arguments: dict[str, Expression], rewrite: Callable[[Expression], Expression]) -> dict[str, Expression]:
    return {name: rewrite(value) for name, value in arguments.items()}


def _rewritten(expression: Expression, selectors: dict[int, Selector]) -> Expression:
    match expression:
        case Input(index, select):
            return Input(index, (*selectors.get(index, ()), *select))
        case ListOf(items):
            return ListOf(tuple(_rewritten(item, selectors) for item in items))
        case TupleOf(items):
            return TupleOf(tuple(_rewritten(item, selectors) for item in items))
        case DictOf(items):
            return DictOf(tuple((_rewritten(key, selectors), _rewritten(value, selectors)) for key, value in items))
        case Compare(operator, left, right):
            return Compare(operator, _rewritten(left, selectors), _rewritten(right, selectors))
        case Logic(operator, operands):
            return Logic(operator, tuple(_rewritten(operand, selectors) for operand in operands))
        case Const():
            return expression
