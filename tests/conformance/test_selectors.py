"""A selector that does not fit is an error of the statement that has it, wherever it is evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from dfmesh import Choose, ForEach, If, IterationError, Pipeline, PlaceParam, TryFromCache, Yield

from .conftest import Runner

ROWS = [{"k": 1}, {"other": 0}, {"k": 3}]
SITES = [("a", "a"), ("a", "b"), ("b", "a")]
"""Sites of what makes the rows, and of what selects from them."""

pytestmark = pytest.mark.parametrize(("made", "used"), SITES)


def shown(values: list[Any]) -> list[Any]:
    """Write errors as their kind and the statement's name."""
    return [(item.operation, item.kind) if isinstance(item, IterationError) else item for item in values]


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [("collect", [1, ("calc.Identity", "SelectorError"), 3]), ("skip", [1, 3])],
)
def test_of_an_element(ops: Any, run: Runner, made: str, used: str, on_error: str, expected: list[Any]) -> None:
    with Pipeline() as p:
        rows = ops.calc.Identity(x=ROWS, site=made)
        with ForEach(rows, on_error=on_error) as row:
            value = ops.calc.Identity(x=row["k"], site=used)
            Yield(row["k"], place="each")
        Yield(row.collect(value))
    found = run(p)
    assert shown(found["yield"][0]) == expected
    assert found["each"] == [1, 3]


def test_of_what_is_gathered(ops: Any, run: Runner, made: str, used: str) -> None:
    with Pipeline() as p:
        with ForEach(ops.calc.Identity(x=ROWS, site=made), on_error="collect") as row:
            same = ops.calc.Identity(x=row, site=used)
        Yield(row.collect(row["k"]), place="element")
        Yield(row.collect(same["k"]), place="value")
        Yield(row.reduce(ops.calc.Combine, same["k"], site=made), place="sum")
        Yield(row.reduce(ops.calc.Combine, row["k"], initial=0, site=used), place="sum from 0")
    found = run(p)
    assert shown(found["element"][0]) == shown(found["value"][0]) == [1, ("Collect", "SelectorError"), 3]
    assert len(found["sum"]) == len(found["sum from 0"]) == 1


def test_in_the_body(ops: Any, run: Runner, made: str, used: str) -> None:
    """In a condition, a choice, a key, a loop inside, an argument, each with a selector of another kind."""
    with Pipeline() as p:
        with ForEach(ops.calc.Identity(x=ROWS, site=made), on_error="collect") as row:
            same = ops.calc.Identity(x=row, site=used)
            with If(same["k"] > 0):
                inside = ops.calc.Identity(x="inside", site=made)
            chosen = Choose(row["k"] > 1, "large", "small")
            with TryFromCache(key=("selectors", row.field("k"), made, used), site=used) as cached:
                cached.cache(ops.calc.Identity(x="computed", site=used))
            with ForEach([same["k"]]) as inner:
                deep = ops.calc.Identity(x=inner, site=made)
            ninth = ops.calc.Identity(x=ops.calc.Identity(x=[same], site=made)[9], site=used)
            each = [inside, chosen, cached, inner.collect(deep), ninth]
        for number, value in enumerate(each):
            Yield(row.collect(value), place=str(number))
    found = {place: shown(values[0]) for place, values in run(p).items()}
    bad = "SelectorError"
    assert found == {
        "0": ["inside", ("If", bad), "inside"],
        "1": ["small", ("Choose", bad), "large"],
        "2": ["computed", ("TryFromCache", bad), "computed"],
        "3": [[1], ("ForEach", bad), [3]],
        "4": [("calc.Identity", bad)] * 3,
    }


def test_of_a_value_from_outside_the_loop(ops: Any, run: Runner, made: str, used: str) -> None:
    with Pipeline() as p:
        whole = ops.calc.Identity(x={"k": 1}, site=made)
        with ForEach([1, 2], on_error="collect") as number, ForEach([10, 20]) as other:
            value = ops.calc.Combine(left=other, right=whole["missing"], site=used)
        Yield(number.collect(other.collect(value)))
    assert shown(run(p)["yield"][0]) == [("calc.Combine", "SelectorError")] * 2


def test_fails_the_job_once_outside(ops: Any, run: Runner, made: str, used: str) -> None:
    with Pipeline() as p:
        whole = ops.calc.Identity(x={"k": 1}, site=made)
        with ForEach([1, 2]) as number:
            value = ops.calc.Combine(left=number, right=whole["missing"], site=used)
        Yield(number.collect(value))
        Yield(whole["k"], place="good")
    found = run.outcome(p)
    assert found.status == "failed"
    assert found.results == {"good": [1]}
    assert [(error.operation, error.kind) for error in found.errors] == [("calc.Combine", "SelectorError")] * 2
    assert sorted(error.frame for error in found.errors) == [(0, 0), (0, 1)]
    assert all(__file__ in error.location for error in found.errors)


def test_does_not_matter_where_nothing_runs(ops: Any, run: Runner, made: str, used: str) -> None:
    with Pipeline() as p:
        whole = ops.calc.Identity(x={"k": 1}, site=made)
        with If(PlaceParam("go")):
            Yield(ops.calc.Identity(x=whole["missing"], site=used), place="never")
        Yield(Choose(PlaceParam("go"), whole["missing"], "well"), place="chosen")
    assert run(p, go=False) == {"chosen": ["well"]}


def test_of_other_inputs_of_a_reduction(ops: Any, run: Runner, made: str, used: str) -> None:
    with Pipeline() as p:
        whole = ops.calc.Identity(x={"k": 1}, site=made)
        with ForEach([1, 2]) as number:
            Yield(number, place="each")
        Yield(number.reduce(ops.calc.Combine, number, initial=whole["missing"], site=used), place="start")
        Yield(number.reduce(ops.calc.Optional, number, z=whole["missing"], site=used), place="further")
        Yield(whole["k"], place="good")
    found = run.outcome(p)
    named = sorted((error.operation, error.kind) for error in found.errors)
    assert named == [("reduce calc.Combine", "SelectorError"), ("reduce calc.Optional", "SelectorError")]
    assert found.results == {"good": [1], "each": [1, 2]}
