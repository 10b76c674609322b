"""Compiling twice gives the same nets, whatever the hash seed; and how long a large pipeline takes."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dfmesh import BestOf, Choose, Else, FederationConfig, ForEach, If, Pipeline, PlaceParam, Yield
from dfmesh.compiler import Costs, compile_pipeline, lower, place, route, validate

CALC_FILE = Path(__file__).resolve().parents[1] / "federations" / "calc" / "calc.dfm.yaml"


class Writing:
    """Writes a random pipeline over the calc federation."""

    def __init__(self, seed: int, ops: Any) -> None:
        self.chance = random.Random(seed)
        self.ops = ops
        with Pipeline() as self.pipeline:
            self.block([], 0)
        for statement in self.pipeline.statements():
            statement.location = None  # the two processes run different files

    def block(self, visible: list[Any], depth: int) -> None:
        visible = list(visible)
        for _ in range(self.chance.randint(2, 6)):
            kind = self.chance.choice(["call", "call", "call", "yield", *(["if", "loop"] if depth < 2 else [])])
            if kind == "call":
                visible.append(self.call(visible))
            elif kind == "yield":
                Yield(self.value(visible), place=self.chance.choice(["x", "y", "z"]))
            elif kind == "if":
                self.branch(visible, depth)
            else:
                self.loop(visible, depth)

    def call(self, visible: list[Any]) -> Any:
        site = self.chance.choice([None, None, "a", "b", BestOf(["d", "c", "a"])])
        return self.ops.calc.Mix(values=self.value(visible), site=site)

    def branch(self, visible: list[Any], depth: int) -> None:
        with If(PlaceParam("on") == 1):
            self.block(visible, depth + 1)
            first = self.call(visible)
        with Else():
            second = self.call(visible)
        visible.append(Choose(PlaceParam("on") == 1, first, second))

    def loop(self, visible: list[Any], depth: int) -> None:
        with ForEach(self.chance.choice([[1, 2, 3], PlaceParam("seq"), *visible])) as item:
            self.block([*visible, item], depth + 1)
            inner = self.call([item])
        visible.append(item.collect(inner))
        visible.append(item.reduce(self.ops.calc.Combine, inner))

    def value(self, visible: list[Any]) -> Any:
        parts = self.chance.sample(visible, min(len(visible), self.chance.randint(1, 4)))
        return {"parts": [part["k"] if self.chance.random() < 0.3 else part for part in parts], "p": PlaceParam("p")}


def fingerprints(count: int) -> list[str]:
    config = FederationConfig.load(CALC_FILE)
    found = []
    for seed in range(count):
        compiled = compile_pipeline(Writing(seed, config.ops).pipeline, config, "app")
        nets = b"".join(site.encode() + net for site, net in compiled.encoded_nets.items())
        found.append(hashlib.sha256(nets).hexdigest())
    return found


@pytest.mark.timeout(300)
def test_nets_do_not_depend_on_the_hash_seed() -> None:
    here = Path(__file__)
    code = f"import sys; sys.path.insert(0, {str(here.parent)!r}); import {here.stem} as t; print(*t.fingerprints(40))"

    environment = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == fingerprints(40)


def test_compiling_again_gives_the_same(calc: FederationConfig) -> None:
    pipeline = Writing(7, calc.ops).pipeline
    first, second = (compile_pipeline(pipeline, calc, "app").encoded_nets for _ in range(2))
    assert first == second
    assert list(first) == list(second)


def large_federation(load: Callable[[dict[str, Any]], FederationConfig], sites: int) -> FederationConfig:
    chance = random.Random(1)
    names = [f"big.Op{number}" for number in range(20)]

    def adapter() -> dict[str, Any]:
        cost = {"fixed-time": chance.random(), "fixed-size": chance.randrange(10_000_000)}
        return {"adapter": "builtins.str", "compute-cost": cost}

    def interface(site: int) -> dict[str, Any]:
        return {name: adapter() for name in names if site == 0 or chance.random() < 0.5}

    return load(
        {
            "operations": {name: {"parameters": {"x": {}}} for name in names},
            "sites": {f"s{site}": {"interface": interface(site)} for site in range(sites)},
        }
    )


@pytest.mark.timeout(300)
def test_a_thousand_operations_over_twenty_sites(
    load: Callable[[dict[str, Any]], FederationConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    config = large_federation(load, 20)
    chance = random.Random(2)
    with Pipeline() as pipeline:
        made: list[Any] = [config.ops["big.Op0"](x=1)]
        for _ in range(999):
            operation = config.ops[f"big.Op{chance.randrange(20)}"]
            made.append(operation(x=[chance.choice(made) for _ in range(3)]))
        Yield(made[-1])
    times = [time.perf_counter()]
    validate(pipeline, config)
    times.append(time.perf_counter())
    graph = lower(pipeline, config)
    times.append(time.perf_counter())
    placement = place(graph, Costs(graph, config), "s0", list(config.sites))
    times.append(time.perf_counter())
    nets = route(graph, placement.sites, "s0")
    times.append(time.perf_counter())
    assert sum(len(net.transitions) for net in nets.values()) == 1001
    passes = zip(("validate", "lower", "place", "route"), times, times[1:], strict=False)
    with capsys.disabled():
        spent = ", ".join(f"{name} {end - start:.3f} s" for name, start, end in passes)
        print(f"\n1,000 operations over 20 sites: {spent}; {times[-1] - times[0]:.3f} s in all")


def test_many_loops_and_many_references_are_not_quadratic(calc: FederationConfig) -> None:
    def calls(count: int) -> int:
        with Pipeline() as pipeline:
            for _ in range(count):
                with ForEach([1, 2]) as item:
                    inner = calc.ops.calc.Add(a=item, b=1, site="a")
                Yield(item.collect(inner))
            Yield([calc.ops.calc.Add(a=number, b=1, site="b") for number in range(count)])
        seen = itertools.count()
        sys.setprofile(lambda *_: next(seen))
        try:
            graph = lower(pipeline, calc)
            route(graph, ["a"] * len(graph.nodes), "app")
        finally:
            sys.setprofile(None)
        return next(seen)

    small, large = calls(50), calls(400)
    assert large < 8 * small * 1.5, (small, large)
