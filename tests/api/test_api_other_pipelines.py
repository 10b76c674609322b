"""References stay with the pipeline in which they were made, whatever the numbers of its statements are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from dfmesh import Choose, FederationConfig, ForEach, Pipeline, PipelineError, PlaceParam, TryFromCache, Yield
from dfmesh.api import Comparison, NodeRef
from dfmesh.compiler import validate

WRONG = "which belongs to another pipeline"


def faults_of(pipeline: Pipeline, calc: FederationConfig) -> list[str]:
    try:
        validate(pipeline, calc)
    except PipelineError as error:
        return [fault.message for fault in error.faults]
    return []


def foreign(ops: Any) -> tuple[Any, Any, Any, Any]:
    """Make a value, a loop, what it collects and a cached value, in a pipeline of their own."""
    with Pipeline() as other:
        value = ops.calc.Add(a=1, b=2)
        with ForEach([1, 2]) as loop:
            double = ops.calc.Add(a=loop, b=loop)
        with TryFromCache("key") as cached:
            cached.cache(value)
        both = loop.collect(double)
        Yield([value, both, cached])
    assert len(other.body) == 5
    return value, loop, both, cached


@pytest.mark.parametrize(
    "use",
    [
        lambda ops, value, *_: Yield(value),
        lambda ops, value, *_: Yield([1, {"k": value["part"]}]),
        lambda ops, value, *_: ops.calc.Add(value, 1),
        lambda ops, value, *_: Yield(Choose(value > 1, 1, 2)),
        lambda ops, value, *_: Yield(1, after=[value]),
        lambda ops, value, loop, *_: Yield(loop),
        lambda ops, value, loop, *_: Yield(loop.index),
        lambda ops, value, loop, *_: loop.collect(1),
        lambda ops, value, loop, *_: loop.reduce(ops.calc.Add, 1, 2),
        lambda ops, value, loop, both, *_: Yield(both),
        lambda ops, value, loop, both, cached: Yield(cached),
        lambda ops, value, loop, both, cached: cached.cache(1),
    ],
)
def test_what_another_pipeline_made_is_a_fault(use: Callable[..., Any], calc: FederationConfig, ops: Any) -> None:
    made = foreign(ops)
    with Pipeline() as pipeline:
        ops.calc.Add(a=1000, b=2000)  # has the number of the other one's first statement
        use(ops, *made)
    found = faults_of(pipeline, calc)
    assert found
    assert all(WRONG in message and __file__ in message for message in found), found
    with pytest.raises(PipelineError, match=WRONG):
        pipeline.model_dump_json()


def test_statements_of_a_loop_of_another_pipeline_leave_that_alone(ops: Any) -> None:
    with Pipeline() as other, ForEach([1, 2]) as loop:
        pass
    with Pipeline() as pipeline:
        loop.collect(1)
        loop.reduce(ops.calc.Add, 1, 2)
    assert other.body == [loop]
    assert len(pipeline.body) == 4


def test_copies_are_the_same_pipeline(calc: FederationConfig, ops: Any) -> None:
    with Pipeline() as pipeline:
        value = ops.calc.Add(a=1, b=2)
        Yield(value)
    for again in (copy.copy(pipeline), copy.deepcopy(pipeline)):
        with again:
            Yield(value, place="again")
        assert faults_of(again, calc) == []
    loaded = Pipeline.load(pipeline.model_dump_json())
    with loaded:
        Yield(NodeRef(0), place="again")
        Yield(loaded.node(0), place="and again")
    assert faults_of(loaded, calc) == []
    with loaded:
        Yield(value)
    assert len(faults_of(loaded, calc)) == 1


def test_a_sub_pipeline_is_part_of_its_caller(calc: FederationConfig, ops: Any) -> None:
    with Pipeline() as sub:
        with ForEach(PlaceParam("numbers")) as number:
            double = ops.calc.Add(a=number, b=number)
        all_of_them = number.collect(double)
        with TryFromCache(["key", all_of_them]) as cached:
            cached.cache(all_of_them)
        Yield(cached, place="numbers", after=double)
    with Pipeline() as pipeline:
        first = sub(numbers=[1, 2])["numbers"]
        Yield(sub(numbers=first)["numbers"])
    assert faults_of(pipeline, calc) == []
    with pipeline:
        Yield(all_of_them)
    assert len(faults_of(pipeline, calc)) == 1


def test_a_fault_of_a_sub_pipeline_says_where_it_is_called(calc: FederationConfig, ops: Any) -> None:
    with Pipeline() as inner:
        Yield(ops.calc.Scaled(x=PlaceParam("x")), place="y")
    with Pipeline() as sub:
        Yield(inner(x=PlaceParam("x"))["y"], place="y")
    with Pipeline() as pipeline:
        Yield(sub(x={1: 2})["y"])
    (fault,) = faults_of(pipeline, calc)
    assert fault.endswith(f", in the sub-pipeline called in {pipeline.body[0].called_at}")
    assert str(pipeline.body[0].called_at).startswith(__file__)
    assert pipeline.body[0].called_at.line > pipeline.body[0].location.line


def test_a_sub_pipeline_with_a_foreign_value_does_not_take_its_own_of_that_number(
    calc: FederationConfig, ops: Any
) -> None:
    value, *_ = foreign(ops)
    with Pipeline() as sub:
        ops.calc.Add(a=1000, b=2000)
        Yield(value, place="sum")
    with Pipeline() as pipeline:
        Yield(sub()["sum"])
    assert len(faults_of(pipeline, calc)) == 1


def test_numbers_of_numpy_compare_on_either_side(ops: Any) -> None:
    with Pipeline():
        value = ops.calc.Add(a=1, b=2)
        for comparison in (numpy.float64(2) < value, numpy.int64(2) == value, numpy.arange(2) >= value):
            assert isinstance(comparison, Comparison)
        with pytest.raises(TypeError, match="cannot be computed with"):
            numpy.float64(2) + value
