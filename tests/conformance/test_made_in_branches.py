# ruff: noqa: SIM117 - the nesting is what is tested
"""What is selected or compared in a branch is a value of that branch, as what an operation gives there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dfmesh import Choose, Else, ForEach, If, Pipeline, PipelineError, PlaceParam, Yield

from .conftest import Runner, assert_same

ROWS = [{"a": 1}, {"a": 2}, {"a": 3}]

MADE: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "selection": (lambda row: row["a"], [2, 3]),
    "element": (lambda row: row.element, [{"a": 2}, {"a": 3}]),
    "index": (lambda row: row.index, [1, 2]),
    "comparison": (lambda row: row["a"] > 2, [False, True]),
    "logic": (lambda row: ~((row["a"] > 2) | (row.index == 7)), [True, False]),
    "inside others": (lambda row: {"k": [row["a"], 5]}, [{"k": [2, 5]}, {"k": [3, 5]}]),
    "selected again": (lambda row: row.element["a"], [2, 3]),
}


@pytest.mark.parametrize("what", MADE)
def test_collect_leaves_out_what_was_not_made(run: Runner, what: str) -> None:
    make, expected = MADE[what]
    with Pipeline() as p:
        with ForEach(ROWS) as row:
            with If(row["a"] > 1):
                made = make(row)
        Yield(row.collect(made))
    assert_same(run(p), {"yield": [expected]})
    assert_same(run(Pipeline.load(p.model_dump_json())), {"yield": [expected]})


def test_else_reduce_choose_and_branches_in_branches(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(ops.calc.Identity(x=ROWS, site="a")) as row:
            with If(row["a"] > 1):
                large = row["a"]
                with If(row["a"] < 3):
                    middle = row.element
                Yield(row["a"], place="inside")
            with Else():
                small = row["a"]
            later = middle["a"]
            Yield(Choose(row["a"] > 1, large, small), place="chosen")
        Yield([row.collect(small), row.collect(middle), row.collect(later)], place="parts")
        Yield(row.reduce(ops.calc.Add, large, initial=0, site="b"), place="sum")
    expected = {"inside": [2, 3], "chosen": [1, 2, 3], "parts": [[[1], [{"a": 2}], [2]]], "sum": [5]}
    assert_same(dict(sorted(run(p).items())), dict(sorted(expected.items())))


def test_outside_of_the_branch_it_is_refused_as_a_statement_is(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        value = ops.calc.Pair(x=PlaceParam("x"))
        with If(PlaceParam("on")):
            first = value[0]
            large = value[1] > 3
        Yield(first)
        with If(large):
            Yield(value)
    with pytest.raises(PipelineError) as caught:
        live(p, on=True, x=1)
    lines = [str(fault) for fault in caught.value.faults]
    assert "Yield uses selection" in lines[0]
    assert "outside of the If in which that is made" in lines[0]
    assert "If uses comparison" in lines[1]


def test_a_name_is_no_statement_and_that_is_said(fed: Any) -> None:
    with Pipeline() as p:
        with ForEach(PlaceParam("rows")) as row:
            with If(row["a"] > 1):
                kept = row
        Yield(row.collect(kept))
    warnings = [str(fault) for fault in fed.compile(p).warnings]
    assert len(warnings) == 2
    assert all("test_made_in_branches.py" in line and "row.element" not in line for line in warnings)
    assert "no statement stands in it" in warnings[0]
    assert "collects every element, whatever the If" in warnings[1]
    assert "kept = x.element" in warnings[1]


def test_sub_pipelines_in_branches(run: Runner, ops: Any) -> None:
    """What one is given in a branch may go into its loops; what it hands through is what the caller gave it."""
    with Pipeline() as listing:
        with ForEach([10, 20]) as each:
            Yield([each, each.index, PlaceParam("what")[0]], place="list")
        Yield(PlaceParam("given")[0]["a"], place="through")
        Yield(ops.calc.Add(a=PlaceParam("what")[0], b=1), place="made")
    with Pipeline() as p:
        with ForEach(ROWS) as row:
            with If(row["a"] > 1):
                made = listing(what=(row.index,), given=[row])
                Yield(made["list"], place="lists")
            Yield(made["through"], place="through")
        Yield(row.collect(made["made"]), place="made")
    expected = {
        "lists": [[[10, 0, 1], [20, 1, 1]], [[10, 0, 2], [20, 1, 2]]],
        "made": [[2, 3]],
        "through": [1, 2, 3],
    }
    assert_same(dict(sorted(run(p).items())), expected)
