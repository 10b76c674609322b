"""Bounds and placements where a shipment's price depends on both sites, held against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from placement_problems import SHAPES, best, cost, legal, make

from dfmesh.compiler.placement import Objective, cheapest, place
from dfmesh.compiler.placement.charges import charge
from dfmesh.compiler.placement.pair_smoothing import PairSmoothing, Shares
from dfmesh.compiler.placement.problem import build
from dfmesh.compiler.placement.ways import is_paired, scale_of


@pytest.fixture(params=[2, 24], ids=["crowds of two", "crowds of many"])
def crowd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """From how many takers on a value is treated as one that many take."""
    for module in ("crowds", "pair_smoothing", "concentrating", "cheapening"):
        monkeypatch.setattr(f"dfmesh.compiler.placement.{module}.CROWD", request.param)
    return int(request.param)


@pytest.mark.usefixtures("crowd")
def test_whatever_is_borne_the_bound_holds() -> None:
    draw = np.random.default_rng(7)
    bounds = []
    for seed in range(35):
        stated = make((seed, "pairs"), SHAPES[seed % len(SHAPES)], 3 + seed % 4, 4, candidates=3)
        problem = build(stated.graph, stated.costs, stated.home, stated.sites)  # type: ignore[arg-type]
        charges = charge(problem, Objective.MONEY, tie_breaks=False)
        if not is_paired(problem):
            continue
        smoothing, scale = PairSmoothing.of(problem, charges, problem.domain), scale_of(charges)
        least = best(stated, "money")
        assert least is not None
        limit = round(least[0] / charges.unit) + 1
        known = smoothing.shares
        for _ in range(5):
            shares = Shares(
                draw.uniform(-4e6, 4e6, len(known.tolls)),
                draw.uniform(-1e6, 4e6, len(known.parts)),
                draw.uniform(-1e6, 4e6, len(known.offers)),
            )
            assert smoothing.certify(shares)[0] <= limit
        before, _ = smoothing.certify(known)
        after, dear = smoothing.raised(150, scale, 0.002 * scale)
        assert after <= limit
        assert dear.min(initial=0) >= 0
        bounds.append((before, after, limit))
    assert all(after >= before for before, after, _ in bounds)
    assert sum(after >= 0.95 * limit - 2 for _, after, limit in bounds) >= 0.8 * len(bounds)


@pytest.mark.usefixtures("crowd")
def test_with_some_sites_left_the_bound_is_of_placements_at_those() -> None:
    draw = np.random.default_rng(11)
    for seed in range(35):
        stated = make((seed, "some"), SHAPES[seed % len(SHAPES)], 3 + seed % 4, 4, candidates=3)
        problem = build(stated.graph, stated.costs, stated.home, stated.sites)  # type: ignore[arg-type]
        charges = charge(problem, Objective.MONEY, tie_breaks=False)
        if not is_paired(problem):
            continue
        smoothing, scale = PairSmoothing.of(problem, charges, problem.domain), scale_of(charges)
        smoothing.ascend(20, scale, 0.1 * scale)
        chosen = [int(draw.choice(np.flatnonzero(may))) for may in problem.domain]
        here = smoothing.site == np.array(chosen)[smoothing.variable]
        total = charges.total(problem, chosen)
        some = smoothing.restricted(here | (draw.random(len(here)) < 0.5))
        assert some.raised(100, scale, 0.01 * scale)[0] <= total
        alone = some.restricted(some.site == np.array(chosen)[some.variable])
        assert alone.size == 0
        assert alone.certify(alone.shares)[0] == total


@pytest.mark.usefixtures("crowd")
def test_without_a_search_money_is_near_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheapest, "SMALL", 0)
    monkeypatch.setattr("dfmesh.compiler.placement.cheapening.FEW_ROUNDS", 1)
    found = looked_at = 0
    for seed in range(42):
        stated = make((seed, "paired"), SHAPES[seed % len(SHAPES)], 3 + seed % 4, 4, candidates=3)
        least = best(stated, "money")
        assert least is not None
        placement = place(stated.graph, stated.costs, stated.home, stated.sites, Objective.MONEY)  # type: ignore[arg-type]
        assert legal(stated, placement.sites)
        assert placement.certificate.bound <= least[0] + 1e-6
        assert placement.certificate.cost >= least[0] - 1e-6
        looked_at += 1
        found += cost(stated, placement.sites, "money")[0] <= least[0] * 1.01 + 1e-6
    assert found >= 0.9 * looked_at


@pytest.mark.parametrize(("shape", "gap"), [("dag", 0.03), ("shared", 0.12)])
def test_money_of_five_hundred_that_few_sites_can_run(shape: str, gap: float) -> None:
    stated = make((0, "sizes"), shape, 500, 50, candidates=5)
    placement = place(stated.graph, stated.costs, stated.home, stated.sites, Objective.MONEY)  # type: ignore[arg-type]
    assert placement.certificate.gap <= gap
    assert cost(stated, placement.sites, "money")[0] == pytest.approx(placement.certificate.cost)
