"""The plan check finds what is planted in sound nets, names the statement, and finds nothing else."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from engine_support import compiled, federation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netir_plans import (
    Nets,
    change,
    change_action,
    change_place,
    change_route,
    change_scope,
    find,
    mutate,
    put,
    whole_plan,
)

import dfmesh.compiler.compile as compile_module
from dfmesh import ForEach, Pipeline, Yield
from dfmesh.compiler.lower import lower
from dfmesh.compiler.route import route
from dfmesh.netir import (
    Arrival,
    Branch,
    Call,
    Collect,
    Compare,
    Evaluate,
    Input,
    Item,
    Logic,
    LookUp,
    Loop,
    NetIR,
    PlanError,
    Port,
    Reduce,
    Role,
    SendYield,
    Store,
    check_nets,
    constant,
)


def messages(nets: Nets) -> list[str]:
    return [str(fault) for fault in check_nets(nets)]


@pytest.mark.parametrize("block", range(4))
def test_compiled_pipelines_are_sound(random_plan: Callable[[int], Any], block: int) -> None:
    for seed in range(block * 15, block * 15 + 15):
        assert check_nets(random_plan(seed).nets) == [], seed


def test_the_pipeline_with_every_construct_is_sound(nets: Nets) -> None:
    kinds = {type(item.action) for net in nets.values() for item in net.transitions}
    assert {Call, SendYield, Loop, Collect, Reduce, Branch, LookUp, Store} <= kinds
    assert messages(nets) == []


# Planted faults: how to plant one, and what the message must say.

Plant = tuple[Callable[[Nets], Nets], str]


def arrivals(nets: Nets, site: str, change: Callable[[dict[int, Arrival]], Any]) -> Nets:
    changed = dict(nets[site].arrivals)
    change(changed)
    return put(nets, site, arrivals=changed)


def arrival_at(nets: Nets, node: str, index: int = 0) -> tuple[str, int]:
    """Give site and route of what arrives at an input of a statement."""
    site, transition = find(nets, node)
    place = transition.inputs[index].id
    return site, next(route for route, arrival in nets[site].arrivals.items() if place in arrival.places)


def drop_arrival(nets: Nets) -> Nets:
    site, route = arrival_at(nets, "large")
    return arrivals(nets, site, lambda table: table.pop(route))


def double_place(nets: Nets) -> Nets:
    site, route = arrival_at(nets, "large")
    _, other = arrival_at(nets, "large", 1)
    places = nets[site].arrivals[route].places + nets[site].arrivals[other].places
    return arrivals(nets, site, lambda table: table.update({route: Arrival(table[route].source, places)}))


def wrong_source(nets: Nets) -> Nets:
    site, route = arrival_at(nets, "large")
    return arrivals(nets, site, lambda table: table.update({route: Arrival("app", table[route].places)}))


def foreign_place(nets: Nets) -> Nets:
    site, route = arrival_at(nets, "large")
    other = find(nets, "checked")[1].inputs[0].id
    return arrivals(nets, site, lambda table: table.update({route: Arrival(table[route].source, (other,))}))


def parameter_twice(nets: Nets) -> Nets:
    site, transition = find(nets, "stream")
    return put(nets, site, parameters={**nets[site].parameters, "again": (transition.inputs[0].id,)})


def start_of_a_value(nets: Nets) -> Nets:
    site, transition = find(nets, "stream")
    return put(nets, site, parameters={}, starts=(transition.inputs[0].id,))


def ring(nets: Nets) -> Nets:
    """Let the value before the loop wait for what comes out of it."""
    site, transition = find(nets, "after")
    port = next(route for route in transition.routes if route.port is Port.VALUE)
    place = find(nets, "outer")[1].inputs[0].id
    nets = put(nets, "c", parameters={})
    nets = change(nets, "after", routes=(*transition.routes, msgspec.structs.replace(port, id=900, site="c")))
    return arrivals(nets, "c", lambda table: table.update({900: Arrival(site, (place,))}))


def ring_through_cache(nets: Nets) -> Nets:
    """Let the key of a look-up come from its own body."""
    route = find(nets, "body")[1].routes
    nets = change(nets, "body", routes=(*route, msgspec.structs.replace(route[0], id=901)))
    site, transition = find(nets, "cache", LookUp)
    place = transition.inputs[0].id
    number = next(route for route, arrival in nets[site].arrivals.items() if place in arrival.places)

    def lead(table: dict[int, Arrival]) -> None:
        rest = tuple(other for other in table[number].places if other != place)
        table[number] = Arrival(table[number].source, rest)
        if not rest:
            del table[number]
        table[901] = Arrival("b", (place,))

    nets = arrivals(nets, site, lead)
    if number not in nets[site].arrivals:
        source = next(
            (name, item)
            for name, net in nets.items()
            for item in net.transitions
            for way in item.routes
            if way.id == number
        )[1]
        nets = change(nets, source.node, routes=tuple(way for way in source.routes if way.id != number))
    return nets


PLANTED: dict[str, Plant] = {
    "a net less": (lambda nets: {site: net for site, net in nets.items() if site != "c"}, "takes no part"),
    "no homesite": (lambda nets: {site: net for site, net in nets.items() if site != "app"}, "has no net"),
    "no nets": (lambda nets: {}, "there is no net"),
    "net of another": (lambda nets: put(nets, "c", site="d"), "its net is that of site 'd'"),
    "two homesites": (lambda nets: put(nets, "c", homesite="b"), "several homesites"),
    "two transitions of a number": (lambda nets: change(nets, "small", id=0), "two transitions have the number 0"),
    "two places of a number": (lambda nets: change_place(nets, "small", 0, id=0), "two places have the number 0"),
    "two routes of a number": (lambda nets: change_route(nets, "checked", 0, id=0), "two routes have the number 0"),
    "route dropped": (lambda nets: change(nets, "checked", routes=find(nets, "checked")[1].routes[1:]), "nobody sends"),
    "arrival dropped": (
        drop_arrival,
        r"Both \(large, .*plans.py:\d+\) has an input p\d+ to which nothing",
    ),
    "route elsewhere": (lambda nets: change_route(nets, "checked", 0, site="c"), "does not expect it"),
    "route to nobody": (lambda nets: change_route(nets, "checked", 0, site="z"), "'z', which takes no part"),
    "route of a port it has not": (lambda nets: change_route(nets, "checked", 0, port=Port.THEN), "sends its then"),
    "two producers": (double_place, "to which 2 ways lead"),
    "expected from elsewhere": (wrong_source, "is expected from site 'app', and is made at 'b'"),
    "arrives at another site's place": (foreign_place, "which is at site 'b'"),
    "parameter twice": (parameter_twice, "to which 2 ways lead"),
    "start in place of a value": (start_of_a_value, "the start is a trigger"),
    "unknown parameter place": (lambda nets: put(nets, "a", starts=(777,)), "the place p777, which is not there"),
    "place of another scope": (lambda nets: change_place(nets, "product", 0, scope=0), "frames of scope s1"),
    "place of an inner scope": (lambda nets: change_place(nets, "checked", 0, scope=2), "which is not around it"),
    "no place of its own": (lambda nets: change(nets, "small", inputs=()), "no input of its own scope"),
    "transition in another scope": (lambda nets: change(nets, "small", scope=0), "frames of scope s0"),
    "transition in no scope": (lambda nets: change(nets, "small", scope=9), "in scope s9, which is not there"),
    "value as a guard": (lambda nets: change_place(nets, "small", 0, role=Role.GUARD), "takes it as a guard"),
    "selector on no value": (lambda nets: change_route(nets, "if", 0, select=(Item(0),)), "with a selector"),
    "input that is not there": (
        lambda nets: change_action(nets, "small", arguments={"x": Input(7)}),
        "reads its input 7, and has 2",
    ),
    "negative input": (lambda nets: change_action(nets, "small", arguments={"x": Input(-1)}), "reads its input -1"),
    "reads a trigger": (
        lambda nets: change_action(nets, "after", arguments={"items": Input(1)}),
        "input 1, which is a trigger",
    ),
    "reads what it folds": (lambda nets: change_action(nets, "fold", initial=Input(0)), "reads what it gathers"),
    "unknown comparison": (
        lambda nets: change_action(nets, "if", condition=Compare("is", Input(0), constant(1))),
        "no comparison",
    ),
    "unknown condition": (lambda nets: change_action(nets, "if", condition=Logic("xor", ())), "'xor' over 0"),
    "not of two": (lambda nets: change_action(nets, "if", condition=Logic("not", (Input(0),) * 2)), "over 2 operands"),
    "window 0": (lambda nets: change_action(nets, "loop", Loop, window=0), "window of 0"),
    "negative window": (lambda nets: change_action(nets, "loop", Loop, window=-5), "window of -5"),
    "unnamed result": (lambda nets: change_action(nets, yield_of(nets), place=""), "a place without a name"),
    "negative retries": (lambda nets: change_action(nets, "small", retries=-1), "-1 retries"),
    "no time": (lambda nets: change_action(nets, "small", timeout=0.0), "time-out of 0.0 s"),
    "no number": (lambda nets: change_action(nets, "fold", timeout=float("nan")), "time-out of nan s"),
    "no age": (lambda nets: change_action(nets, "cache", LookUp, ttl=-1.0), "not older than -1.0 s"),
    "same parameter twice": (lambda nets: change_action(nets, "fold", right="left"), "named twice"),
    "two loops of a scope": (
        lambda nets: change_action(nets, "inner", Loop, body=1),
        "2 loops open frames of",
    ),
    "loop of the root": (lambda nets: change_action(nets, "inner", Loop, body=0), "opens frames of the root"),
    "loop of no scope": (lambda nets: change_action(nets, "inner", Loop, body=9), "scope s9, which is not there"),
    "gathers elsewhere": (lambda nets: change_action(nets, "list", body=2), "which is no loop beside it"),
    "scope with another head": (lambda nets: change_scope(nets, "b", 1, head_site="c"), "described otherwise"),
    "scope with another depth": (lambda nets: change_scope(nets, "b", 2, depth=2), "described otherwise"),
    "scope without its parent": (lambda nets: change_scope(nets, "b", 2, parent=0), "described otherwise"),
    "scope twice": (
        lambda nets: put(nets, "b", scopes=(*nets["b"].scopes, nets["b"].scopes[0])),
        "in its net twice",
    ),
    "no root": (lambda nets: put(nets, "b", scopes=nets["b"].scopes[1:]), "has no root scope"),
    "scope left out": (lambda nets: put(nets, "b", scopes=nets["b"].scopes[:2]), "takes part in scope s2"),
    "participant left out": (
        lambda nets: everywhere(nets, 1, participants=("a", "b")),
        "part a, app, b, c; it says a, b",
    ),
    "participant added": (lambda nets: everywhere(nets, 2, participants=("a", "b", "c")), "it says a, b, c"),
    "other order": (lambda nets: everywhere(nets, 1, participants=("c", "b", "a")), "it says c, b, a"),
    "head elsewhere": (lambda nets: everywhere(nets, 2, head_site="b"), "reports to site 'b'"),
    "depth everywhere": (lambda nets: everywhere(nets, 2, depth=7), "frames of 7 numbers"),
    "root deeper": (lambda nets: everywhere(nets, 0, depth=2), "the root scope"),
    "root of another": (lambda nets: everywhere(nets, 0, head_site="a"), "the homesite is 'app'"),
    "inner scope in the root": (lambda nets: everywhere(nets, 2, parent=0, depth=2), "and its loop in s1"),
    "scopes in a ring": (lambda nets: everywhere(nets, 1, parent=2), "scope s1"),
    "less tolerant inside": (lambda nets: everywhere(nets, 2, tolerant=False), "does not tolerate errors"),
    "store without a look-up": (lambda nets: change_action(nets, "cache", Store, lookup=0), "is no look-up"),
    "look-up without a store": (
        lambda nets: change(nets, "cache", Store, action=Evaluate(Input(1))),
        "cache, .*has no stores",
    ),
    "ring": (ring, "mesh.* waits for .*, which waits for .*loop.*"),
    "ring through a cache": (ring_through_cache, "cache.* waits for .*body.*, which waits for .*cache"),
}


def yield_of(nets: Nets) -> str:
    return next(item.node for net in nets.values() for item in net.transitions if isinstance(item.action, SendYield))


def everywhere(nets: Nets, scope: int, **changes: Any) -> Nets:
    for site in nets:
        nets = change_scope(nets, site, scope, **changes)
    return nets


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_and_named(nets: Nets, name: str) -> None:
    plant, expected = PLANTED[name]
    found = messages(plant(nets))
    assert found
    assert any(re.search(expected, message) or expected in message for message in found), found


def test_a_ring_is_shown_as_a_path_through_the_statements(nets: Nets) -> None:
    (message,) = messages(ring(nets))
    statements = message.split(" waits for ")
    assert statements[0].partition(": ")[2].removesuffix(", which") in statements[-1]
    assert all("netir_plans.py:" in statement for statement in statements)


def test_a_loop_that_waits_for_what_is_gathered_from_it() -> None:
    ops = federation().ops.mesh
    with Pipeline() as p:
        before = ops.Echo(x=1, site="b", node_id="before")
        with ForEach([1, 2], node_id="loop") as item:
            value = ops.Add(a=item, b=before, site="b", node_id="value")
        Yield(ops.Echo(x=item.collect(value, node_id="list"), site="b", node_id="end"))
    nets = compiled(p).nets
    assert check_nets(nets) == []
    end, start = find(nets, "end")[1], find(nets, "before")[1]
    back = msgspec.structs.replace(end.routes[0], id=900, port=Port.DONE, site="b", select=())
    nets = change(nets, "end", routes=(*end.routes, back))
    rest = tuple(place for place in nets["b"].starts if place != start.inputs[0].id)
    nets = arrivals(
        put(nets, "b", starts=rest), "b", lambda table: table.update({900: Arrival("b", (start.inputs[0].id,))})
    )
    (message,) = messages(nets)
    for node in ("before", "value", "list", "end"):
        assert f"({node}, " in message


# Random changes


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), count=st.integers(1, 3))
def test_a_random_change_never_breaks_the_check(seed: int, count: int) -> None:
    nets = dict(_WHOLE.nets)
    draw = random.Random(seed)
    for _ in range(count):
        nets = mutate(nets, draw)
    for message in messages(nets):
        assert message


def test_structural_changes_are_found() -> None:
    """Of random changes to numbers, sites, roles and lists most are faults; those that are not change no wiring."""
    found = 0
    for seed in range(300):
        nets = mutate(dict(_WHOLE.nets), random.Random(seed))
        found += bool(check_nets(nets))
    assert found > 180


_WHOLE = whole_plan()


# Where it is used


def test_the_compiler_checks_what_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = federation().ops.mesh

    def careless(*arguments: Any) -> dict[str, NetIR]:
        return put(route(*arguments), "b", arrivals={})

    monkeypatch.setattr(compile_module, "route", careless)
    with Pipeline() as p:
        Yield(ops.Echo(x=ops.Echo(x=1, site="a"), site="b"))
    with pytest.raises(PlanError, match="bug of dfmesh") as caught:
        compiled(p)
    assert len(caught.value.faults) > 1
    assert "mesh.Echo (%1, " in str(caught.value)


def test_a_plan_error_of_many_faults_is_short() -> None:
    ops = federation().ops.mesh
    with Pipeline() as p:
        for _ in range(50):
            Yield(ops.Echo(x=ops.Echo(x=1, site="a"), site="b"))
    error = PlanError(check_nets(put(compiled(p).nets, "b", arrivals={})))
    assert len(error.faults) >= 100
    assert len(str(error).splitlines()) < 25


def test_a_thousand_operations_are_checked_in_milliseconds() -> None:
    ops = federation().ops.mesh
    with Pipeline() as p:
        values = [ops.Echo(x=1, site="a")]
        for index in range(1000):
            values.append(ops.Add(a=values[-1], b=values[index // 2], site="abc"[index % 3]))
        Yield(values[-1])
    config = federation().config
    graph = lower(p, config)
    nets = route(graph, [node.candidates[0] if node.candidates else "a" for node in graph.nodes], "app")
    best = min(_seconds(lambda: check_nets(nets)) for _ in range(5))
    assert best < 0.05


def _seconds(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started
