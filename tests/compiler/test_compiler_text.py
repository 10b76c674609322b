"""The passes in their readable forms: what small pipelines become."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

from dfmesh import And, Choose, Else, FederationConfig, ForEach, If, Not, Pipeline, PlaceParam, Yield
from dfmesh.api import TryFromCache
from dfmesh.compiler import lower, route, validate
from dfmesh.netir import NetIR, Port, render_net


def lowered(config: FederationConfig, write: Callable[[], Any]) -> Any:
    with Pipeline() as pipeline:
        write()
    validate(pipeline, config)
    return lower(pipeline, config)


def graph_of(config: FederationConfig, write: Callable[[], Any]) -> str:
    return "\n" + lowered(config, write).render()


def nets_of(config: FederationConfig, write: Callable[[], Any], sites: str) -> dict[str, NetIR]:
    """Route a pipeline whose nodes are at the given sites, in order; the homesite is `home`."""
    return route(lowered(config, write), sites.split(), "home")


def same(found: str, expected: str) -> None:
    assert dedent(found).strip() == dedent(expected).strip()


# Lowering


def test_a_call_is_a_node_with_an_edge_per_reference(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=PlaceParam("n"), site="a")
        used = ops.op.Use(x=[made, (made["k"], {"m": made["k"]}), made], y={"deep": PlaceParam("n")}, site="a")
        Yield([made["x"], used.field("f"), 3, b"bytes"], place="out")

    same(
        graph_of(small, write),
        """
        n0 s0 %0 ($n): op.Make(n=%0) at a
        n1 s0 %1 (n0, n0['k'], $n): op.Use(x=[%0, (%1, {'m': %1}), %0], y={'deep': %2}) at a
        n2 s0 %2 (n0['x'], n1.f): yield [%0, %1, 3, b'bytes'] at 'out'
        """,
    )


def test_candidates_are_the_sites_that_offer_it_and_take_its_arguments(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        ops.op.Use(x=1)
        ops.op.Use(x=1, level=2)
        ops.op.Hidden(x=1, provider="deep")

    same(
        graph_of(small, write),
        """
        n0 s0 %0 (start trigger): op.Use(x=1) at a|b|c
        n1 s0 %1 (start trigger): op.Use(x=1, level=2) at b
        n2 s0 %2 (start trigger): deep/op.Hidden(x=1) at c
        """,
    )


def test_a_loop_is_a_scope(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=3, site="a")
        with ForEach(made, window=2, node_id="loop") as item:
            with ForEach([1]) as inner:
                used = ops.op.Use(x=item, y=[inner.index, made], site="b")
            Yield(7)
        sums = item.collect({"k": inner.collect(used)})
        Yield([sums, item.reduce(ops.op.Merge, item["k"], weight=made["w"], initial=0, site="a")])

    same(
        graph_of(small, write),
        """
        scope s1 in s0 head n1
        scope s2 in s1 head n2
        n0 s0 %0 (start trigger): op.Make(n=3) at a
        n1 s0 loop (n0): loop s1 over %0 window 2 beside n0
        n2 s1 %1 (n1.iteration trigger): loop s2 over [1] window 64
        n3 s2 %2 (n1.element, n2.index, n0): op.Use(x=%0, y=[%1, %2]) at b
        n4 s1 %3 (n1.iteration trigger): yield 7 at 'yield'
        n5 s1 %4 (n3, n1.iteration trigger): collect s2
        n6 s1 %5 (n5): evaluate {'k': %0}
        n7 s0 %5 (n6, start trigger): collect s1
        n8 s0 %6 (n1.element['k'], n0['w']): reduce s1 with op.Merge(left, right) at a
        n9 s0 %7 (n7, n8): yield [%0, %1] at 'yield'
        """,
    )


def test_a_branch_guards_what_no_guarded_value_skips_anyway(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=3, site="a")
        with If(And(made["k"] > 2, Not(made == "x"))):
            used = ops.op.Use(x=made, site="a")
            Yield(used)
            with If(PlaceParam("on")):
                Yield(made)
        with Else():
            other = ops.op.Use(x=1, site="b")
        Yield(Choose(made > 1, used, other))

    same(
        graph_of(small, write),
        """
        n0 s0 %0 (start trigger): op.Make(n=3) at a
        n1 s0 %1 (n0['k'], n0): branch ((%0 > 2) and not (%1 == 'x'))
        n2 s0 %2 (n0, n1.then guard): op.Use(x=%0) at a
        n3 s0 %3 (n2): yield %0 at 'yield' beside n2
        n4 s0 %4 ($on, n1.then guard): branch %0
        n5 s0 %5 (n0, n4.then guard): yield %0 at 'yield' beside n0
        n6 s0 %6 (n1.else guard): op.Use(x=1) at b
        n7 s0 %7 (n0, n2, n6): choose (%0 > 1) then %1 else %2
        n8 s0 %8 (n7): yield %0 at 'yield' beside n7
        """,
    )


def test_after_waits_for_all_that_a_block_holds(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=3, site="a")
        with ForEach([1]) as item:
            ops.op.Use(x=item, site="b")
        with If(made == 1, node_id="if"):
            ops.op.Use(x=2, site="a")
        ops.op.Use(x=1, site="c", after=[made, item, "if"])

    same(
        graph_of(small, write),
        """
        scope s1 in s0 head n1
        n0 s0 %0 (start trigger): op.Make(n=3) at a
        n1 s0 %1 (start trigger): loop s1 over [1] window 64
        n2 s1 %2 (n1.element): op.Use(x=%0) at b
        n3 s0 if (n0): branch (%0 == 1)
        n4 s0 %3 (n3.then guard): op.Use(x=2) at a
        n5 s1 %1 (n2.done trigger): evaluate None
        n6 s0 %1 (n5, start trigger): collect s1
        n7 s0 %4 (n0.done trigger, n1.done trigger, n6.done trigger, n3.done trigger, n4.done trigger): op.Use(x=1) at c
        """,
    )


def test_a_cache_looks_up_and_stores(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        with TryFromCache(["key", PlaceParam("day")], ttl=60, site="a") as image:
            image.cache(ops.op.Make(n=1, site="b"))
        Yield(image)

    graph = lowered(small, write)
    assert "look up ['key', %0] not older than 60 s" in graph.render()
    assert [edge.port for edge in graph.nodes[1].edges] == [Port.MISS]


# Routing


def test_a_value_is_sent_once_to_a_site_however_many_take_it(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=PlaceParam("n"), site="a")
        ops.op.Rare(x=made)
        ops.op.Rare(x=[made, made])
        ops.op.Use(x=made, site="a")

    nets = nets_of(small, write, "a b b a")
    same(
        "".join(map(render_net, nets.values())).replace(str(__file__), ""),
        """
        net home (home home)
          scope s0 head home with a, b, home
        net a (home home)
          scope s0 head home with a, b, home
          parameter n -> p0
          arrival r1 from a -> p3
          t0 s0 %0 (p0@s0): op.Make(n=%0)
            r0 -> b
            r1 -> a
          t3 s0 %3 (p3@s0): op.Use(x=%0)
        net b (home home)
          scope s0 head home with a, b, home
          arrival r0 from a -> p1, p2
          t1 s0 %1 (p1@s0): op.Rare(x=%0)
          t2 s0 %2 (p2@s0): op.Rare(x=[%0, %0])
        """,
    )


def test_the_sender_selects_unless_the_whole_value_goes_there_too(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=3, site="a")
        ops.op.Use(x=made["big"]["k"], site="b")
        ops.op.Use(x=made["big"]["k"], y=made["small"], site="b")
        ops.op.Use(x=made, y=made["k"], site="c")

    nets = nets_of(small, write, "a b b c")
    same(
        render_net(nets["a"]),
        """
        net a (home home)
          scope s0 head home with a, b, c, home
          start -> p0
          t0 s0 %0 (p0@s0 trigger): op.Make(n=3)
            r0['big']['k'] -> b
            r1['small'] -> b
            r2 -> c
        """,
    )
    assert "op.Use(x=%0, y=%1['k'])" in render_net(nets["c"])
    assert nets["b"].arrivals[0].places == (1, 2)


def test_a_yield_takes_place_where_its_value_is(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        Yield(ops.op.Make(n=3, site="a"), place="out")

    nets = nets_of(small, write, "a a")
    assert [transition.name for transition in nets["a"].transitions] == ["op.Make", "Yield"]
    assert nets["home"].transitions == ()


def test_scopes_name_their_participants(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=3, site="a")
        with ForEach(made) as item:
            with ForEach(item) as inner:
                used = ops.op.Use(x=inner, site="b")
            ops.op.Use(x=item, site="c")
        inner_sums = inner.collect(used)
        Yield(item.collect(inner_sums))

    #                           made loop inner used used collect collect yield
    nets = nets_of(small, write, "a   a    a     b    c    home    home    home")
    same(
        "\n".join(line for line in render_net(nets["b"]).splitlines() if "scope" in line),
        """
          scope s0 head home with a, b, c, home
          scope s1 in s0 head a with a, b, c, home
          scope s2 in s1 head a with b, home
        """,
    )
    assert [scope.id for scope in nets["c"].scopes] == [0, 1]
    assert [scope.depth for scope in nets["b"].scopes] == [1, 2, 3]


def test_a_transition_fires_in_each_frame_of_its_own_scope(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        made = ops.op.Make(n=3, site="a")
        with ForEach([1, 2]):
            ops.op.Use(x=made, site="b")

    nets = nets_of(small, write, "a home b")
    same(
        render_net(nets["b"]),
        """
        net b (home home)
          scope s0 head home with a, b, home
          scope s1 in s0 head home with b
          arrival r0 from a -> p2
          arrival r1 from home -> p3
          t2 s1 %2 (p2@s0, p3@s1 trigger): op.Use(x=%0)
        """,
    )


def test_the_homesite_takes_part_always(small: FederationConfig, ops: Any) -> None:
    nets = nets_of(small, lambda: ops.op.Make(n=1, site="a"), "a")
    assert list(nets) == ["home", "a"]


def test_tolerance_reaches_inner_loops(small: FederationConfig, ops: Any) -> None:
    def write() -> None:
        with ForEach([[1]], on_error="skip") as item, ForEach(item) as inner:
            ops.op.Use(x=inner, site="b")

    nets = nets_of(small, write, "home home b")
    assert [scope.tolerant for scope in nets["b"].scopes] == [False, True, True]


def test_nets_survive_both_encodings(calc: FederationConfig) -> None:
    ops = calc.ops

    def write() -> None:
        made = ops.calc.Numbers(n=3, site="a")
        with ForEach(made) as item:
            used = ops.calc.Add(a=item, b=1, site="b")
        with If(made[0] > 1):
            Yield({"k": (item.collect(used), b"x")})

    for net in route(lowered(calc, write), ["a", "a", "b", "a", "b", "app"], "app").values():
        assert NetIR.from_bytes(net.to_bytes()) == net
        assert NetIR.from_json(net.to_json()) == net
