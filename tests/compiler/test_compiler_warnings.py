"""What a valid pipeline computes for nobody is said, with the user's line, and stops nothing."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy
import pytest

from dfmesh import And, Else, Equal, Federation, ForEach, If, Not, Or, Pipeline, PlaceParam, TryFromCache, Yield

CALC = Path(__file__).parents[1] / "federations" / "calc" / "calc.dfm.yaml"


@pytest.fixture(scope="module")
def federation() -> Federation:
    return Federation.load(CALC)


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def warnings_of(federation: Federation, pipeline: Pipeline) -> list[tuple[int, str]]:
    found = federation.compile(pipeline).warnings
    assert all(fault.severity == "warning" and fault.hint for fault in found)
    return [(fault.location.line, fault.message) for fault in found if fault.location]


def test_a_value_that_nobody_uses(federation: Federation) -> None:
    ops: Any = federation.ops
    with Pipeline() as p:
        used = ops.calc.Add(a=1, b=2)
        ops.calc.Add(a=3, b=4)
        at = line() - 1
        Yield(used)
    assert warnings_of(federation, p) == [(at, "the value of calc.Add is not used")]


def test_a_value_counts_as_used_wherever_it_is_named(federation: Federation) -> None:
    ops: Any = federation.ops
    with Pipeline() as p:
        first = ops.calc.Add(a=1, b=2)
        with If(first > 2):
            second = ops.calc.Add(a=1, b=2, after=first)
            Yield({"nested": [second]}, place="x")
        with ForEach([1, 2]) as item:
            third = ops.calc.Add(a=item, b=1)
        Yield(item.collect(third), place="y")
        with TryFromCache(key="k") as cached:
            cached.cache(ops.calc.Add(a=1, b=1))
        Yield(cached, place="z")
    assert warnings_of(federation, p) == []


def test_what_is_never_reached(federation: Federation) -> None:
    with Pipeline() as p:
        with If(False):
            Yield(1, place="never")
            first = line() - 1
        with If(True):
            Yield(2, place="always")
        with Else():
            Yield(3, place="never")
            second = line() - 1
        with ForEach([]) as item:
            Yield(item, place="never")
            third = line() - 1
    assert [at for at, _ in warnings_of(federation, p)] == [first, second, third]


@pytest.mark.parametrize("cond", [And(True, False), Not(Or(1, False)), Equal(1, 2), Not([1]), None, "", ()], ids=str)
def test_a_condition_that_is_known_before_the_run(federation: Federation, cond: Any) -> None:
    with Pipeline() as p:
        with If(cond):
            Yield(1, place="never")
        with Else():
            Yield(2, place="always")
    (_, message), *more = warnings_of(federation, p)
    assert "the condition is always false" in message
    assert not more


def test_what_only_the_run_can_tell(federation: Federation) -> None:
    with Pipeline() as p:
        for cond in (And(PlaceParam("x"), False), Equal(PlaceParam("x"), 2), numpy.arange(2)):
            with If(cond):
                Yield(1)
        for seq in (PlaceParam("x"), [PlaceParam("x")], numpy.arange(1)):
            with ForEach(seq) as item:
                Yield(item)
    assert warnings_of(federation, p) == []


@pytest.mark.parametrize("seq", [(), {}, set(), range(0), numpy.arange(0)], ids=lambda seq: type(seq).__name__)
def test_a_loop_over_nothing(federation: Federation, seq: Any) -> None:
    with Pipeline() as p, ForEach(seq) as item:
        Yield(item)
    assert "the sequence is empty" in warnings_of(federation, p)[0][1]
