"""Seeded schedules of faults over small pipelines, and what must hold of each run."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import faulty_operations
from engine_support import TESTS, Probe, compiled, federation

from dfmesh import Choose, Else, ForEach, If, Pipeline, PlaceParam, TryFromCache, Yield
from dfmesh.compiler import CompiledPipeline
from dfmesh.engine.attempts import MAX_FRUITLESS, survivable
from dfmesh.engine.messages import FrameFinished, JobFinished, JobRefused, YieldPackage
from dfmesh.engine.simulator import SimulationStuckError

FAULTY = TESTS / "engine" / "faulty" / "faulty.dfm.yaml"
SITES = ("app", "a", "b", "c")
SETS = [{"n": 3}, {"n": 0}, {"n": 5}]


@cache
def pipelines() -> dict[str, CompiledPipeline]:
    """Small pipelines with all that a pipeline can have, by name."""
    ops = federation(FAULTY).ops.faulty
    found = {build.__name__: build for build in (loop, stream, reduced, cached, chosen, failing, nested)}
    found |= {build.__name__: build for build in (sends, sends_home, draws, refuses, emits, drains)}
    made = {}
    for name, build in found.items():
        with Pipeline() as p:
            build(ops)
        made[name] = compiled(p, FAULTY)
    return made


def loop(ops: Any) -> None:
    with ForEach(list(range(8)), window=3) as item:
        value = ops.Add(a=item, b=PlaceParam("n"), site="a")
        Yield(ops.Add(a=value, b=1, site="b"), place="each")
    Yield(ops.Gather(items=item.collect(value), site="c"), place="all")


def stream(ops: Any) -> None:
    numbers = ops.Count(n=30, site="a")
    Yield(ops.Total(items=numbers, site="b"), place="total")
    Yield(numbers, place="live")
    with ForEach(ops.Count(n=PlaceParam("n"), site="b"), window=2) as item:
        Yield(ops.Add(a=item, b=1, site="c"), place="each")


def reduced(ops: Any) -> None:
    with ForEach(list(range(6)), window=2, on_error="skip") as item:
        value = ops.FailAt(x=ops.Add(a=item, b=1, site="c"), at=PlaceParam("n"), site="a")
    Yield(item.reduce(ops.Add, value, initial=0, site="b"), place="sum")
    Yield(item.collect(value), place="all")


def cached(ops: Any) -> None:
    with ForEach([1, 2, 1, 2, 3], window=2) as item:
        with TryFromCache(key=["key", item], site="b") as found:
            found.cache(ops.Add(a=item, b=10, site="c"))
        with If(item > 1):
            Yield(ops.Add(a=found, b=item, site="a"), place="each")
        with Else():
            Yield(found, place="one")


def chosen(ops: Any) -> None:
    first = ops.Add(a=PlaceParam("n"), b=1, site="a")
    with If(first > 2):
        Yield(ops.Add(a=first, b=1, site="b"), place="then")
    with Else():
        Yield(ops.Add(a=first, b=2, site="c"), place="else")
    Yield(Choose(first > 2, ops.Add(a=1, b=1, site="b"), ops.Add(a=2, b=2, site="c")), place="chosen")


def failing(ops: Any) -> None:
    with ForEach(list(range(5)), window=2) as item:
        value = ops.FailAt(x=ops.Add(a=item, b=0, site="b"), at=PlaceParam("n"), site="a")
        Yield(ops.Add(a=value, b=1, site="c"), place="each")
    Yield(item.collect(item), place="items")


def nested(ops: Any) -> None:
    outer = ops.Add(a=PlaceParam("n"), b=1, site="b")
    with ForEach([1, 2, 3], window=2) as first:
        with ForEach(ops.Count(n=first, site="a"), window=2) as second:
            value = ops.Add(a=second, b=outer, site="c")
            Yield(value, place="inner")
        Yield(second.reduce(ops.Add, value, site="b"), place="sums")


def sends(ops: Any) -> None:
    """One site must not do what it does twice; the others may."""
    with ForEach(list(range(5)), window=2) as item:
        value = ops.Add(a=item, b=PlaceParam("n"), site="a")
        sent = ops.Send(key=[PlaceParam("n"), item], x=value, site="b")
        Yield(ops.Add(a=sent, b=1, site="c"), place="each")


def sends_home(ops: Any) -> None:
    first = ops.Send(key=PlaceParam("n"), x=PlaceParam("n"), site="app")
    with ForEach(ops.Count(n=4, site="a"), window=2) as item:
        Yield(ops.Add(a=item, b=first, site="b"), place="each")


def draws(ops: Any) -> None:
    with ForEach([10, 20, 30, 40], window=2) as item:
        value = ops.Add(a=item, b=PlaceParam("n"), site="a")
    Yield(item.reduce(ops.Draw, value, initial=PlaceParam("n"), site="b"), place="drawn")


def refuses(ops: Any) -> None:
    value = ops.Add(a=PlaceParam("n"), b=0, site="a")
    Yield(ops.Refuse(key=value, site="b"), place="never")
    Yield(ops.Add(a=value, b=ops.Add(a=value, b=0, site="c"), site="a"), place="well")


def emits(ops: Any) -> None:
    """A stream that must not be made twice: once it has begun, nothing can be begun again."""
    with ForEach(ops.Emit(n=ops.Add(a=PlaceParam("n"), b=6, site="a"), site="b"), window=2) as item:
        Yield(ops.Add(a=item, b=1, site="a"), place="each")


def drains(ops: Any) -> None:
    Yield(ops.Drain(key=PlaceParam("n"), items=ops.Count(n=20, site="a"), site="b"), place="drained")
    Yield(ops.Add(a=1, b=1, site="c"), place="beside")


def parameter_sets(plan: CompiledPipeline) -> list[dict[str, Any]]:
    return [plan.parameter_set({name: given[name] for name in plan.parameters}) for given in SETS]


NOT_ALWAYS = ("emits", "drains")
"""Pipelines that cannot always go on when a site is lost without which the others could."""


@dataclass(frozen=True)
class Schedule:
    """What goes wrong in one run.

    Attributes:
        pipeline: Name of what runs.
        seed: Decides all delays.
        faults: What goes wrong: a name, and its arguments.
    """

    pipeline: str
    seed: int
    faults: tuple[tuple[Any, ...], ...]

    def __str__(self) -> str:
        faults = ", ".join(f"{name}{arguments}" for name, *arguments in self.faults) or "no faults"
        return f"pipeline {self.pipeline}, seed {self.seed}: {faults}"


def schedule(seed: int) -> Schedule:
    """Draw a schedule."""
    draw = random.Random(seed)
    name = draw.choice(list(pipelines()))
    until = 1.2 * quiet(name).seconds
    faults: list[tuple[Any, ...]] = [
        ("kill", draw.choice(SITES), round(draw.uniform(0, until), 2), round(draw.choice((0, 1, 8)) * draw.random(), 2))
        for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3)))
    ]
    faults += [
        ("slow", draw.choice(SITES), draw.choice(SITES), draw.choice((3, 10))) for _ in range(draw.choice((0, 0, 1, 3)))
    ]
    if draw.random() < 0.08:
        faults.append(("cancel", round(draw.uniform(0, until), 2)))
    elif draw.random() < 0.05:
        faults.append(("leave", round(draw.uniform(0, until), 2)))
    return Schedule(name, seed, tuple(faults))


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: str
    results: Counter[Any]
    failed: frozenset[Any]
    seconds: float


def outcome(probe: Probe, end: JobFinished | JobRefused) -> Outcome:
    packages = [message for message in probe.to_client if isinstance(message, YieldPackage)]
    results = Counter((package.place, package.node, package.frame, repr(package.payload.data)) for package in packages)
    failed = frozenset((failure.node, failure.frame, failure.kind) for failure in end.failures)
    return Outcome(end.status if isinstance(end, JobFinished) else "refused", results, failed, probe.now)


@cache
def quiet(name: str) -> Outcome:
    """How a pipeline runs without faults."""
    plan = pipelines()[name]
    probe = Probe(plan, FAULTY, 0)
    return outcome(probe, probe.run(parameter_sets(plan)))


def run(it: Schedule, watch: Callable[[Probe], None] | None = None) -> list[str]:
    """Run a schedule, and say what is wrong with how it went; `watch` gets the probe at the end."""
    plan = pipelines()[it.pipeline]
    expected = quiet(it.pipeline)
    faulty_operations.ran.clear()
    probe = Probe(plan, FAULTY, it.seed)
    for name, *arguments in it.faults:
        if name == "slow":
            probe.slow[arguments[0], arguments[1]] = arguments[2]
        else:
            getattr(probe, name)(*arguments)
    try:
        end = probe.run(parameter_sets(plan))
    except SimulationStuckError as error:
        return [str(error)]
    except Exception as error:
        return [f"the engine raised {error!r}"]
    if watch is not None:
        watch(probe)
    return list(faults_of(probe, it, outcome(probe, end), expected))


def faults_of(probe: Probe, it: Schedule, found: Outcome, expected: Outcome) -> Iterable[str]:
    yield from probe.broken
    yield from probe.left
    yield from (f"at the end, {held}" for held in probe.going_on)
    yield from (f"{call} ran {count} times" for call, count in faulty_operations.ran.items() if count > 1)
    yield from (f"{key} came {count} times" for key, count in found.results.items() if count > 1)
    yield from (f"{key} is no result of this pipeline" for key in found.results if key not in expected.results)
    yield from unfinished_frames(probe, expected)
    kinds = {name for name, *_ in it.faults}
    as_expected = (found.status, found.results, found.failed) == (expected.status, expected.results, expected.failed)
    if found.status == "cancelled":
        if not kinds & {"cancel", "leave"}:
            yield "it is cancelled, and nobody did that"
    elif not as_expected and not may_fail(probe, it, found):
        lacking = list(expected.results - found.results)
        yield f"it is {found.status} with {sorted(found.failed)}, and lacks {lacking}"


def unfinished_frames(probe: Probe, expected: Outcome) -> Iterable[str]:
    """Name the frames that were finished before all of their results had come."""
    come: Counter[Any] = Counter()
    wanted = Counter(frame[0] for (_, _, frame, _), count in expected.results.items() for _ in range(count))
    for message in probe.to_client:
        if isinstance(message, YieldPackage):
            come[message.frame[0]] += 1
        elif isinstance(message, FrameFinished) and come[message.frame[0]] != wanted[message.frame[0]]:
            yield f"frame {message.frame} was finished with {come[message.frame[0]]} results"


def may_fail(probe: Probe, it: Schedule, found: Outcome) -> bool:
    """Whether a job may have failed for what went wrong."""
    lost = probe.dead & set(probe.plan.nets)
    if not lost or not {kind for _, _, kind in found.failed} & {"SiteLost", "CannotRepeat"}:
        return False
    harmless = lost <= survivable(probe.plan.nets) and probe.deaths < MAX_FRUITLESS
    return not harmless or it.pipeline in NOT_ALWAYS


def smallest(it: Schedule, runs: Callable[[Schedule], list[str]] = run) -> Schedule:
    """Leave out of a schedule that finds something all that it does not need for that."""
    for fault in it.faults:
        without = replace(it, faults=tuple(other for other in it.faults if other is not fault))
        if runs(without):
            it = without
    return it
