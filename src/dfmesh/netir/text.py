"""The readable form of a NetIR, for tests, `dfmesh explain` and bug reports."""

from __future__ import annotations

from dfmesh.netir.expression import render_expression
from dfmesh.netir.net import (
    Action,
    Branch,
    Call,
    Choose,
    Collect,
    Evaluate,
    LookUp,
    Loop,
    NetIR,
    Reduce,
    Role,
    Route,
    SendYield,
    Store,
    Transition,
)


def render_net(net: NetIR) -> str:
    """Write a net as text: one line per scope, transition and route, in the order of their ids."""
    lines = [f"net {net.site} (home {net.homesite})"]
    for scope in net.scopes:
        within = "" if scope.parent is None else f" in s{scope.parent}"
        tolerant = " tolerant" if scope.tolerant else ""
        lines.append(
            f"  scope s{scope.id}{within} head {scope.head_site} with {', '.join(scope.participants)}{tolerant}"
        )
    lines += [f"  parameter {name} -> {_places(net.parameters[name])}" for name in sorted(net.parameters)]
    if net.starts:
        lines.append(f"  start -> {_places(net.starts)}")
    lines += [
        f"  arrival r{route} from {net.arrivals[route].source} -> {_places(net.arrivals[route].places)}"
        for route in sorted(net.arrivals)
    ]
    for transition in net.transitions:
        lines += _transition(transition)
    return "\n".join(lines) + "\n"


def _places(places: tuple[int, ...]) -> str:
    return ", ".join(f"p{place}" for place in places)


def _transition(transition: Transition) -> list[str]:
    inputs = ", ".join(
        f"p{place.id}@s{place.scope}" + ("" if place.role is Role.VALUE else f" {place.role.value}")
        for place in transition.inputs
    )
    head = f"  t{transition.id} s{transition.scope} {transition.node} ({inputs}): {render_action(transition.action)}"
    return [head, *(f"    {_route(route)}" for route in transition.routes)]


def _route(route: Route) -> str:
    port = "" if route.port.value == "value" else f"{route.port.value} "
    return f"{port}r{route.id}{''.join(map(str, route.select))} -> {route.site}"


def render_action(action: Action) -> str:
    """Write what a transition does as text."""
    match action:
        case Call(operation=operation, provider=provider, arguments=arguments):
            given = ", ".join(f"{name}={render_expression(value)}" for name, value in arguments.items())
            return f"{f'{provider}/' if provider else ''}{operation}({given})"
        case Evaluate(expression=expression):
            return f"evaluate {render_expression(expression)}"
        case SendYield(place=place, expression=expression):
            return f"yield {render_expression(expression)} at {place!r}"
        case Loop(sequence=sequence, body=body, window=window):
            return f"loop s{body} over {render_expression(sequence)} window {window}"
        case Collect(body=body):
            return f"collect s{body}"
        case Reduce(body=body, operation=operation, left=left, right=right):
            return f"reduce s{body} with {operation}({left}, {right})"
        case Branch(condition=condition):
            return f"branch {render_expression(condition)}"
        case Choose(condition=condition, then=then, otherwise=otherwise):
            branches = f"{render_expression(then)} else {render_expression(otherwise)}"
            return f"choose {render_expression(condition)} then {branches}"
        case LookUp(key=key, ttl=ttl):
            return f"look up {render_expression(key)}" + ("" if ttl is None else f" not older than {ttl} s")
        case Store(lookup=lookup, expression=expression):
            return f"found by t{lookup}, else store {render_expression(expression)}"
