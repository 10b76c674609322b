# ruff: noqa: SIM117 - the nesting is what is tested
"""Each construct of the language on each target: values with their types, their order, and what must not happen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dfmesh
from dfmesh import And, BestOf, Choose, Else, ForEach, If, Not, Or, Pipeline, PlaceParam, Yield

from .conftest import CALC_FILE, LIMIT, Runner, assert_same, items_of

EXOTIC = {
    "tuple": (1, 2),
    "list": [1, [2, (3,)]],
    "list of tuples": [(1, 2), (3, 4)],
    "integer keys": {1: 2, -3: [4]},
    "tuple keys": {(1, 2): "x", None: 0, 2.5: "y", True: False},
    "one key of each sort": {1: "int", "1": "str"},
    "empty": [(), [], {}, "", b""],
    "bytes": b"\x00\xff" * 3,
    "numbers": [0, -1, 2**63, -(2**70), 1.0, -0.0, 1e300, True, False],
    "none": None,
    "text": "Größe \U0001f327 \x00 'quoted' \"twice\"",
    "looks like a marker": {"@dfm-place-param": "x", "kind": "const", "dfm_node_id": 1, "$tuple": [1]},
}


@pytest.fixture(params=list(EXOTIC))
def exotic(request: pytest.FixtureRequest) -> Any:
    return EXOTIC[request.param]


# Operations, values, yields.


def test_operation(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=1, b=2), place="sum")
    assert_same(run(p), {"sum": [3]})


def test_arguments_by_position(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Combine(3, 4))
    assert_same(run(p), {"yield": [3 * 31 + 4 * 7 + 1]})


def test_constant_is_yielded(run: Runner, exotic: Any) -> None:
    with Pipeline() as p:
        Yield(exotic, place="x")
    assert_same(run(p), {"x": [exotic]})


def test_parameter_is_yielded(run: Runner, exotic: Any) -> None:
    with Pipeline() as p:
        Yield(PlaceParam("value"), place="x")
    assert_same(run(p, value=exotic), {"x": [exotic]})


@pytest.mark.parametrize("site", ["a", "d", "app"])
def test_value_through_a_site(run: Runner, ops: Any, exotic: Any, site: str) -> None:
    """Also a top-level tuple, `[(1, 2)]` and `{1: 2}`, which are no messages of any kind."""
    with Pipeline() as p:
        Yield(ops.calc.Identity(x=exotic, site=site), place="x")
    assert_same(run(p), {"x": [exotic]})


def test_value_through_two_sites(run: Runner, ops: Any, exotic: Any) -> None:
    with Pipeline() as p:
        one = ops.calc.Identity(x=exotic, site="a")
        two = ops.calc.Identity(x=one, site="b")
        Yield([one, two], place="x")
        Yield([ops.calc.Mix(values=one, site="a"), ops.calc.Mix(values=two, site="d")], place="digests")
    found = run(p)
    assert_same(found["x"], [[exotic, exotic]])
    assert found["digests"][0][0] == found["digests"][0][1]


def test_same_operation_at_all_sites_has_one_meaning(run: Runner, ops: Any, exotic: Any) -> None:
    with Pipeline() as p:
        value = ops.calc.Identity(x=exotic)
        Yield([ops.calc.Mix(values=value, site=site) for site in "abcd"], place="digests")
    assert len(set(run(p)["digests"][0])) == 1


def test_arrays(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        array = ops.calc.Array(n=100_000, site="a")
        Yield(array, place="array")
        Yield(ops.calc.ArraySum(values=array, site="b"), place="sum")
    found = run(p)
    assert found["array"][0].dtype.str == "<f4"
    assert found["array"][0].shape == (100_000,)
    assert found["array"][0][-1] == 99_999
    assert found["sum"] == [pytest.approx(99_999 * 50_000)]


def test_numpy_array_as_constant_and_parameter(run: Runner, ops: Any) -> None:
    import numpy as np

    constant = np.arange(6, dtype=np.int16).reshape(2, 3)
    with Pipeline() as p:
        Yield(ops.calc.Identity(x={"c": constant, "p": PlaceParam("p")}, site="b"), place="x")
    assert_same(run(p, p=constant.T), {"x": [{"c": constant, "p": constant.T}]})


def test_intermediate_values_are_yielded(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        x = ops.calc.Add(a=1, b=1, site="a")
        Yield(x, place="x")
        y = ops.calc.Add(a=x, b=1, site="b")
        Yield(y, place="y")
        Yield(ops.calc.Add(a=x, b=y, site="a"), place="z")
        Yield(x, place="x again")
    assert_same(dict(sorted(run(p).items())), {"x": [2], "x again": [2], "y": [3], "z": [5]})


def test_structure_is_yielded(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        x, y = ops.calc.Add(a=1, b=1, site="a"), ops.calc.Add(a=2, b=2, site="b")
        Yield({"both": (x, [y, PlaceParam("p"), 7])}, place="s")
    assert_same(run(p, p=None), {"s": [{"both": (2, [4, None, 7])}]})


def test_yields_may_share_a_place(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=1, b=1, site="a"), place="n")
        Yield(ops.calc.Add(a=2, b=2, site="b"), place="n")
        Yield(5, place="n")
    assert_same(run(p), {"n": [2, 4, 5]})


def test_place_without_a_result_is_empty(live: Runner) -> None:
    with Pipeline() as p:
        with If(PlaceParam("on")):
            Yield(1, place="x")
    assert dict(live.session.run(p, on=False)) == {"x": []}


def test_default_place(run: Runner) -> None:
    with Pipeline() as p:
        Yield(1)
    assert_same(run(p), {"yield": [1]})


def test_pipeline_without_yields(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        ops.calc.Add(a=1, b=1, site="a")
    assert run(p) == {}


def test_operation_of_the_homesite(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Where(site="app").field("site"), place="home")
        Yield(ops.calc.Where(site="c")["site"], place="away")
    assert_same(dict(sorted(run(p).items())), {"away": ["c"], "home": ["app"]})


def test_site_is_where_it_ran(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        for site in ("a", "b", "c", "d", "app"):
            Yield(ops.calc.Where(site=site), place=site)
    assert {place: values[0]["site"] for place, values in run(p).items()} == {s: s for s in ("a", "b", "c", "d", "app")}


def test_best_of(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Where(site=BestOf(["c", "d"]))["site"], place="some")
        Yield(ops.calc.WhereOnly(site=BestOf(["b"])), place="one")
        Yield(ops.calc.WhereOnly(), place="free")
        Yield(ops.calc.Where(site=BestOf())["site"], place="any")
    found = run(p)
    assert found["some"][0] in {"c", "d"}
    assert found["one"] == found["free"] == ["only b"]
    assert found["any"][0] in {"a", "b", "c", "d", "app"}


# References.


def test_references_inside_structures(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        x = ops.calc.Add(a=1, b=1, site="a")
        y = ops.calc.Add(a=x, b=1, site="b")
        deep = ops.calc.Identity(x=[x, (y, {"k": [y, {3: (x,)}]}), {"e": {}}, ()], site="c")
        Yield(deep, place="deep")
        Yield(ops.calc.Total(items=[x, y, x, 10], site="d"), place="total")
        Yield(ops.calc.Total(items=(x, y)), place="tuple")
    found = run(p)
    assert_same(found["deep"], [[2, (3, {"k": [3, {3: (2,)}]}), {"e": {}}, ()]])
    assert_same((found["total"], found["tuple"]), ([17], [5]))


def test_selectors(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        record = ops.calc.Record(x={"q": [7, 8, (9,)]}, n=1, site="b")
        pair = ops.calc.Pair(x=(1, 2), site="a")
        Yield(record["value"]["q"][2][0], place="nested")
        Yield(record[7], place="integer key")
        Yield(record["value"]["q"][-2], place="from the end")
        Yield(record.field("n"), place="field of a dictionary")
        Yield(pair[0], place="of a tuple")
        Yield(ops.calc.Add(a=record["n"], b=pair[0][1], site="c"), place="argument")
        Yield([record["deep"], pair[0]], place="in a list")
    found = run(p)
    assert_same([found["nested"], found["integer key"], found["from the end"]], [[9], ["seven"], [8]])
    assert_same([found["field of a dictionary"], found["of a tuple"], found["argument"]], [[1], [(1, 2)], [3]])
    assert_same(found["in a list"], [[{"pair": (1, [2, 3])}, (1, 2)]])


def test_selector_on_a_parameter(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(PlaceParam("p")["k"][0], place="yield")
        Yield(ops.calc.Add(a=PlaceParam("p")["k"][1], b=1, site="a"), place="argument")
    assert_same(dict(sorted(run(p, p={"k": (5, 6)}).items())), {"argument": [7], "yield": [5]})


def test_selector_that_does_not_fit_is_an_error_of_the_statement(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        record = ops.calc.Record(x=1, n=1, site="b")
        Yield(record["no such key"], place="bad")
        Yield(ops.calc.Add(a=record["n"], b=1, site="c"), place="good")
    outcome = run.outcome(p)
    assert outcome.status == "failed"
    assert outcome.results == {"good": [2]}
    assert "no such key" in str(outcome.errors[0])
    assert "test_language.py" in outcome.errors[0].location


def test_shared_value_goes_to_many(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        x = ops.calc.Add(a=1, b=1, site="a")
        level = [x]
        for site in "bcdbcd":
            level = [ops.calc.Add(a=level[-1], b=item, site=site) for item in level for _ in range(2)][:8]
        Yield(ops.calc.Total(items=level, site="a"), place="t")
    values = [2]
    for _ in range(6):
        values = [values[-1] + item for item in values for _ in range(2)][:8]
    assert_same(run(p), {"t": [sum(values)]})


def test_chain_back_and_forth_between_two_sites(run: Runner, ops: Any) -> None:
    """FINDINGS 2: whatever order they are written in."""
    with Pipeline() as p:
        x = ops.calc.Add(a=1, b=0, site="a")
        for site in "babab":
            x = ops.calc.Add(a=x, b=1, site=site)
        Yield(x, place="x")
    assert_same(run(p), {"x": [6]})


def test_crossing_chains(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        one, two = ops.calc.Add(a=1, b=0, site="a"), ops.calc.Add(a=2, b=0, site="b")
        for first, second in ("ba", "ab", "ba", "ab"):
            one, two = ops.calc.Add(a=one, b=two, site=first), ops.calc.Add(a=two, b=one, site=second)
        Yield([one, two], place="x")
    assert_same(run(p), {"x": [[2**3 * 3, 2**3 * 3]]})


# Parameters.


def test_parameter_default(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=PlaceParam("a", default=10), b=PlaceParam("b"), site="a"), place="x")
    assert_same(run(p, b=1), {"x": [11]})
    assert_same(run(p, b=1, a=0), {"x": [1]})


@pytest.mark.parametrize("default", [None, 0, "", False, [], ()], ids=repr)
def test_falsy_default(run: Runner, default: Any) -> None:
    with Pipeline() as p:
        Yield(PlaceParam("x", default=default), place="x")
    assert_same(run(p), {"x": [default]})


@pytest.mark.parametrize("given", [None, 0, "", False, [], ()], ids=repr)
def test_falsy_value_wins_over_default(run: Runner, given: Any) -> None:
    with Pipeline() as p:
        Yield(PlaceParam("x", default=5), place="x")
    assert_same(run(p, x=given), {"x": [given]})


def test_parameter_in_many_places(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        n = PlaceParam("n")
        Yield([n, ops.calc.Add(a=n, b=n, site="a"), ops.calc.Mix(values=[n], site="b")], place="x")
        with ForEach([1, 2]) as item:
            Yield(ops.calc.Add(a=item, b=n, site="c"), place="loop")
    found = run(p, n=5)
    assert found["x"][0][:2] == [5, 10]
    assert found["loop"] == [6, 7]


def test_parameter_sets_in_order(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        x = ops.calc.Add(a=PlaceParam("n"), b=1, site="a")
        Yield(ops.calc.Add(a=x, b=x, site="b"), place="x")
    outcome = run.outcome(p, *({"n": n} for n in range(20)))
    assert_same(outcome.results, {"x": [2 * n + 2 for n in range(20)]})


def test_missing_parameter_is_refused(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=PlaceParam("needed"), b=1), place="x")
    with pytest.raises(dfmesh.PipelineError, match="needed"):
        run(p)


def test_unknown_parameter_is_refused(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=PlaceParam("known"), b=1), place="x")
    with pytest.raises(dfmesh.PipelineError, match="knwon"):
        run(p, known=1, knwon=2)


@pytest.mark.timeout(60)
def test_thousand_parameter_sets(live: Runner, ops: Any) -> None:
    """FINDINGS 16."""
    with Pipeline() as p:
        x = ops.calc.Add(a=PlaceParam("n"), b=1, site="a")
        Yield(ops.calc.Add(a=x, b=0, site="b"), place="x")
    outcome = live.outcome(p, *({"n": n} for n in range(1000)))
    assert outcome.results == {"x": [n + 1 for n in range(1000)]}


# Loops.


@pytest.mark.parametrize("window", [None, 1, 2, 5, 1000])
def test_foreach(run: Runner, ops: Any, window: int | None) -> None:
    with Pipeline() as p:
        with ForEach([3, 1, 2], window=window) as item:
            x = ops.calc.Add(a=item, b=10, site="a")
            Yield(ops.calc.Add(a=x, b=item.index, site="b"), place="x")
            Yield(item.index, place="index")
            Yield(item, place="item")
    found = run(p)
    assert_same([found["x"], found["index"], found["item"]], [[13, 12, 14], [0, 1, 2], [3, 1, 2]])


@pytest.mark.parametrize("source", ["constant", "tuple", "parameter", "operation", "references", "empty"])
def test_foreach_over(run: Runner, ops: Any, source: str) -> None:
    with Pipeline() as p:
        sequence, expected = {
            "constant": lambda: ([1, 2], [1, 2]),
            "tuple": lambda: (((1,), (2, 3)), [(1,), (2, 3)]),
            "parameter": lambda: (PlaceParam("p"), [4, 5]),
            "operation": lambda: (ops.calc.Numbers(n=3, site="c"), [39, 46, 53]),
            "references": lambda: ([ops.calc.Add(a=1, b=1, site="a"), 5], [2, 5]),
            "empty": lambda: ([], []),
        }[source]()
        with ForEach(sequence) as item:
            Yield(ops.calc.Identity(x=item, site="b"), place="x")
        Yield(item.collect(item), place="all")
    found = run(p, **({"p": [4, 5]} if source == "parameter" else {}))
    assert_same(found.get("x", []), expected)
    assert_same(found["all"], [expected])


def test_foreach_over_something_that_is_no_sequence(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(ops.calc.Add(a=1, b=1, site="a")) as item:
            Yield(item, place="x")
        Yield(1, place="good")
    outcome = run.outcome(p)
    assert outcome.status == "failed"
    assert outcome.results == {"good": [1]}


def test_loop_sees_values_from_outside(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        outer = ops.calc.Add(a=100, b=0, site="d")
        with ForEach([1, 2]) as i:
            middle = ops.calc.Add(a=outer, b=i, site="a")
            with ForEach([10, 20]) as j:
                Yield(ops.calc.Total(items=[outer, middle, i, j], site="b"), place="x")
    assert_same(run(p), {"x": [100 + 101 + 1 + 10, 100 + 101 + 1 + 20, 100 + 102 + 2 + 10, 100 + 102 + 2 + 20]})


def test_loop_in_loop_over_elements_of_elements(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        rows = ops.calc.Table(n=2, site="d")
        with ForEach(rows, window=2) as row:
            with ForEach(row["items"], window=1) as number:
                x = ops.calc.Add(a=number, b=row["k"], site="a")
                Yield((row.index, number.index, x), place="x")
            inner = number.collect(x)
        Yield(row.collect(inner), place="all")
    expected = [[(n * 13 + k * 7) % 101 + n for k in range(n % 5)] for n in (2, 3, 4)]
    flat = [(i, j, x) for i, row in enumerate(expected) for j, x in enumerate(row)]
    found = run(p)
    assert_same([found["x"], found["all"]], [flat, [expected]])


def test_three_loops_deep(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([1, 2], window=1) as i:
            with ForEach([10, 20], window=2) as j:
                with ForEach([100, 200], window=1) as k:
                    Yield(ops.calc.Total(items=[i, j, k], site="c"), place="x")
    assert_same(run(p), {"x": [i + j + k for i in (1, 2) for j in (10, 20) for k in (100, 200)]})


def test_loop_over_what_a_loop_collected(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([1, 2, 3]) as i:
            x = ops.calc.Add(a=i, b=i, site="a")
        with ForEach(i.collect(x)) as j:
            Yield(ops.calc.Add(a=j, b=1, site="b"), place="x")
    assert_same(run(p), {"x": [3, 5, 7]})


def test_two_loops_side_by_side(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        numbers = ops.calc.Numbers(n=4, site="a")
        with ForEach(numbers) as i:
            Yield(ops.calc.Add(a=i, b=0, site="b"), place="i")
        with ForEach(numbers, window=1) as j:
            Yield(ops.calc.Add(a=j, b=1, site="c"), place="j")
    numbers = [52, 59, 66, 73]
    found = run(p)
    assert_same([found["i"], found["j"]], [numbers, [n + 1 for n in numbers]])


def test_collect(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([3, 1, 2]) as item:
            x = ops.calc.Add(a=item, b=10, site="a")
            inside = item.collect({"x": (x, item.index)})
        Yield(item.collect(x), place="after the block")
        Yield(inside, place="inside")
        Yield(item.collect(7), place="constant")
        Yield(ops.calc.Total(items=item.collect(x), site="b"), place="total")
    found = run(p)
    assert_same([found["after the block"], found["constant"], found["total"]], [[[13, 11, 12]], [[7, 7, 7]], [36]])
    assert_same(found["inside"], [[{"x": (13, 0)}, {"x": (11, 1)}, {"x": (12, 2)}]])


def test_reduce_folds_from_the_left(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([1, 2, 3], window=3) as item:
            x = ops.calc.Add(a=item, b=0, site="a")
        Yield(item.reduce(ops.calc.Combine, x), place="plain")
        Yield(item.reduce(ops.calc.Combine, x, initial=9), place="initial")
        Yield(item.reduce(ops.calc.Combine, x, site="d"), place="site")

    def combine(left: int, right: int) -> int:
        return left * 31 + right * 7 + 1

    plain = combine(combine(1, 2), 3)
    initial = combine(combine(combine(9, 1), 2), 3) % 1_000_000
    found = run(p)
    assert_same([found["plain"], found["initial"], found["site"]], [[plain], [initial], [plain]])


def test_reduce_of_one_and_of_none(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([5]) as one:
            Yield(one, place="element")
        with ForEach([]) as none:
            Yield(none, place="never")
        Yield(one.reduce(ops.calc.Combine, one), place="one")
        Yield(none.reduce(ops.calc.Combine, none, initial=0), place="none")
    assert_same(dict(sorted(run(p).items())), {"element": [5], "none": [0], "one": [5]})


def test_reduce_of_nothing_without_initial_fails(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(PlaceParam("xs")) as item:
            x = ops.calc.Add(a=item, b=1, site="a")
        Yield(item.reduce(ops.calc.Combine, x), place="x")
    outcome = run.outcome(p, {"xs": []}, {"xs": [4]})
    assert outcome.status == "failed"
    assert outcome.results == {"x": [5]}
    assert "initial" in str(outcome.errors[0])


def test_reduce_of_several_values_folds_each_where_it_is(run: Runner, ops: Any) -> None:
    """One result per site crosses, not one per iteration, and the parts are merged in the order given."""
    with Pipeline() as p:
        with ForEach([1, 2, 3]) as item:
            tens, units = ops.calc.Add(a=item, b=10, site="a"), ops.calc.Add(a=item, b=0, site="b")
            total = item.reduce(ops.calc.Add, tens, units, 1000, initial=0)
        Yield(total)
        Yield(item.reduce(ops.calc.Combine, tens, units, node_id="combined"), place="in order")

    def combine(left: int, right: int) -> int:
        return (left * 31 + right * 7 + 1) % 1_000_000

    parts = [combine(combine(11, 12), 13), combine(combine(1, 2), 3)]
    found = run(p)
    assert_same([found["yield"], found["in order"]], [[36 + 6 + 3000], [combine(*parts)]])
    assert "combined" in [statement.node_id for statement in p.body]
    assert_same(run(Pipeline.load(p.model_dump_json())), found)


def test_reduce_of_several_values_of_an_empty_loop(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([]) as item:
            x = ops.calc.Add(a=item, b=1, site="a")
        Yield(item.reduce(ops.calc.Add, x, item, initial=0))
    assert_same(run(p), {"yield": [0]})


def test_loop_results_written_in_a_later_block_stand_before_it(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([1, 2]) as item:
            x = ops.calc.Add(a=item, b=0, site="b")
        first = item.reduce(ops.calc.Add, x)
        with If(first > 2):
            Yield(item.reduce(ops.calc.Add, x, item, initial=first), place="large")
        with Else():
            Yield(item.collect(x), place="small")
    assert_same(run(p), {"large": [12]})


def test_reduce_in_the_inner_loop(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([[1, 2], [3], []]) as row:
            with ForEach(row) as n:
                doubled = ops.calc.Add(a=n, b=n, site="b")
            total = n.reduce(ops.calc.Add, doubled, initial=0)
        Yield(row.collect(total), place="totals")
    assert_same(run(p), {"totals": [[6, 6, 0]]})


def test_window_limits_how_many_run(live: Runner, ops: Any, tmp_path: Path) -> None:
    """With a window of 2 the third does not start before one of the first two has ended."""
    with Pipeline() as p:
        with ForEach([str(tmp_path / name) for name in "abcd"], window=2) as path:
            started = ops.calc.Leave(path=ops.calc.Concat(parts=[path, "started"]), site="a")
            Yield(ops.calc.Gate(path=path, x=path.index, after=started, site="b"), place="done")
    job = live.session.submit(p)
    waiting = {"a|started", "b|started"}
    _until(lambda: {path.name for path in tmp_path.iterdir()} >= waiting)
    assert {path.name for path in tmp_path.iterdir()} == waiting
    for name in "abcd":
        (tmp_path / name).touch()
    assert job.result(timeout=LIMIT)["done"] == [0, 1, 2, 3]


# Conditions.


@pytest.mark.parametrize("n", [1, 5])
def test_if_else(run: Runner, ops: Any, n: int) -> None:
    with Pipeline() as p:
        x = ops.calc.Add(a=PlaceParam("n"), b=0, site="a")
        with If(x > 3):
            Yield(ops.calc.Add(a=x, b=100, site="b"), place="large")
            Yield("large", place="said")
        with Else():
            Yield(ops.calc.Add(a=x, b=200, site="c"), place="small")
            Yield("small", place="said")
    expected = {"large": [105], "said": ["large"]} if n == 5 else {"said": ["small"], "small": [201]}
    assert_same(dict(sorted(run(p, n=n).items())), expected)


def test_conditions(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        n, word = PlaceParam("n"), PlaceParam("word")
        pair = ops.calc.Pair(x=n, site="a")
        conditions = {
            "==": word == "x",
            "!=": word != "x",
            "<": pair[0] < 3,
            "<=": n <= 2,
            ">": n > 2,
            ">=": pair[0] >= 3,
            "and": And(n == 2, word == "x"),
            "or": Or(n == 3, word == "x"),
            "not": Not(n == 3),
            "operators": (n == 2) & ~(word == "y") | (n == 9),
            "truth": n,
            "constant": True,
        }
        for name, condition in conditions.items():
            with If(condition):
                Yield(name, place=name)
    assert set(run(p, n=2, word="x")) == {"==", "<", "<=", "and", "or", "not", "operators", "truth", "constant"}
    assert set(run(p, n=3, word="y")) == {"!=", ">", ">=", "or", "truth", "constant"}
    assert set(run(p, n=0, word="y")) == {"!=", "<", "<=", "not", "constant"}


def test_if_in_if(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with If(PlaceParam("a") == 1):
            with If(PlaceParam("b") == 1):
                Yield(ops.calc.Add(a=1, b=1, site="a"), place="both")
            with Else():
                Yield(1, place="a alone")
        with Else():
            with If(PlaceParam("b") == 1):
                Yield(1, place="b alone")
    cases = {(1, 1): "both", (1, 0): "a alone", (0, 1): "b alone"}
    for (a, b), place in cases.items():
        assert list(run(p, a=a, b=b)) == [place]
    assert run(p, a=0, b=0) == {}


def test_loop_in_if_and_if_in_loop(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with If(PlaceParam("on")):
            with ForEach([1, 2, 3, 4]) as item:
                with If(item > 2):
                    x = ops.calc.Add(a=item, b=0, site="a")
                    Yield(x, place="large")
                with Else():
                    Yield(item, place="small")
            Yield(item.collect(x), place="collected")
            Yield(item.reduce(ops.calc.Add, x), place="reduced")
    found = run(p, on=True)
    assert_same([found["large"], found["small"]], [[3, 4], [1, 2]])
    assert_same([found["collected"], found["reduced"]], [[[3, 4]], [7]])
    assert run(p, on=False) == {}


def test_skipping_goes_on_to_what_depends(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with If(PlaceParam("on")):
            x = ops.calc.Add(a=1, b=1, site="a")
        y = ops.calc.Add(a=Choose(PlaceParam("take"), x, 5), b=1, site="b")
        Yield(y, place="y")
        Yield([1, y], place="list")
        with ForEach([y]) as item:
            Yield(item, place="loop")
        Yield("always", place="always")
    for on, take, value in ((True, True, 3), (True, False, 6), (False, False, 6)):
        found = dict(sorted(run(p, on=on, take=take).items()))
        assert found == {"always": ["always"], "list": [[1, value]], "loop": [value], "y": [value]}
    outcome = run.outcome(p, {"on": False, "take": True})
    assert outcome.results == {"always": ["always"]}
    assert "branch" in str(outcome.errors[0])


def test_value_of_a_branch_outside_it_is_refused(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with If(PlaceParam("on")):
            x = ops.calc.Add(a=1, b=1, site="a")
        Yield(x, place="x")
    with pytest.raises(dfmesh.PipelineError, match="Choose"):
        live(p, on=True)


@pytest.mark.parametrize("on", [True, False])
def test_choose(run: Runner, ops: Any, on: bool) -> None:
    with Pipeline() as p:
        condition = If(PlaceParam("on") == True)  # noqa: E712 - a condition, not a comparison
        with condition:
            x = ops.calc.Add(a=1, b=1, site="a")
        with Else():
            y = ops.calc.Pair(x=1, site="b")
        chosen = Choose(PlaceParam("on") == True, x, y[0])  # noqa: E712
        Yield(ops.calc.Add(a=chosen, b=10, site="c"), place="x")
        Yield(Choose(PlaceParam("on"), "yes", ["no"]), place="constant")
    found = run(p, on=on)
    assert_same([found["x"], found["constant"]], [[12], ["yes"]] if on else [[11], [["no"]]])


# Order.


@pytest.mark.parametrize("form", ["statement", "id", "list"])
def test_after(run: Runner, ops: Any, form: str) -> None:
    """FINDINGS 5, across sites too."""
    run.orders = 1  # the values are times
    with Pipeline() as p:
        slow = ops.calc.Block(seconds=0.05, site="a", node_id="slow")
        other = ops.calc.Block(seconds=0.05, site="c")
        after = {"statement": slow, "id": "slow", "list": ["slow", other]}[form]
        Yield(slow, place="slow")
        Yield(ops.calc.Tick(site="a", after=after), place="same site")
        Yield(ops.calc.Tick(site="b", after=after), place="other site")
    found = run(p)
    assert found["slow"][0] < found["same site"][0]
    assert found["slow"][0] < found["other site"][0]


def test_after_in_a_loop_waits_for_an_outer_statement(run: Runner, ops: Any) -> None:
    run.orders = 1
    with Pipeline() as p:
        slow = ops.calc.Block(seconds=0.05, site="a")
        Yield(slow, place="slow")
        with ForEach([1, 2]):
            Yield(ops.calc.Tick(site="b", after=slow), place="ticks")
    found = run(p)
    assert len(found["ticks"]) == 2
    assert found["slow"][0] < min(found["ticks"])


def test_after_a_failure_fails_and_after_a_skipped_branch_goes_on(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        bad = ops.calc.Fail(message="it rains", site="a")
        Yield(ops.calc.Add(a=1, b=1, site="b", after=bad), place="never")
        branch = If(PlaceParam("on"))
        with branch:
            ops.calc.Add(a=1, b=1, site="a")
        Yield(ops.calc.Add(a=1, b=1, site="b", after=branch), place="after")
        with ForEach(PlaceParam("xs")) as loop:
            ops.calc.Add(a=loop, b=1, site="c")
        Yield(ops.calc.Add(a=1, b=1, site="b", after=loop), place="after loop")
    for on, xs in ((True, [1, 2]), (False, [])):
        outcome = run.outcome(p, {"on": on, "xs": xs})
        assert outcome.results == {"after": [2], "after loop": [2]}
        assert [error.message for error in outcome.errors] == ["it rains"]


@pytest.mark.parametrize("site", ["a", "b"], ids=["functions", "coroutines"])
def test_independent_operations_of_a_site_run_at_once(live: Runner, ops: Any, site: str) -> None:
    """FINDINGS 10: each of the two only returns once both are running."""
    name = f"{live.target} {site} {os.getpid()}"
    with Pipeline() as p:
        for place in "xy":
            Yield(ops.calc.Meet(name=name, parties=2, site=site), place=place)
    assert len(live(p)) == 2


@pytest.mark.parametrize("site", ["a", "b"], ids=["functions", "coroutines"])
def test_iterations_run_at_once(live: Runner, ops: Any, site: str) -> None:
    name = f"loop {live.target} {site} {os.getpid()}"
    with Pipeline() as p:
        with ForEach([1, 2, 3, 4], window=4):
            Yield(ops.calc.Meet(name=name, parties=4, site=site), place="x")
    assert len(live(p)["x"]) == 4


def test_value_that_is_ready_does_not_wait_for_a_neighbour(live: Runner, ops: Any, tmp_path: Path) -> None:
    """FINDINGS 10: the slow one ends only after the client has the quick one."""
    gate = tmp_path / "gate"
    with Pipeline() as p:
        Yield(ops.calc.Gate(path=str(gate), x="slow", site="a"), place="slow")
        Yield(ops.calc.Add(a=1, b=1, site="a"), place="quick")
    job = live.session.submit(p)
    places = []
    for item in job:
        places.append(item.place)
        gate.touch()
    assert places == ["quick", "slow"]


def test_items_tell_where_they_come_from(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([5, 6]) as item:
            Yield(ops.calc.Add(a=item, b=0, site="b"), place="x", node_id="out")
    items = sorted(items_of(live.session.submit(p)), key=lambda item: item.frame)
    assert [(item.place, item.frame, item.value, item.node) for item in items] == [
        ("x", (0, 0), 5, "out"),
        ("x", (0, 1), 6, "out"),
    ]
    assert items[0].site in {"b", "app"}


def test_results_in_order_and_as_they_come(live: Runner, ops: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Pipeline() as p:
        with ForEach([0, 1, 2], window=3) as item:
            with If(item == 0):
                x = ops.calc.Gate(path=str(gate), x=0, site="a")
            with Else():
                y = ops.calc.Add(a=item, b=0, site="a")
            Yield(Choose(item == 0, x, y), place="x")
    job = live.session.submit(p)
    unordered = []
    for item in job.results("x", ordered=False):
        unordered.append(item.value)
        if len(unordered) == 2:
            gate.touch()
    assert sorted(unordered[:2]) == [1, 2]
    assert unordered[2] == 0
    again = live.session.submit(p)
    assert [item.value for item in again.results("x", ordered=True)] == [0, 1, 2]


def test_end_does_not_overtake_results(live: Runner, ops: Any) -> None:
    """FINDINGS 15."""
    with Pipeline() as p:
        for site in "abcd":
            with ForEach(list(range(25)), window=5) as item:
                Yield(ops.calc.Add(a=item, b=0, site=site), place=site)
    for _ in range(5):
        assert live(p) == {site: list(range(25)) for site in "abcd"}


# Streams.


@pytest.mark.parametrize("site", ["a", "b", "c"], ids=["generator", "async generator", "body"])
@pytest.mark.parametrize("consumer", ["a", "b"])
def test_foreach_over_a_stream(run: Runner, ops: Any, site: str, consumer: str) -> None:
    """FINDINGS 14: also if the consumer is at another site."""
    with Pipeline() as p:
        with ForEach(ops.calc.Stream(n=1, site=site)) as item:
            Yield(ops.calc.Add(a=item, b=item.index, site=consumer), place="x")
    assert_same(run(p), {"x": [52, 60, 68, 76]})


@pytest.mark.parametrize("consumer", ["a", "b", "c", "d"])
def test_stream_as_an_argument(run: Runner, ops: Any, consumer: str) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Total(items=ops.calc.Stream(n=1, site="b"), site=consumer), place="x")
    assert_same(run(p), {"x": [250]})


def test_every_consumer_of_a_stream_sees_all_of_it(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        stream = ops.calc.Stream(n=1, site="a")
        for place, site in (("x", "a"), ("y", "b")):
            with ForEach(stream) as item:
                Yield(ops.calc.Add(a=item, b=0, site=site), place=place)
        Yield(ops.calc.Total(items=stream, site="c"), place="z")
        Yield(ops.calc.Concat(parts=[stream, stream], site="d"), place="list")
    items = [52, 59, 66, 73]
    found = run(p)
    assert [found["x"], found["y"], found["z"]] == [items, items, [250]]
    assert found["list"] == [f"{items}|{items}"]


def test_stream_is_yielded_item_by_item(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        stream = ops.calc.Stream(n=1, site="a")
        Yield(stream, place="x")
        Yield(stream, place="y")
    assert_same(dict(sorted(run(p).items())), {"x": [52, 59, 66, 73], "y": [52, 59, 66, 73]})


def test_stream_is_yielded_item_by_item_inside_a_loop(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        stream = ops.calc.Stream(n=1, site="a")
        with ForEach([0, 1]) as item:
            Yield(ops.calc.Stream(n=item.index, site="b"), place="of the loop")
            Yield(stream, place="from outside")
    found = run(p)
    assert_same(found["of the loop"], [39, 46, 53, 52, 59, 66, 73])
    assert_same(found["from outside"], [52, 59, 66, 73] * 2)


def test_empty_stream(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        stream = ops.calc.Stream(n=2, site="a")
        with ForEach(stream) as item:
            Yield(item, place="never")
        Yield(stream, place="never")
        Yield([stream], place="list")
        Yield(item.collect(item), place="all")
    assert_same(dict(sorted(run(p).items())), {"all": [[]], "list": [[[]]]})


def test_two_streams_run_at_once(live: Runner, ops: Any) -> None:
    name = f"streams {live.target} {os.getpid()}"
    with Pipeline() as p:
        for place in "xy":
            with ForEach(ops.calc.MeetingStream(name=name, n=5, site="a")) as item:
                Yield(item, place=place)
    assert dict(sorted(live(p).items())) == {"x": list(range(5)), "y": list(range(5))}


# Optional parameters, constructor arguments, constants of the federation file.


def test_optional_parameters_left_out(run: Runner, ops: Any) -> None:
    """FINDINGS 20: the adapter's default holds; None and 0 that were given arrive."""
    with Pipeline() as p:
        Yield(ops.calc.Optional(x=1, site="a"), place="left out")
        Yield(ops.calc.Optional(x=1, y=0, z=None, site="a"), place="falsy")
    assert_same(dict(sorted(run(p).items())), {"falsy": [[1, 0, None]], "left out": [[1, 5, "left out"]]})


def test_same_class_with_other_constructor_arguments(run: Runner, ops: Any) -> None:
    """One instance per set of constructor arguments and site, not per job."""
    with Pipeline() as p:
        Yield([ops.calc.Scaled(x=5, site=site) for site in "ab"], place="scaled")
        Yield([ops.calc.Tripled(x=5, site=site) for site in "ab"], place="tripled")
    found, again = run(p), run(p)
    assert [(item["site"], item["value"]) for item in found["scaled"][0]] == [("a", 10), ("b", 10)]
    assert [(item["site"], item["value"]) for item in found["tripled"][0]] == [("a", 16), ("b", 16)]
    if run.target != "simulator":
        assert found == again


def test_falsy_constants(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Constants(site="a"), place="x")
    assert_same(run(p), {"x": [[False, 0, "", None]]})


def test_operation_of_a_provider(run: Runner, ops: Any) -> None:
    """FINDINGS 21."""
    with Pipeline() as p:
        Yield(ops.calc.Shared(x=ops.calc.Add(a=1, b=1, site="a"), site="b", provider="shop"), place="x")
        Yield(ops.calc.Shared(x=3, provider="shop"), place="free")
    assert_same(dict(sorted(run(p).items())), {"free": [[21, "b"]], "x": [[14, "b"]]})


# Names.

NAMES = [
    "class",
    "self",
    "_frame_",
    "None",
    "UPPER",
    "with-dash",
    "a b",
    "ünï",
    "x.y[0]",
    "__import__('os')",
    "0",
    "{0} %s",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_data(run: Runner, ops: Any, name: str) -> None:
    """FINDINGS 8, 9: node ids, places and parameters are any text."""
    with Pipeline() as p:
        x = ops.calc.Add(a=PlaceParam(name), b=1, site="a", node_id=name)
        Yield(ops.calc.Identity(x={name: x}, site="b")[name], place=name)
    outcome = run.outcome(p, {name: 5})
    assert_same(outcome.results, {name: [6]})


def test_duplicate_ids_are_refused(ops: Any, live: Runner) -> None:
    """FINDINGS 6."""
    with pytest.raises(dfmesh.PipelineError, match="twin") as raised:
        _twins(live, ops)
    assert any("test_language.py" in str(fault.location) for fault in raised.value.faults)


def _twins(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=1, b=1, site="a", node_id="twin"), place="x")
        Yield(ops.calc.Add(a=2, b=2, site="b", node_id="twin"), place="y")
    live(p)


def test_all_faults_at_once(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        ops.calc.Add(a=1, site="a")
        ops.calc.Add(a=1, b=2, c=3, site="a")
        ops.calc.WhereOnly(site="a")
        ops.calc.Add(a=1, b=1, site="nowhere")
        ops.calc.Add(a=1, b=1, after="nobody")
        with ForEach([1]) as item:
            inner = ops.calc.Add(a=item, b=1)
        Yield(inner, place="out of scope")
    with pytest.raises(dfmesh.PipelineError) as raised:
        live(p)
    text = str(raised.value)
    for word in ("'b'", "'c'", "calc.WhereOnly", "nowhere", "nobody"):
        assert word in text
    errors = [fault for fault in raised.value.faults if fault.severity == "error"]
    assert len(errors) == 6
    assert all("test_language.py" in str(fault.location) for fault in errors)


# JSON.


def test_through_json(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        rows = ops.calc.Table(n=PlaceParam("n", default=2), site="d", node_id="rows")
        with ForEach(rows, window=2) as row:
            x = ops.calc.Mix(values=[row["at"], {"k": (row["k"], row.index)}], site=BestOf(["a", "b"]))
            with If(row["k"] > 2):
                Yield(x, place="large")
            with Else():
                Yield((x, None, 2.5), place="small")
        Yield(row.collect(x), place="all")
        Yield(row.reduce(ops.calc.Combine, x, initial=3), place="reduced")
        Yield(Choose(PlaceParam("n", default=2) == 2, (1, 2), {"k": b"x"}), place="chosen", after="rows")
    again = Pipeline.load(p.model_dump_json())
    assert_same(dict(sorted(run(again).items())), dict(sorted(run(p).items())))
    assert again.model_dump_json() == p.model_dump_json()


# Scripts.

SCRIPT = f"""
import dfmesh
fed = dfmesh.Federation.load({str(CALC_FILE)!r})
with dfmesh.Pipeline() as p:
    x = fed.ops.calc.Add(a=1, b=2, site="a")
    dfmesh.Yield(fed.ops.calc.Add(a=x, b=x, site="b"), place="total")
print("starting", flush=True)
with fed.session(target=TARGET, homesite="app") as s:
    print(s.run(p).one("total"), flush=True)
"""


@pytest.mark.parametrize("target", ["inproc", "local"])
@pytest.mark.parametrize("form", ["file", "standard input", "command"])
def test_script_without_main_guard(tmp_path: Path, target: str, form: str) -> None:
    """FINDINGS 19: nothing is imported again in the sites, and nothing keeps standard output open."""
    text = SCRIPT.replace("TARGET", repr(target))
    script = tmp_path / "script.py"
    script.write_text(text)
    arguments = {"file": [str(script)], "standard input": ["-"], "command": ["-c", text]}[form]
    done = subprocess.run(
        [sys.executable, *arguments],
        input=text if form == "standard input" else "",
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=tmp_path,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("starting\n6\n", 0), done.stderr
    assert done.stderr == ""


def test_script_from_another_directory_with_a_relative_path(tmp_path: Path) -> None:
    text = SCRIPT.replace("TARGET", "'local'").replace(repr(str(CALC_FILE)), repr(CALC_FILE.name))
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=LIMIT, cwd=CALC_FILE.parent, check=False
    )
    assert (done.stdout, done.returncode) == ("starting\n6\n", 0), done.stderr


HASHED = f"""
import dfmesh
fed = dfmesh.Federation.load({str(CALC_FILE)!r})
ops = fed.ops.calc
with dfmesh.Pipeline() as p:
    x = ops.Add(a=1, b=2)
    y = [ops.Combine(left=x, right=n) for n in range(4)]
    dfmesh.Yield(5, place="constant")
    dfmesh.Yield(x, place="x")
    dfmesh.Yield(ops.Total(items=y), place="total")
    dfmesh.Yield([ops.Where()["site"] for _ in range(4)], place="where")
with fed.session(target="inproc", homesite="app") as s:
    print(sorted(s.run(p).items()))
"""


def test_hash_seed_changes_nothing() -> None:
    """FINDINGS 2, 3: not the results, and not where things run."""
    outputs = set()
    for seed in ("0", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", HASHED], env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "('constant', [5])" in outputs.pop()


def _until(condition: Any) -> None:
    import time

    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


def test_loop_over_a_constant_record_batch(run: Runner) -> None:
    with Pipeline() as p:
        with ForEach(pa.record_batch({"a": [1, 2]})) as row:
            Yield(row["a"], place="column")
    assert_same(run(p), {"column": [1, 2]})
