"""TryFromCache in the engine: computed once, never stored half, and nobody waits for ever."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from engine_support import compiled, results, run

from dfmesh import ForEach, If, Pipeline, PlaceParam, TryFromCache, Yield
from dfmesh.engine.messages import JobFinished
from dfmesh.engine.simulator import SimulationStuckError
from dfmesh.engine.site_cache import MemoryCache
from dfmesh.netir import LookUp, check_nets

SEEDS = range(10)


def test_equal_keys_in_flight_compute_once(ops: Any, tallies: Counter[str]) -> None:
    with Pipeline() as p, ForEach([1, 1, 2, 1, 2], window=5) as item:
        with TryFromCache(key=item, site="a") as cached:
            cached.cache(ops.Tally(name="once", x=item, site="b"))
        Yield(cached)
    for seed in SEEDS:
        tallies.clear()
        probe, _ = run(p, seed)
        assert probe.results()["yield"] == [1, 1, 2, 1, 2]
        assert tallies["once"] == 2


def test_the_next_job_finds_what_was_stored(ops: Any, tallies: Counter[str]) -> None:
    with Pipeline() as p:
        with TryFromCache(key=("day", PlaceParam("n")), site="a") as cached:
            cached.cache(ops.Tally(name="once", x=PlaceParam("n"), site="b"))
        Yield(cached)
    caches = {"a": MemoryCache()}
    for seed in SEEDS:
        assert results(p, [seed], sets=[{"n": 1}, {"n": 2}], caches=caches) == {"yield": [1, 2]}
    assert tallies["once"] == 2


def test_a_failing_body_is_not_stored_and_the_next_one_computes(ops: Any, tallies: Counter[str]) -> None:
    with Pipeline() as p:
        with ForEach([1, 2, 3], window=3, on_error="skip") as item:
            with TryFromCache(key="same", site="a") as cached:
                cached.cache(ops.TallyFail(name="flaky", times=1, site="b", after=ops.Echo(x=item, site="c")))
            kept = ops.Echo(x=cached, site="a")
        Yield(item.collect(kept))
    for seed in SEEDS:
        tallies.clear()
        assert results(p, [seed])["yield"] == [["flaky", "flaky"]]
        assert tallies["flaky"] == 2


def test_a_failing_cache_loses_nothing(ops: Any, tallies: Counter[str]) -> None:
    with Pipeline() as p:
        with TryFromCache(key="k", site="a") as cached:
            cached.cache(ops.Tally(name="body", x=7, site="b"))
        Yield(cached)
    for seed in SEEDS:
        assert results(p, [seed], caches={"a": MemoryCache(fails=True)}) == {"yield": [7]}
    assert tallies["body"] == len(SEEDS)


def test_skipped_and_failed_keys(ops: Any) -> None:
    with Pipeline() as p:
        with If(PlaceParam("go") == 1):
            with TryFromCache(key="k", site="a") as cached:
                cached.cache(ops.Echo(x=1, site="b"))
            Yield(cached, place="skipped")
        with TryFromCache(key=ops.Fail(x=1, site="b"), site="a") as failed:
            failed.cache(ops.Echo(x=1, site="b"))
        Yield(failed, place="failed")
    for seed in SEEDS:
        probe, end = run(p, seed, [{"go": 0}])
        assert isinstance(end, JobFinished)
        assert [failure.operation for failure in end.failures] == ["mesh.Fail"]
        assert probe.results() == {}


@pytest.mark.parametrize("sites", ["aa", "ab"])
def test_nested_look_ups_with_crossing_keys(ops: Any, sites: str) -> None:
    with Pipeline() as p, ForEach([["x", "y"], ["y", "x"]] * 3, window=6) as keys:
        with TryFromCache(key=keys[0], site=sites[0]) as outer:
            with TryFromCache(key=keys[1], site=sites[1]) as inner:
                inner.cache(ops.Echo(x=1, site="c"))
            outer.cache(ops.Echo(x=inner, site="c"))
        Yield(outer)
    assert results(p, SEEDS)["yield"] == [1] * 6


# Look-ups beside one another, of which one's block needs the other's value


def crossing(ops: Any, keys: str) -> Pipeline:
    """The second block needs the value of the first; its key does not, so that it is looked up at once."""
    with Pipeline() as p:
        with TryFromCache(key=ops.Echo(x=PlaceParam("first"), site="b"), site="a") as first:
            first.cache(ops.Echo(x=1, site="c"))
        with TryFromCache(key=PlaceParam("second"), site="a") as second:
            second.cache(ops.Add(a=first, b=1, site="c"))
        Yield(second)
    return p


@pytest.mark.parametrize("sets", [["kk"], ["xy", "yx"]], ids=["equal keys", "crosswise"])
def test_look_ups_that_once_waited_for_one_another(ops: Any, sets: list[str]) -> None:
    parameters = [{"first": keys[0], "second": keys[1]} for keys in sets]
    plan = compiled(crossing(ops, "k"))
    for seed in SEEDS:
        _, end = run(plan, seed, parameters)
        assert isinstance(end, JobFinished)
        assert end.status == "finished"


def waiting_again(net: Any) -> Any:
    """Undo what the compiler does against it."""
    transitions = [
        msgspec.structs.replace(item, action=msgspec.structs.replace(item.action, nested=False))
        if isinstance(item.action, LookUp)
        else item
        for item in net.transitions
    ]
    return msgspec.structs.replace(net, transitions=tuple(transitions))


def test_the_plan_check_and_the_simulator_see_them(ops: Any) -> None:
    plan = compiled(crossing(ops, "k"))
    bent = {site: waiting_again(net) for site, net in plan.nets.items()}
    faults = check_nets(bent)
    assert [fault.site for fault in faults] == ["a"]
    assert "may wait for an equal key" in str(faults[0])
    object.__setattr__(plan, "nets", bent)
    with pytest.raises(SimulationStuckError):
        run(plan, 0, [{"first": "k", "second": "k"}])


def test_look_ups_one_after_the_other_may_wait(ops: Any) -> None:
    with Pipeline() as p:
        with TryFromCache(key="x", site="a") as first:
            first.cache(ops.Echo(x=1, site="c"))
        with TryFromCache(key=["y", first], site="a") as second:
            second.cache(ops.Add(a=first, b=1, site="c"))
        Yield(second)
    lookups = [item for item in compiled(p).nets["a"].transitions if isinstance(item.action, LookUp)]
    assert [item.action.nested for item in lookups if isinstance(item.action, LookUp)] == [False, False]
