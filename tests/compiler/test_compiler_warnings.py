"""What a valid pipeline computes for nobody is said, with the user's line, and stops nothing."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Else, Federation, ForEach, If, Pipeline, TryFromCache, Yield

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
