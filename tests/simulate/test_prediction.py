"""The predicted run follows the rules of the engine: both give the same times and bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from prediction_reference import N, ReferenceRun, federation

from dfmesh import Choose, Else, Federation, ForEach, If, Pipeline, PlaceParam, TryFromCache, Yield
from dfmesh.netir import Branch, LookUp, Loop


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    return federation(tmp_path_factory.mktemp("reference"))


def chain(op: Any) -> None:
    value = op.Use(x=1, site="a")
    for site in ("b", "c", "home", "b"):
        value = op.Use(x=value, site=site)
        Yield(value)


def fan(op: Any) -> None:
    start = op.Use(x=1, site="home")
    parts = [op.Use(x=start, y=n, site=site) for n in range(5) for site in ("a", "b", "c")]
    Yield(op.Use(x=parts, site="home"))


def loop(op: Any) -> None:
    with ForEach(op.Make(n=N, site="home"), window=3, node_id="loop") as x:
        Yield(op.Use(x=op.Use(x=x, site="a"), y=x.index, site="b"))


def wide_loop(op: Any) -> None:
    with ForEach(op.Make(n=N, site="home"), node_id="loop") as x:
        Yield(op.Use(x=op.Use(x=x, site="a"), site="c"))


def loop_in_loop(op: Any) -> None:
    shared = op.Use(x=1, site="b")
    with ForEach(op.Make(n=N, site="home"), window=2, node_id="loop") as x:
        near = op.Use(x=x, site="a")
        with ForEach(op.Make(n=N, site="home"), window=3, node_id="inner") as y:
            found = op.Use(x=[y, near], y=shared, site="c")
        Yield(op.Use(x=y.collect(found), site="b"))


def collected(op: Any) -> None:
    with ForEach(op.Make(n=N, site="home"), window=4, node_id="loop") as x:
        found = op.Use(x=x, site="a")
    Yield(op.Use(x=x.collect(found), site="home"))


def reduced(op: Any) -> None:
    with ForEach(op.Make(n=N, site="home"), window=4, node_id="loop") as x:
        found = op.Use(x=x, site="a")
    Yield(x.reduce(op.Merge, found, site="c"))


def reduced_from_start(op: Any) -> None:
    first = op.Use(x=1, site="b")
    with ForEach(op.Make(n=N, site="home"), window=2, node_id="loop") as x:
        found = op.Use(x=x, site="c")
    Yield(x.reduce(op.Merge, found, initial=first, site="b"))


def condition(op: Any) -> None:
    with ForEach(op.Make(n=N, site="home"), window=3, node_id="loop") as x:
        found = op.Use(x=x, site="a")
        with If(found > 0, node_id="if"):
            one = op.Use(x=found, site="b")
            Yield(one)
        with Else():
            other = op.Use(x=found, site="c")
            with ForEach(op.Make(n=N, site="home"), node_id="inner") as y:
                Yield(op.Use(x=y, site="b"))
        Yield(Choose(found > 0, one, other))


def cached(op: Any) -> None:
    with ForEach(op.Make(n=N, site="home"), window=3, node_id="loop") as x:
        with TryFromCache(key=[x, "k"], site="a", node_id="cache") as cache:
            cache.cache(op.Use(x=op.Use(x=x, site="b"), site="c"))
        Yield(op.Use(x=cache, site="home"))


def after(op: Any) -> None:
    with ForEach(op.Make(n=N, site="home"), window=3, node_id="loop") as x:
        op.Use(x=x, site="a")
        op.Use(x=x, site="b")
    Yield(op.Use(x=1, site="c", after="loop"))


def in_parameter_sets(op: Any) -> None:
    Yield(op.Use(x=op.Use(x=PlaceParam("p"), site="a"), y=PlaceParam("q", default=1), site="b"))


PIPELINES = [
    chain, fan, loop, wide_loop, loop_in_loop, collected, reduced, reduced_from_start, condition, cached, after,
]  # fmt: skip


class Scribe:
    """Writes pipelines at random: calls, loops, conditions, caches and gatherings in one another."""

    def __init__(self, op: Any, seed: int) -> None:
        self.op, self.random, self.loops = op, random.Random(seed), 0

    def write(self) -> None:
        start = self.op.Use(x=1, site=self.site())
        Yield(self.block([start], 0))

    def site(self) -> str:
        return self.random.choice(("home", "a", "b", "c"))

    def block(self, values: list[Any], depth: int) -> Any:
        values = list(values)
        for _ in range(self.random.randint(1, 3)):
            kinds = ["call"] * 3 + (["loop", "condition", "cache"] if depth < 3 else [])
            values.append(getattr(self, self.random.choice(kinds))(values, depth))
            if self.random.random() < 0.3:
                Yield(values[-1])
        return values[-1]

    def call(self, values: list[Any], depth: int) -> Any:
        x = self.random.sample(values, min(len(values), self.random.randint(1, 2)))
        return self.op.Use(x=x, y=self.random.randint(0, 9), site=self.site())

    def loop(self, values: list[Any], depth: int) -> Any:
        self.loops += 1
        made = self.op.Make(n=N, site="home")
        with ForEach(made, window=self.random.choice((1, 2, 5, None)), node_id=f"loop{self.loops}") as x:
            found = self.block([*values, x], depth + 1)
        if self.random.random() < 0.5:
            return x.collect(found)
        return x.reduce(self.op.Merge, found, site=self.random.choice("abc"))

    def condition(self, values: list[Any], depth: int) -> Any:
        value = self.op.Use(x=self.random.choice(values), site=self.site())
        with If(value > 0):
            one = self.block(values, depth + 1)
        with Else():
            other = self.block(values, depth + 1)
        return Choose(value > 0, one, other)

    def cache(self, values: list[Any], depth: int) -> Any:
        self.loops += 1
        with TryFromCache(key=[self.loops, values[-1]], site=self.site()) as cache:
            cache.cache(self.block(values, depth + 1))
        return cache


def both(fed: Federation, write: Callable[[Any], None], sets: int = 1) -> tuple[Any, ReferenceRun]:
    with Pipeline() as pipeline:
        write(fed.ops.op)
    compiled = fed.compile(pipeline, homesite="home", measure=False)
    nodes = compiled.graph.nodes
    given = {node.node: N for node in nodes if isinstance(node.action, Loop)}
    shares = {node.node: 1.0 for node in nodes if isinstance(node.action, Branch)}
    shares |= {node.node: 0.0 for node in nodes if isinstance(node.action, LookUp)}
    filled = [{"p": number} if compiled.parameters else {} for number in range(sets)]
    prediction = fed.predict(compiled, filled, iterations=given, shares=shares)
    reference = ReferenceRun(compiled, fed.config, {"op.Make": list(range(N))})
    reference.run([compiled.parameter_set(entry) for entry in filled])
    return prediction, reference


def assert_same(prediction: Any, reference: ReferenceRun) -> None:
    assert prediction.seconds == pytest.approx(reference.seconds, rel=1e-9)
    assert prediction.first_result == pytest.approx(reference.first_result, rel=1e-9)
    assert prediction.results == reference.results
    predicted = {(link.source, link.destination): link.size for link in prediction.links}
    assert predicted == pytest.approx({ends: wire.size for ends, wire in reference.wires.items() if wire.size})
    assert sum(part.seconds for part in prediction.path) == pytest.approx(prediction.seconds, rel=1e-9)


@pytest.mark.parametrize("write", PIPELINES, ids=lambda write: write.__name__)
def test_prediction_and_engine_agree(fed: Federation, write: Callable[[Any], None]) -> None:
    assert_same(*both(fed, write))


def test_they_agree_on_more_parameter_sets_than_run_at_a_time(fed: Federation) -> None:
    assert_same(*both(fed, in_parameter_sets, sets=600))


@pytest.mark.parametrize("seed", range(100))
def test_they_agree_on_random_pipelines(fed: Federation, seed: int) -> None:
    assert_same(*both(fed, lambda op: Scribe(op, seed).write()))
