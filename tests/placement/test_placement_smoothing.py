"""Bounds and placements of problems too large for a search, held against exhaustive search on small ones."""

from __future__ import annotations

import numpy as np
import pytest
from placement_problems import SHAPES, add_rules, best, cost, legal, make

from dfmesh.compiler.placement import Objective, place, solver
from dfmesh.compiler.placement.charges import charge
from dfmesh.compiler.placement.problem import build
from dfmesh.compiler.placement.smoothing import Smoothing, is_uniform


@pytest.mark.parametrize("rules", [False, True], ids=["free", "ruled"])
@pytest.mark.parametrize("objective", [Objective.BYTES, Objective.MONEY], ids=lambda objective: objective.value)
def test_without_a_search_bounds_hold_and_placements_are_legal(
    objective: Objective, rules: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "SEARCHED", 0)
    monkeypatch.setattr("dfmesh.compiler.placement.cheapening.FEW_ROUNDS", 1)
    found = looked_at = 0
    for seed in range(120):
        stated = make((seed, "smooth"), SHAPES[seed % len(SHAPES)], 3 + seed % 4, 4, candidates=3)
        if rules:
            add_rules(stated, seed)
        least = best(stated, objective.value)
        if least is None:
            continue
        placement = place(stated.graph, stated.costs, stated.home, stated.sites, objective)  # type: ignore[arg-type]
        assert legal(stated, placement.sites)
        assert placement.certificate.bound <= least[0] + 1e-6
        assert placement.certificate.cost >= least[0] - 1e-6
        looked_at += 1
        found += cost(stated, placement.sites, objective.value)[0] <= least[0] * 1.01 + 1e-6
    assert found >= 0.9 * looked_at


def test_whatever_is_offered_the_bound_holds() -> None:
    draw = np.random.default_rng(5)
    bounds = []
    for seed in range(60):
        stated = make((seed, "offers"), SHAPES[seed % len(SHAPES)], 3 + seed % 4, 4, candidates=3)
        problem = build(stated.graph, stated.costs, stated.home, stated.sites)  # type: ignore[arg-type]
        charges = charge(problem, Objective.BYTES, tie_breaks=False)
        if not is_uniform(problem, charges):
            continue
        smoothing = Smoothing.of(problem, charges, problem.domain)
        least = best(stated, "bytes")
        assert least is not None
        limit = round(least[0])
        for _ in range(5):
            offers = draw.uniform(0, 6e6, smoothing.size)
            assert smoothing.certify(offers)[0] <= limit
        before, _ = smoothing.certify(smoothing.offers)
        after, dear = smoothing.certify(smoothing.ascend(200, 1e5, 1e3))
        assert before <= limit
        assert after <= limit
        assert dear.min(initial=0) >= 0
        bounds.append((before, after, limit))
    assert sum(after >= 0.99 * limit for _, after, limit in bounds) >= 0.8 * len(bounds)
    assert all(after >= before for before, after, _ in bounds)


@pytest.mark.parametrize(("shape", "gap"), [("dag", 0.03), ("shared", 0.05), ("out-tree", 0.03)])
def test_bytes_of_five_hundred_that_few_sites_can_run(shape: str, gap: float) -> None:
    stated = make((0, "sizes"), shape, 500, 50, candidates=5)
    placement = place(stated.graph, stated.costs, stated.home, stated.sites, Objective.BYTES)  # type: ignore[arg-type]
    assert placement.certificate.gap <= gap
    found = cost(stated, placement.sites, "bytes")[0]
    assert found == pytest.approx(placement.certificate.cost)
