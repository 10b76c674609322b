"""After a frame is done nothing of it is left, under any order of events; counting, windows and credit hold."""

from __future__ import annotations

from typing import Any

import pytest
from engine_support import CALC, compiled, federation, leftovers, results, run

from dfmesh import ForEach, If, Pipeline, PlaceParam, TryFromCache, Yield
from dfmesh.engine.messages import JobFinished


def random_plan(seed: int) -> Any:
    from conformance.building import build
    from conformance.generator import Options, random_pipeline

    description = random_pipeline(seed, Options(operations=16, branches=True, failures=True))
    return compiled(build(description, federation(CALC).ops), CALC), list(description.parameter_sets)


@pytest.mark.parametrize("block", range(5))
def test_nothing_is_left_after_random_pipelines(block: int) -> None:
    for seed in range(block * 8, block * 8 + 8):
        plan, sets = random_plan(seed)
        found = []
        for order in range(3):
            probe, end = run(plan, order, sets, CALC)
            assert isinstance(end, JobFinished)
            found.append((end.status, probe.results()))
        assert all(other == found[0] for other in found), f"seed {seed}"


def test_leftovers_sees_what_is_held(ops: Any) -> None:
    """A check that finds nothing proves nothing unless it can find something."""
    from engine_support import Probe

    with Pipeline() as p:
        outer = ops.Echo(x=1, site="b")
        with ForEach(ops.Count(n=5, site="a"), window=2) as item:
            value = ops.Both(x=ops.Add(a=item, b=outer, site="a"), y=ops.Echo(x=item, site="b"), site="c")
        Yield(item.collect(value))
    probe = Probe(compiled(p))
    held: set[str] = set()
    watch = probe._started

    def started(site: str, attempt: str) -> None:
        watch(site, attempt)
        runner = probe.sites[site].controllers[attempt]._runner
        handle = runner.handle

        def watched(event: Any) -> Any:
            out = handle(event)
            held.update(line.split(": ")[1].partition(" ")[2] for line in leftovers(runner))
            return out

        runner.handle = watched  # type: ignore[method-assign]

    probe._started = started  # type: ignore[method-assign]
    probe.run([{}])
    kinds = {word for line in held for word in line.split()}
    assert {"slots", "gatherings", "outer", "left", "progress", "runs"} <= kinds


def test_all_constructs_together_leave_nothing(ops: Any) -> None:
    with Pipeline() as p:
        n = PlaceParam("n")
        stream = ops.Count(n=n, site="a")
        with ForEach(stream, window=3, on_error="skip") as item:
            checked = ops.FailAt(x=item, at=2, site="b")
            with If(checked > 3):
                Yield(checked, place="large")
            with TryFromCache(key=checked, site="c") as cached:
                cached.cache(ops.Add(a=checked, b=100, site="b"))
            with ForEach([1, 2], window=1) as inner:
                product = ops.Add(a=cached, b=inner, site="c")
            Yield(inner.reduce(ops.Fold, product, initial="i"), place="inner")
        Yield(item.collect(cached), place="all")
        Yield(ops.Total(items=stream, site="b"), place="total")
    sets = [{"n": n} for n in (0, 1, 3, 6, 6)]
    found = results(p, range(10), sets=sets)
    assert found["large"] == [4, 5] * 2
    assert found["total"] == [0, 0, 3, 15, 15]
    assert found["all"] == [[], [100], [100, 101], [100, 101, 103, 104, 105], [100, 101, 103, 104, 105]]


def test_value_for_a_loop_without_iterations_is_dropped(ops: Any) -> None:
    """It may come when the site has nothing else to do in the frame."""
    with Pipeline() as p:
        late = ops.Echo(x=ops.Echo(x=1, site="c"), site="c")
        with ForEach(ops.Gather(items=[], site="a")) as item:
            Yield(ops.Add(a=item, b=late, site="b"))
    assert results(p) == {}


def test_many_frames_do_not_accumulate(ops: Any) -> None:
    """What is held at any time does not grow with the number of parameter sets."""
    with Pipeline() as p, ForEach([1, 2, 3], window=2) as item:
        Yield(ops.Add(a=ops.Add(a=item, b=PlaceParam("n"), site="a"), b=1, site="b"))
    probe, end = run(p, 1, [{"n": n} for n in range(400)])
    assert isinstance(end, JobFinished)
    assert len(probe.results()["yield"]) == 1200
