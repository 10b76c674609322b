"""The interpreter, the generator and the shrinker against cases computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from .comparing import differences
from .conftest import Outcome, assert_same
from .descriptions import (
    Branch,
    Cached,
    Call,
    Chosen,
    Compare,
    Const,
    Description,
    DictE,
    Gather,
    Index,
    Item,
    ListE,
    Logic,
    Loop,
    Param,
    Ref,
    Sub,
    SubPipeline,
    TupleE,
    Yield,
    walk,
)
from .generator import Options, random_pipeline
from .interpreter import interpret
from .shrinking import shrink


def add(name: str, a: Any, b: Any) -> Call:
    return Call(name, "calc.Add", (("a", a), ("b", b)))


def fail_if(name: str, x: Any, modulus: int) -> Call:
    return Call(name, "calc.FailIf", (("x", x), ("modulus", Const(modulus))))


def results(*body: Any, defaults: dict[str, Any] | None = None, sets: Any = ({},)) -> dict[str, list[Any]]:
    return interpret(Description(tuple(body), defaults or {}, tuple(sets))).results


def test_chain_of_operations() -> None:
    assert results(add("x", Const(1), Const(2)), add("y", Ref("x"), Ref("x")), Yield("y", Ref("y"))) == {"y": [6]}


def test_structure_keeps_types() -> None:
    inner = ListE((Const(None), Ref("x")))
    value = DictE(((Const("k"), TupleE((Ref("x"), inner))),))
    found = results(add("x", Const(1), Const(2)), Yield("y", value))
    assert_same(found, {"y": [{"k": (3, [None, 3])}]})


def test_selectors() -> None:
    pair = Call("p", "calc.Pair", (("x", Const({"a": [5, 6]})),))
    assert results(pair, Yield("y", Ref("p", (Item(0), Item("a"), Item(-1))))) == {"y": [6]}


def test_parameters_and_defaults_in_order_of_sets() -> None:
    body = (Yield("y", ListE((Param("a"), Param("b", (Item(0),))))),)
    found = results(*body, defaults={"a": 7}, sets=[{"b": [1]}, {"a": 2, "b": (3,)}])
    assert found == {"y": [[7, 1], [2, 3]]}


def test_loop_collects_and_reduces_in_order() -> None:
    loop = Loop(
        "i",
        Const([1, 2, 3]),
        2,
        (add("x", Ref("i"), Index("i")), Yield("x", Ref("x"))),
        (Gather("c", Ref("x")), Gather("r", Ref("x"), "calc.Combine"), Gather("s", Ref("x"), "calc.Add", 100)),
    )
    found = results(loop, Yield("c", Ref("c")), Yield("r", Ref("r")), Yield("s", Ref("s")))
    step = (1 * 31 + 3 * 7 + 1) * 31 + 5 * 7 + 1
    assert found == {"x": [1, 3, 5], "c": [[1, 3, 5]], "r": [step], "s": [109]}


def test_loop_in_loop_sees_outer_values() -> None:
    inner = Loop("j", Ref("i"), None, (add("x", Ref("j"), Ref("o")), Yield("x", Ref("x"))), (Gather("c", Ref("x")),))
    outer = Loop("i", Const([[1, 2], [], [3]]), None, (inner,), (Gather("all", Ref("c")),))
    found = results(add("o", Const(10), Const(0)), outer, Yield("all", Ref("all")))
    assert found == {"x": [11, 12, 13], "all": [[[11, 12], [], [13]]]}


def test_branch_skips_and_collect_leaves_out() -> None:
    then = (add("x", Ref("i"), Const(0)), Yield("x", Ref("x")))
    body = (Branch(Compare(">", Ref("i"), Const(1)), then, (Yield("small", Ref("i")),)),)
    loop = Loop("i", Const([0, 1, 2, 3]), None, body, (Gather("c", Ref("x")), Gather("r", Ref("x"), "calc.Add", 0)))
    found = results(loop, Yield("c", Ref("c")), Yield("r", Ref("r")))
    assert found == {"small": [0, 1], "x": [2, 3], "c": [[2, 3]], "r": [5]}


def test_choose_of_what_was_skipped_fails() -> None:
    body = (
        Branch(Compare("==", Param("n"), Const(1)), (add("x", Const(1), Const(1)),)),
        Chosen("c", Compare(">", Param("n"), Const(0)), Ref("x"), Const(0)),
        Yield("c", Ref("c")),
        Yield("in a list", ListE((Ref("c"),))),
    )
    expected = interpret(Description(body, {}, ({"n": 1}, {"n": 2}, {"n": 0})))
    assert expected.results == {"c": [2, 0], "in a list": [[2], [0]]}
    assert expected.origins == {("c", (1,))}


def test_skipped_branch_skips_all_inside() -> None:
    inside = Branch(Compare("==", Const(1), Const(1)), (Yield("never", Const(1)),), (Yield("nor", Const(1)),))
    loop = Loop("i", Const([1]), None, (Yield("in loop", Ref("i")),), (Gather("c", Ref("i")),))
    found = results(Branch(Compare("==", Const(1), Const(2)), (inside, loop, Yield("c", Ref("c")))))
    assert found == {}


def test_choose_takes_the_value_that_is_there() -> None:
    condition = Compare(">", Param("n"), Const(0))
    body = (
        Branch(condition, (add("t", Param("n"), Const(1)),), (add("e", Param("n"), Const(-1)),)),
        Chosen("c", Logic("not", (Logic("not", (condition,)),)), Ref("t"), Ref("e")),
        Yield("y", Ref("c")),
    )
    assert results(*body, sets=[{"n": 5}, {"n": -5}]) == {"y": [6, 999_994]}


def test_failure_takes_only_what_depends_on_it() -> None:
    body = (
        fail_if("f", Ref("i"), 2),
        add("x", Ref("f"), Const(0)),
        Yield("x", Ref("x")),
        Yield("i", Ref("i")),
    )
    gathers = (Gather("c", Ref("x")), Gather("d", Ref("i")))
    loop = Loop("i", Const([1, 2, 3]), None, body, gathers)
    expected = interpret(Description((loop, Yield("c", Ref("c")), Yield("d", Ref("d")))))
    assert expected.results == {"x": [1, 3], "i": [1, 2, 3], "d": [[1, 2, 3]]}
    assert expected.origins == {("f", (0, 1))}


def test_after_a_failure_fails_without_being_an_origin() -> None:
    later = Call("x", "calc.Add", (("a", Const(1)), ("b", Const(1))), after=("f",))
    expected = interpret(Description((fail_if("f", Const(4), 2), later, Yield("x", Ref("x")))))
    assert expected.results == {}
    assert expected.origins == {("f", (0,))}


def test_stream_is_its_list() -> None:
    stream = Call("s", "calc.Stream", (("n", Const(1)),))
    total = Call("t", "calc.Total", (("items", Ref("s")),))
    loop = Loop("i", Ref("s"), 1, (Yield("i", Ref("i")),))
    yields = (
        Yield("t", Ref("t")),
        Yield("s", Ref("s")),
        Yield("first", Ref("s", (Item(0),))),
        Yield("l", ListE((Ref("s"),))),
    )
    items = [52, 59, 66, 73]
    assert results(stream, total, loop, *yields) == {"i": items, "t": [250], "s": items, "first": [52], "l": [[items]]}


def test_stream_that_breaks_counts_until_then() -> None:
    """numbers(2) is [26, 33]; then the stream breaks."""
    body = (
        Call("s", "calc.Breaking", (("n", Const(2)),)),
        Yield("live", Ref("s")),
        Yield("list", ListE((Ref("s"),))),
        Loop("i", Ref("s"), 1, (Yield("i", Ref("i")),), (Gather("g", Ref("i")),)),
        Yield("g", Ref("g")),
        Call("r", "calc.Running", (("items", Ref("s")),)),
        Yield("r", Ref("r")),
        Loop("j", Const([0]), 1, (Yield("inside", Ref("s")),)),
        Yield("behind", Const(1), ("i",)),
    )
    found = interpret(Description(body))
    assert found.results == {"live": [26, 33], "i": [26, 33], "r": [26, 59]}
    assert found.origins == {("s", (0,))}


@pytest.mark.parametrize("on_error", ["fail", "skip", "collect"])
def test_loops_that_tolerate_errors(on_error: str) -> None:
    gathers = (Gather("all", Ref("f")), Gather("sum", Ref("f"), "calc.Add", 1), Gather("elements", Ref("i")))
    body = (fail_if("f", Ref("i"), 2), Yield("f", Ref("f")))
    behind = Call("behind", "calc.Add", (("a", Const(1)), ("b", Const(1))), after=("i",))
    yields = tuple(Yield(name, Ref(name)) for name in ("all", "sum", "elements", "behind"))
    found = interpret(Description((Loop("i", Const([1, 2, 3]), 1, body, gathers, on_error), behind, *yields)))
    assert found.results["f"] == [1, 3]
    assert found.results["elements"] == [[1, 2, 3]]
    if on_error == "fail":
        assert found.results.keys() == {"f", "elements"}
        assert found.origins == {("f", (0, 1))}
        return
    assert found.origins == set()
    assert (found.results["sum"], found.results["behind"]) == ([5], [2])
    there = [item for item in found.results["all"][0] if isinstance(item, int)]
    assert there == [1, 3]
    errors = [item for item in found.results["all"][0] if not isinstance(item, int)]
    assert [(item.operation, item.message) for item in errors] == (
        [("calc.FailIf", "2 is a multiple of 2")] if on_error == "collect" else []
    )


def test_sub_pipeline_is_written_out() -> None:
    x, y = Param("x"), Param("y")
    loop = Loop("i", x, 1, (add("n", Ref("i"), y), Yield("each", Ref("n"))))
    sub = SubPipeline((loop, Yield("two", Param("x", (Item(0),))), Yield("two", y)), (("y", 7),))
    calls = (
        add("a", Const(1), Const(1)),
        Sub("s", sub, (("x", ListE((Ref("a"), Const(5)))),), (("each", "e"), ("two", "t"))),
        Sub("again", sub, (("x", Ref("e")), ("y", Const(0))), (("each", "f"),)),
    )
    found = results(*calls, Yield("e", Ref("e")), Yield("t", Ref("t", (Item(0),))), Yield("f", Ref("f")))
    assert found == {"e": [[9, 12]], "t": [2], "f": [[9, 12]]}


def test_block_of_a_cache_is_expected_on_condition() -> None:
    """Two ask for one key: one of them computes it, or both; but never a part of a block, and never nobody."""
    blocks = tuple(
        Cached(name, Const("k"), (add(f"{name}n", Const(1), Const(1)), *_yields(name)), Ref(f"{name}n"))
        for name in ("c", "d")
    )
    expected = interpret(Description((*blocks, Yield("y", ListE((Ref("c"), Ref("d")))))))
    value = ("y", (0,), [2, 2])
    block_c, block_d = ([(f"{name}{part}", (0,), part) for part in (1, 2)] for name in ("c", "d"))
    for items in ([value, *block_c], [value, *block_d], [value, *block_c, *block_d]):
        assert differences(expected, Outcome(items=items)) == []
    for items in ([value], block_c, [value, *block_c[1:]], [value, *block_c, *block_c], [value, *block_c, block_d[0]]):
        assert differences(expected, Outcome(items=items)) != []


def _yields(name: str) -> tuple[Yield, ...]:
    return tuple(Yield(f"{name}{part}", Const(part)) for part in (1, 2))


def test_block_of_a_cache_that_fails_runs_for_each() -> None:
    blocks = tuple(
        Cached(name, Const("k"), (fail_if(f"{name}f", Const(2), 2),), Ref(f"{name}f")) for name in ("c", "d")
    )
    expected = interpret(Description((*blocks, Yield("y", Ref("c")))))
    assert expected.results == {}
    assert {node for node, _, blocks in expected.failures if expected.certain(blocks)} == {"cf", "df"}


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(branches=True),
        Options(branches=True, failures=True),
        Options(branches=True, failures=True, whole=True),
    ],
    ids=["plain", "if", "fail", "whole"],
)
def test_random_pipelines_are_sound(options: Options) -> None:
    """They can be interpreted (so selectors fit), are repeatable, and together hold every construct."""
    kinds: set[str] = set()
    for seed in range(200):
        description = random_pipeline(seed, options)
        assert description == random_pipeline(seed, options)
        expected = interpret(description)
        assert options.failures or not expected.origins
        calls = sum(1 for statement in walk(description.body) if isinstance(statement, Call))
        assert calls <= options.operations or options.whole  # sub-pipelines are called again
        kinds |= {type(statement).__name__ for statement in walk(description.body)}
    branches = {"Branch", "Chosen"} if options.branches else set()
    assert kinds == {"Call", "Yield", "Loop"} | branches | ({"Cached", "Sub"} if options.whole else set())


def test_shrinking_finds_the_one_statement_that_matters() -> None:
    def fails(description: Description) -> bool:
        return any(getattr(statement, "operation", "") == "calc.Table" for statement in walk(description.body))

    seed = next(seed for seed in range(100) if fails(random_pipeline(seed)) and random_pipeline(seed).size() > 25)
    small = shrink(random_pipeline(seed), fails)
    assert fails(small)
    assert small.size() <= 4
