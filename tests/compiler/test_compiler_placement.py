"""Placement against an exhaustive search that knows nothing of the compiler's own estimate.

What a placement costs is stated here anew. A node starts when its last input is there: the end of the node it comes
from, and the transfer if that is at another site. It takes the fixed time of its adapter and its input's size over the
throughput; its input is the sum of the sizes of the distinct values that it takes. A value that is yielded still has
to get to the homesite. Seconds are the end of the last node; bytes count each value once per site that it is sent to.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from dfmesh import BestOf, FederationConfig, Pipeline, Yield
from dfmesh.compiler import compile_pipeline

HOME = "home"
NOTHING_DECLARED = 1024
LATENCY, BANDWIDTH = 0.001, 100e6


@dataclass
class Case:
    """A problem in the test's own words.

    Attributes:
        sites: In declared order.
        compute: (operation, site) to (fixed time, throughput, fixed size, output factor).
        send: (from, to) to (fixed time, bandwidth); what is missing is not declared.
        sources: Operations that each operation takes its input from.
        allowed: Sites of each operation.
        results: Operations whose values are yielded.
    """

    sites: list[str]
    compute: dict[tuple[int, str], tuple[float, float | None, int, float]] = field(default_factory=dict)
    send: dict[tuple[str, str], tuple[float, float | None]] = field(default_factory=dict)
    sources: list[list[int]] = field(default_factory=list)
    allowed: list[list[str]] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def transfer(self, size: float, start: str, end: str) -> float:
        if start == end:
            return 0.0
        fixed, bandwidth = self.send.get((start, end), (LATENCY, BANDWIDTH))
        return fixed + (size / bandwidth if bandwidth else 0.0)

    def cost(self, chosen: tuple[str, ...]) -> tuple[float, float]:
        sizes: list[float] = []
        ends: list[float] = []
        for number, site in enumerate(chosen):
            fixed, throughput, fixed_size, factor = self.compute[number, site]
            taken = sum(sizes[source] for source in set(self.sources[number]))
            arrivals = [ends[s] + self.transfer(sizes[s], chosen[s], site) for s in self.sources[number]]
            ends.append(max(arrivals, default=0.0) + fixed + (taken / throughput if throughput else 0.0))
            sizes.append(fixed_size + factor * taken if fixed_size or factor else NOTHING_DECLARED)
        arrived = [ends[r] + self.transfer(sizes[r], chosen[r], HOME) for r in self.results]
        sends = {(s, chosen[n]) for n in range(len(chosen)) for s in self.sources[n] if chosen[s] != chosen[n]}
        moved = sum(sizes[source] for source, _ in sends)
        # A yield is a message of its own, besides what operations at the homesite take.
        moved += sum(sizes[result] for result in self.results if chosen[result] != HOME)
        return max([*ends, *arrived], default=0.0), moved

    def best(self) -> tuple[float, float]:
        costs = (self.cost(chosen) for chosen in itertools.product(*self.allowed))
        return min((round(seconds, 9), moved) for seconds, moved in costs)


def random_case(seed: int) -> Case:
    chance = random.Random(seed)
    case = Case([HOME, *"abc"[: chance.randint(1, 3)]])
    for start, end in itertools.permutations(case.sites, 2):
        if chance.random() < 0.7:
            bandwidth = chance.choice([None, 1e5, 1e6, 1e8])
            case.send[start, end] = (chance.choice([0.0, 0.01, 0.5]), bandwidth)
    count = chance.randint(2, 6 if len(case.sites) == 4 else 7)
    shape = chance.choice(["chain", "tree", "dag", "shared"])
    for number in range(count):
        case.sources.append(_sources(chance, shape, number))
        case.allowed.append(sorted(chance.sample(case.sites, chance.randint(1, len(case.sites))), key=case.sites.index))
        size = chance.choice([0, 1_000, 1_000_000]), chance.choice([0.0, 0.1, 2.0])
        for site in case.sites:
            timing = chance.choice([0.0, 0.1, chance.random()]), chance.choice([None, 1e6])
            case.compute[number, site] = (*timing, *size)
    taken = {source for sources in case.sources for source in sources}
    case.results = [number for number in range(count) if number not in taken or chance.random() < 0.2]
    return case


def _sources(chance: random.Random, shape: str, number: int) -> list[int]:
    if number == 0:
        return []
    if shape == "chain":
        return [number - 1]
    if shape == "tree":
        return [(number - 1) // 2]
    if shape == "shared":
        return [0, *([number - 1] if number > 1 else [])]
    return sorted(chance.sample(range(number), min(number, chance.randint(0, 3))))


def compiled(case: Case, load: Callable[[dict[str, Any]], FederationConfig]) -> Any:
    names = [f"op.N{number}" for number in range(len(case.sources))]

    def adapter(number: int, site: str) -> dict[str, Any]:
        fixed, throughput, size, factor = case.compute[number, site]
        cost = {"fixed-time": fixed, "fixed-size": size, "output-factor": factor}
        return {
            "adapter": "builtins.str",
            "compute-cost": cost | ({"compute-throughput": throughput} if throughput else {}),
        }

    def site_section(site: str) -> dict[str, Any]:
        costs = {}
        for (start, end), (fixed, bandwidth) in case.send.items():
            if start == site:
                costs[end] = {"fixed-time": fixed} | ({"bandwidth": bandwidth} if bandwidth else {})
        return {"interface": {name: adapter(n, site) for n, name in enumerate(names)}, "send_cost": costs}

    config = load(
        {
            "operations": {name: {"parameters": {"x": {}}} for name in names},
            "sites": {site: site_section(site) for site in case.sites},
        }
    )
    with Pipeline() as pipeline:
        made: list[Any] = []
        for number, sources in enumerate(case.sources):
            inputs = [made[source] for source in sources]
            made.append(config.ops[names[number]](x=inputs, site=BestOf(case.allowed[number])))
        for result in case.results:
            Yield(made[result])
    return compile_pipeline(pipeline, config, HOME)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("block", range(8))
def test_small_problems_are_solved_exactly(block: int, load: Callable[[dict[str, Any]], FederationConfig]) -> None:
    for seed in range(25 * block, 25 * block + 25):
        case = random_case(seed)
        found = compiled(case, load)
        chosen = tuple(found.node(statement.node_id) for statement in found.pipeline.body[: len(case.sources)])
        assert all(site in allowed for site, allowed in zip(chosen, case.allowed, strict=True))
        seconds, moved = case.cost(chosen)
        estimate = found.placement.estimate
        assert estimate.seconds == pytest.approx(seconds, abs=1e-8), f"seed {seed}"
        assert estimate.bytes_moved == pytest.approx(moved), f"seed {seed}"
        best_seconds, best_moved = case.best()
        assert seconds == pytest.approx(best_seconds, abs=2e-9), f"seed {seed}"
        assert moved == pytest.approx(best_moved), f"seed {seed}"


def test_a_value_with_many_paths_is_counted_once(load: Callable[[dict[str, Any]], FederationConfig]) -> None:
    case = Case([HOME, "a"])
    for number in range(121):
        source = 3 * ((number - 1) // 3) if number else 0
        case.sources.append([] if number == 0 else [number - 2, number - 1] if number % 3 == 0 else [source])
        case.allowed.append([HOME])
        for site in case.sites:
            case.compute[number, site] = (1.0, None, 0, 0.0)
    case.results = [120]
    assert compiled(case, load).placement.estimate.seconds == 81  # 40 diamonds in a row, two steps each, and the first


def test_compute_goes_to_the_data(load: Callable[[dict[str, Any]], FederationConfig]) -> None:
    case = Case([HOME, "a"])
    case.sources = [[], [0], [1]]
    case.allowed = [["a"], [HOME, "a"], [HOME, "a"]]
    for site in case.sites:
        case.compute[0, site] = (0.0, None, 10**9, 0.0)
        case.compute[1, site] = (1.0 if site == HOME else 2.0, None, 1000, 0.0)
        case.compute[2, site] = (1.0 if site == HOME else 2.0, None, 1000, 0.0)
    case.results = [2]
    found = compiled(case, load)
    assert found.placement.sites == ["a", "a", HOME, HOME]
    assert found.node(1) == "a"


def test_without_costs_everything_stays_together(small: FederationConfig, ops: Any) -> None:
    with Pipeline() as pipeline:
        Yield(ops.op.Use(x=ops.op.Use(x=ops.op.Make(n=1))))
    assert set(compile_pipeline(pipeline, small, "home").placement.sites) == {"a"}
    assert set(compile_pipeline(pipeline, small, "b").placement.sites) == {"b"}
