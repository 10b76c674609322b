"""Loops: windows, order, what is gathered; and loops that once waited for themselves."""

from __future__ import annotations

from typing import Any

import pytest
from engine_support import compiled, results, returned, run, started

from dfmesh import ForEach, If, Pipeline, PlaceParam, Yield
from dfmesh.engine.messages import JobFinished

SEEDS = range(12)


@pytest.mark.parametrize("window", [1, 2, 5, 19])
def test_window_is_used_and_never_exceeded(ops: Any, window: int) -> None:
    with Pipeline() as p, ForEach(list(range(20)), window=window) as item:
        Yield(ops.Add(a=ops.Echo(x=item, site="a"), b=1, site="b"))
    most = 0
    for seed in SEEDS:
        probe, _ = run(p, seed)  # asserts that it is not exceeded
        most = max([most, *probe.most_open.values()])
    assert most == window


def test_calls_of_a_window_run_together_but_not_more(ops: Any) -> None:
    with Pipeline() as p, ForEach(ops.Count(n=30, site="a"), window=4) as item:
        Yield(ops.Echo(x=item, site="b"))
    most = 0
    for seed in SEEDS:
        probe, _ = run(p, seed)
        going_on: set[int] = set()
        for site, event, instructions in probe.log:
            if site == "b":
                going_on -= set(returned(event))
                going_on |= {item.call for item in started(instructions)}
                most = max(most, len(going_on))
                assert len(going_on) <= 4
    assert most == 4


def test_nested_windows_hold_each(ops: Any) -> None:
    with Pipeline() as p, ForEach([1, 2, 3, 4, 5], window=2) as outer, ForEach(list(range(7)), window=3) as inner:
        Yield(ops.Add(a=outer, b=ops.Echo(x=inner, site="c"), site="b"))
    for seed in SEEDS:
        probe, _ = run(p, seed)
        assert all(most <= 3 for most in probe.most_open.values())
        assert len(probe.results()["yield"]) == 35


def test_iterations_open_in_order(ops: Any) -> None:
    with Pipeline() as p, ForEach(ops.Count(n=25, site="a"), window=3) as item:
        Yield(ops.Echo(x=item, site="b"))
    for seed in SEEDS:
        probe, _ = run(p, seed)
        frames = [item.frame for site, _, instructions in probe.log if site == "b" for item in started(instructions)]
        assert frames == sorted(frames)


def test_reduce_folds_in_order_and_as_results_come(ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(["a", "b", "c", "d"], window=4) as item:
            value = ops.Echo(x=item, site="b")
        Yield(item.reduce(ops.Fold, value, site="c"), place="plain")
        Yield(item.reduce(ops.Fold, value, initial="i", site="a"), place="initial")
        Yield(item.reduce(ops.Fold, item, initial=ops.Echo(x="late", site="c"), site="b"), place="late")
    found = results(p, SEEDS)
    assert found["plain"] == ["(((a b) c) d)"]
    assert found["initial"] == ["((((i a) b) c) d)"]
    assert found["late"] == ["((((late a) b) c) d)"]


def test_reduce_does_not_wait_for_the_last_iteration(ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(list(range(10)), window=2) as item:
            value = ops.Echo(x=item, site="b")
        Yield(item.reduce(ops.Fold, value, site="c"))
    probe, _ = run(p, 3)
    kinds = ["fold" if site == "c" else "echo" for site, event, _ in probe.log for _ in returned(event)]
    assert kinds.index("fold") < len(kinds) - kinds[::-1].index("echo") - 1


@pytest.mark.parametrize("on_error", ["fail", "skip", "collect"])
def test_failing_and_skipped_iterations(ops: Any, on_error: Any) -> None:
    with Pipeline() as p:
        with ForEach([1, 2, 3, 4], window=2, on_error=on_error) as item:
            checked = ops.FailAt(x=item, at=3, site="b")
            with If(item > 1):
                kept = ops.Echo(x=checked, site="c")
        Yield(item.collect(kept), place="list")
        Yield(item.reduce(ops.Add, kept, initial=0), place="sum")
    for seed in SEEDS:
        probe, end = run(p, seed)
        assert isinstance(end, JobFinished)
        assert (end.status, len(end.failures)) == (("failed", 1) if on_error == "fail" else ("finished", 0)) or (
            on_error == "collect"
        )
        found = probe.results()
        if on_error == "skip":
            assert found == {"list": [[2, 4]], "sum": [6]}
        elif on_error == "collect":
            (items,) = found["list"]
            assert [getattr(item, "message", item) for item in items] == [2, "fails at 3", 4]
        else:
            assert found == {}


def test_empty_skipped_and_failed_loops_end(ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(PlaceParam("given")["items"], window=1) as item:
            value = ops.Add(a=item, b=1, site="b")
        Yield(item.collect(value), place="list")
        with If(PlaceParam("go") == 1):
            with ForEach(PlaceParam("given")["items"]) as inner:
                Yield(ops.Echo(x=inner, site="c"), place="inner")
            Yield(inner.collect(inner), place="inner list")
    sets = [
        {"given": {"items": []}, "go": 1},
        {"given": {"items": [1, 2]}, "go": 0},
        {"given": {"items": [5]}, "go": 1},
    ]
    assert results(p, SEEDS, sets=sets) == {"list": [[], [2, 3], [6]], "inner": [5], "inner list": [[], [5]]}
    _, end = run(p, 0, [{"given": {}, "go": 1}])
    assert isinstance(end, JobFinished)
    assert end.status == "failed"


# Loops that once waited for themselves


def test_elements_gathered_at_the_site_of_the_loop(ops: Any) -> None:
    """An iteration that is done at once must not open the next one in the middle of itself."""
    with Pipeline() as p:
        with ForEach([1, 2, 3, 4, 5], window=2) as item:
            pass
        Yield(item.collect(item), place="list")
        Yield(item.collect(item.index), place="index")
        Yield(item.reduce(ops.Fold, item, site="a"), place="fold")
    assert results(p, SEEDS) == {"list": [[1, 2, 3, 4, 5]], "index": [[0, 1, 2, 3, 4]], "fold": ["((((1 2) 3) 4) 5)"]}


def test_many_elements_gathered_at_once_do_not_recurse() -> None:
    with Pipeline() as p:
        with ForEach(list(range(5000)), window=1) as item:
            pass
        Yield(item.collect(item))
    assert results(p, [0])["yield"] == [list(range(5000))]


def test_reduce_that_starts_from_the_end_of_its_own_loop(ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([1, 2, 3, 4], window=2) as item:
            value = ops.Add(a=item, b=1, site="b")
        total = ops.Gather(items=item.collect(value), site="c")
        Yield(item.reduce(ops.Fold, value, initial=total, site="a"))
    assert results(p, SEEDS)["yield"] == ["(((([2, 3, 4, 5] 2) 3) 4) 5)"]


@pytest.mark.parametrize("body", ["a", "b"])
def test_body_that_waits_for_the_end_of_the_stream_it_runs_over(ops: Any, body: str) -> None:
    with Pipeline() as p:
        stream = ops.Count(n=200, site="a")
        with ForEach(stream, window=2) as item:
            value = ops.Add(a=item, b=1, site=body, after=stream)
        Yield(ops.Total(items=item.collect(value), site="c"))
    assert compiled(p).node(value.node_id) == body
    assert results(p, range(4))["yield"] == [sum(range(1, 201))]


def test_reduce_by_an_operation_that_makes_a_stream(ops: Any) -> None:
    """It gets the list, as everything that cannot take items."""
    with Pipeline() as p:
        with ForEach([1, 2, 3]) as item:
            pass
        Yield(item.reduce(ops.MergeStream, item, site="a"))
    assert results(p, SEEDS)["yield"] == [[[1, 2], 3]]
