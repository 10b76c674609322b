"""Pipelines whose nets are checked, and ways to change nets."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import msgspec
from engine_support import CALC, compiled, federation

from dfmesh import Choose, Else, ForEach, If, Pipeline, PlaceParam, TryFromCache, Yield
from dfmesh.compiler import CompiledPipeline
from dfmesh.netir import NetIR, Route, Transition

Nets = dict[str, NetIR]


def whole_plan() -> CompiledPipeline:
    """Compile a pipeline with every construct."""
    ops = federation().ops.mesh
    with Pipeline() as p:
        n = PlaceParam("n")
        stream = ops.Count(n=n, site="a", node_id="stream")
        outer = ops.Echo(x=[n, "text"], site="c", node_id="outer")
        with ForEach(stream, window=3, on_error="skip", node_id="loop") as item:
            checked = ops.FailAt(x=item, at=2, site="b", node_id="checked")
            with If(checked > 3, node_id="if"):
                large = ops.Both(x=checked, y=outer[0], site="c", node_id="large")
            with Else():
                small = ops.Echo(x=checked, site="a", node_id="small")
            chosen = Choose(checked > 3, large, small, node_id="chosen")
            with TryFromCache(key=checked, site="c", node_id="cache") as cached:
                cached.cache(ops.Add(a=checked, b=100, site="b", node_id="body"))
            with ForEach([1, 2], window=1, node_id="inner") as inner:
                product = ops.Add(a=cached, b=inner, site="c", node_id="product")
            folded = inner.reduce(ops.Fold, product, initial=outer[1], site="b", node_id="fold")
            Yield([folded, chosen, item.index], place="loop")
        listed = item.collect(cached, node_id="list")
        Yield(ops.Gather(items=listed, site="b", after=outer, node_id="after"), place="list")
    return compiled(p)


def random_plan(seed: int) -> CompiledPipeline:
    from conformance.building import build
    from conformance.generator import Options, random_pipeline

    description = random_pipeline(seed, Options(operations=14, branches=True, failures=True))
    return compiled(build(description, federation(CALC).ops), CALC)


# Changing nets


def find(nets: Nets, node: str, kind: type[Any] | None = None) -> tuple[str, Transition]:
    """Give site and transition of a statement."""
    for site, net in nets.items():
        for transition in net.transitions:
            if transition.node == node and (kind is None or isinstance(transition.action, kind)):
                return site, transition
    raise LookupError(node)


def put(nets: Nets, at: str, /, **changes: Any) -> Nets:
    return {**nets, at: msgspec.structs.replace(nets[at], **changes)}


def change(nets: Nets, node: str, kind: type[Any] | None = None, **changes: Any) -> Nets:
    """Change a transition."""
    site, old = find(nets, node, kind)
    new = msgspec.structs.replace(old, **changes)
    return put(nets, site, transitions=tuple(new if item is old else item for item in nets[site].transitions))


def change_action(nets: Nets, node: str, kind: type[Any] | None = None, **changes: Any) -> Nets:
    _, transition = find(nets, node, kind)
    return change(nets, node, kind, action=msgspec.structs.replace(transition.action, **changes))


def change_place(nets: Nets, node: str, index: int, **changes: Any) -> Nets:
    _, transition = find(nets, node)
    places = list(transition.inputs)
    places[index] = msgspec.structs.replace(places[index], **changes)
    return change(nets, node, inputs=tuple(places))


def change_route(nets: Nets, node: str, index: int, **changes: Any) -> Nets:
    _, transition = find(nets, node)
    routes: list[Route] = list(transition.routes)
    routes[index] = msgspec.structs.replace(routes[index], **changes)
    return change(nets, node, routes=tuple(routes))


def change_scope(nets: Nets, site: str, scope: int, **changes: Any) -> Nets:
    scopes = tuple(msgspec.structs.replace(item, **changes) if item.id == scope else item for item in nets[site].scopes)
    return put(nets, site, scopes=scopes)


def mutate(nets: Nets, draw: random.Random) -> Nets:
    """Change one number, name or list somewhere in the nets, so that they can still be read."""
    site = draw.choice(sorted(nets))
    for _ in range(50):
        tree = msgspec.json.decode(msgspec.json.encode(nets[site]))
        _bend(tree, draw)
        try:
            changed = msgspec.json.decode(msgspec.json.encode(tree), type=NetIR)
        except (msgspec.ValidationError, msgspec.DecodeError):
            continue
        if changed != nets[site]:
            return {**nets, site: changed}
    return nets


def _bend(tree: Any, draw: random.Random) -> None:
    holder, key = draw.choice(list(_leaves(tree)))
    value = holder[key]
    others = [where[at] for where, at in _leaves(tree) if type(where[at]) is type(value)]
    bent = [*_BENDS.get(type(value), _keep)(value, draw), draw.choice(others)]
    holder[key] = copy.deepcopy(draw.choice(bent))  # It may be what holds this.


def _leaves(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list) and value:
            yield from _leaves(value)


def _keep(value: Any, _draw: random.Random) -> list[Any]:
    return [value, None]


def _bend_list(value: list[Any], draw: random.Random) -> list[Any]:
    at = draw.randrange(len(value)) if value else 0
    shuffled = draw.sample(value, len(value))
    return [[], value[:at] + value[at + 1 :], value + value[at : at + 1], shuffled, value[:1]]


def _bend_dict(value: dict[Any, Any], draw: random.Random) -> list[Any]:
    if not value:
        return [value]
    key = draw.choice(list(value))
    return [{name: item for name, item in value.items() if name != key}, {}]


_BENDS: dict[type, Callable[[Any, random.Random], list[Any]]] = {
    int: lambda value, draw: [value + 1, value - 1, 0, -1, draw.randint(0, 40), 1000],
    str: lambda _value, _draw: ["", "a", "b", "c", "app", "nobody", "value", "done", "guard", "trigger"],
    bool: lambda value, _draw: [not value],
    list: _bend_list,
    dict: _bend_dict,
}
