"""Streams: takers of all kinds, fast, slow, late and leaving; credit."""

from __future__ import annotations

from typing import Any

import pytest
from engine_support import results, run, yielded

from dfmesh import ForEach, If, Pipeline, PlaceParam, Yield
from dfmesh.engine import events
from dfmesh.engine.messages import JobFinished
from dfmesh.engine.stream_takers import STREAM_WINDOW

MANY = STREAM_WINDOW * 3 + 5
SEEDS = range(5)


def stream_of(ops: Any, kind: str, n: int, site: str = "a") -> Any:
    return (ops.Count if kind == "sync" else ops.CountAsync)(n=n, site=site)


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("n", [0, 1, STREAM_WINDOW, MANY])
def test_every_kind_of_taker_gets_every_item(ops: Any, kind: str, n: int) -> None:
    """Credit is watched all the while: see Probe."""
    with Pipeline() as p:
        stream = stream_of(ops, kind, n)
        for site in "ab":
            Yield(ops.Total(items=stream, site=site), place=f"live {site}")
            Yield(ops.Gather(items=stream, site=site), place=f"list {site}")
            Yield([stream, ops.Echo(x=1, site=site)], place=f"in an expression {site}")
        with ForEach(stream, window=3) as item:
            Yield(ops.Add(a=item, b=1, site="b"), place="loop")
        Yield(stream, place="items")
    found = results(p, SEEDS)
    items = list(range(n))
    for site in "ab":
        assert found[f"live {site}"] == [sum(items)]
        assert found[f"list {site}"] == [items]
        assert found[f"in an expression {site}"] == [[items, 1]]
    assert found.get("loop", []) == [item + 1 for item in items]
    assert found.get("items", []) == items


def pulled(probe: Any) -> int:
    return sum(len(event.values) for _, event, _ in probe.log if isinstance(event, events.StreamItems))


@pytest.mark.parametrize("site", ["a", "b"])
def test_a_slow_taker_holds_the_source_back(ops: Any, site: str) -> None:
    """No more items are made than the window of the loop, and what may be under way."""
    with Pipeline() as p, ForEach(ops.Count(n=1000, site="a"), window=4) as item:
        Yield(ops.Add(a=item, b=1, site=site))
    probe, _ = run(p, 1)
    made, done, ahead = 0, 0, 0
    for _, event, instructions in probe.log:
        made += len(event.values) if isinstance(event, events.StreamItems) else 0
        done += yielded(instructions)
        ahead = max(ahead, made - done)
    assert made == 1000
    assert ahead <= 4 + 1 + 2 * STREAM_WINDOW


def test_the_fastest_taker_sets_the_pace(ops: Any) -> None:
    """Else two that wait for one another could not both go on: here the loop waits for the total."""
    with Pipeline() as p:
        stream = ops.Count(n=MANY, site="a")
        total = ops.Total(items=stream, site="b")
        with ForEach(stream, window=1) as item:
            value = ops.Add(a=item, b=total, site="c")
        Yield(ops.Total(items=item.collect(value)))
    items = range(MANY)
    assert results(p, SEEDS)["yield"] == [sum(item + sum(items) for item in items)]


@pytest.mark.parametrize("site", ["a", "b"])
def test_a_late_taker_gets_all_items(ops: Any, site: str) -> None:
    with Pipeline() as p:
        stream = ops.Count(n=MANY, site="a")
        first = ops.Total(items=stream, site=site)
        with ForEach(stream, window=50) as item:
            value = ops.Echo(x=item, site=site, after=first)
        late = ops.Both(x=stream, y=item.collect(value), site=site)
        Yield(late)
    assert results(p, SEEDS)["yield"] == [[list(range(MANY))] * 2]


@pytest.mark.parametrize("site", ["a", "b"])
def test_a_taker_that_leaves_early_does_not_stop_the_others(ops: Any, site: str) -> None:
    with Pipeline() as p:
        stream = ops.Count(n=MANY, site="a")
        Yield(ops.Take(items=stream, n=2, site=site), place="two")
        Yield(ops.Total(items=stream, site="b"), place="total")
        with ForEach(stream, window=2) as item:
            Yield(ops.Echo(x=item, site="c"), place="loop")
    found = results(p, SEEDS)
    assert found == {"two": [[0, 1]], "total": [sum(range(MANY))], "loop": list(range(MANY))}


def test_a_taker_that_is_skipped_or_fails_does_not_stop_the_others(ops: Any) -> None:
    with Pipeline() as p:
        stream = ops.Count(n=MANY, site="a")
        with If(PlaceParam("go") == 1):
            with ForEach(stream, window=1) as inner:
                Yield(ops.Echo(x=inner, site="b"), place="skipped loop")
            Yield(ops.Total(items=stream, site="b"), place="skipped total")
        failed = ops.Fail(x=1, site="c")
        Yield(ops.Pairs(xs=stream, ys=failed, site="a"), place="failed")
        with ForEach(stream, window=5) as item:
            Yield(ops.Echo(x=item, site="c"), place="loop")
    for seed in SEEDS:
        probe, end = run(p, seed, [{"go": 0}])
        assert isinstance(end, JobFinished)
        assert [failure.operation for failure in end.failures] == ["mesh.Fail"]
        assert probe.results() == {"loop": list(range(MANY))}


def test_streams_made_of_streams(ops: Any) -> None:
    with Pipeline() as p:
        numbers = ops.Count(n=500, site="a")
        with ForEach(ops.Pairs(xs=numbers, ys=ops.CountAsync(n=70, site="b"), site="c"), window=2) as pair:
            Yield(ops.Add(a=pair[0], b=pair[1], site="a"))
    assert results(p, SEEDS)["yield"] == [2 * item for item in range(70)]


@pytest.mark.parametrize("site", ["a", "b"])
def test_a_stream_that_breaks(ops: Any, site: str) -> None:
    with Pipeline() as p:
        stream = ops.FailingCount(n=MANY, site="a")
        with ForEach(stream, window=4) as item:
            value = ops.Add(a=item, b=1, site=site)
            Yield(value, place="loop")
        Yield(item.collect(value), place="collected")
        Yield(ops.Total(items=stream, site=site), place="live")
        Yield(ops.Gather(items=stream, site=site), place="list")
        Yield(ops.Echo(x=1, site=site), place="other")
    for seed in SEEDS:
        probe, end = run(p, seed)
        assert isinstance(end, JobFinished)
        assert [failure.operation for failure in end.failures] == ["mesh.FailingCount"]
        assert probe.results() == {"loop": list(range(1, MANY + 1)), "other": [1]}


def test_a_stream_per_iteration(ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([3, 0, 100, 7], window=2) as n:
            stream = ops.Count(n=n, site="a")
            with ForEach(stream, window=2) as item:
                value = ops.Add(a=item, b=n, site="b")
            total = ops.Total(items=stream, site="c")
            Yield(item.reduce(ops.Add, value, initial=0), place="sums")
            Yield(total, place="totals")
        Yield(n.collect(total), place="all")
    found = results(p, SEEDS)
    totals = [sum(range(n)) for n in (3, 0, 100, 7)]
    assert found["totals"] == totals
    assert found["all"] == [totals]
    assert found["sums"] == [sum(range(n)) + n * n for n in (3, 0, 100, 7)]


def test_an_item_that_cannot_be_sent_breaks_the_stream(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=ops.Unsendable(site="a"), site="b"), place="value")
        Yield(ops.Echo(x=1, site="b"), place="other")
    for seed in SEEDS:
        probe, end = run(p, seed)
        assert isinstance(end, JobFinished)
        assert {failure.kind for failure in end.failures} == {"ValueEncodingError"}
        assert probe.results() == {"other": [1]}
