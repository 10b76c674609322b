"""1,000 random problems small enough to enumerate: the placement is the best one, and its certificate says so."""

from __future__ import annotations

import pytest
from placement_problems import SHAPES, Stated, add_rules, best, cost, legal, make

from dfmesh.compiler.placement import Objective, Placement, alternatives, place
from dfmesh.compiler.placement.solver import Effort
from dfmesh.errors import PipelineError

PER_CASE = 50


def placed(stated: Stated, objective: Objective, effort: Effort | None = None) -> Placement:
    return place(stated.graph, stated.costs, stated.home, stated.sites, objective, effort)  # type: ignore[arg-type]


def small(seed: int) -> Stated:
    return make(seed, SHAPES[seed % len(SHAPES)], 2 + seed % 5, 2 + seed % 3)


def check(stated: Stated, objective: Objective) -> None:
    least = best(stated, objective.value)
    if least is None:
        with pytest.raises(PipelineError, match="cannot be placed"):
            placed(stated, objective)
        return
    placement = placed(stated, objective)
    assert legal(stated, placement.sites)
    assert cost(stated, placement.sites, objective.value) == least
    assert placement.exact
    assert placement.certificate.gap == 0
    assert placement.certificate.cost == pytest.approx(least[0], abs=1e-6)
    assert placement.certificate.bound == placement.certificate.cost


@pytest.mark.parametrize("objective", list(Objective), ids=lambda objective: objective.value)
@pytest.mark.parametrize("first", range(0, 1_000, PER_CASE))
def test_every_placement_is_the_best_one(first: int, objective: Objective) -> None:
    for seed in range(first, first + PER_CASE):
        check(small(seed), objective)


@pytest.mark.parametrize("objective", list(Objective), ids=lambda objective: objective.value)
@pytest.mark.parametrize("first", range(0, 300, PER_CASE))
def test_also_under_residency_rules_and_limited_capacities(first: int, objective: Objective) -> None:
    for seed in range(first, first + PER_CASE):
        stated = small(seed)
        add_rules(stated, seed)
        check(stated, objective)


@pytest.mark.parametrize("objective", list(Objective), ids=lambda objective: objective.value)
def test_the_bound_holds_even_when_next_to_nothing_may_be_searched(objective: Objective) -> None:
    unproven = 0
    for seed in range(150):
        stated = small(seed)
        placement = placed(stated, objective, Effort(steps=1, tie_steps=1, sweeps=1))
        least = best(stated, objective.value)
        assert least is not None
        assert placement.certificate.bound <= least[0] + 1e-6
        assert cost(stated, placement.sites, objective.value) >= least
        if placement.exact:
            assert cost(stated, placement.sites, objective.value) == least
        unproven += not placement.exact
    assert unproven, "the test does not test what it is for"


def test_the_estimate_is_what_the_definition_gives() -> None:
    for seed in range(100):
        stated = small(seed)
        for objective in Objective:
            placement = placed(stated, objective)
            by_time, by_bytes, by_money = (cost(stated, placement.sites, name.value) for name in Objective)
            estimate = placement.estimate
            assert estimate.seconds == pytest.approx(by_time[0], abs=1e-6)
            assert (estimate.bytes_moved, estimate.away, estimate.rank) == (by_bytes[0], *by_time[2:])
            assert estimate.money == pytest.approx(by_money[0], abs=1e-5)


def test_the_next_best_site_is_the_best_with_the_site_forbidden() -> None:
    compared = 0
    for seed in range(60):
        stated = make((seed, "plain"), SHAPES[seed % len(SHAPES)], 2 + seed % 4, 3, plain=True)
        placement = placed(stated, Objective.TIME)
        others = alternatives(stated.graph, stated.costs, stated.home, stated.sites, placement.sites)  # type: ignore[arg-type]
        here = best(stated, "time")
        assert here is not None
        for node, other in zip(stated.graph.nodes, others, strict=True):
            assert node.candidates is not None
            if len(node.candidates) == 1:
                assert other is None
                continue
            assert other is not None
            assert other.replaced
            allowed = node.candidates
            node.candidates = tuple(site for site in allowed if site != placement.sites[node.index])
            forbidden = best(stated, "time")
            node.candidates = allowed
            assert forbidden is not None
            assert other.seconds == pytest.approx(forbidden[0] - here[0], abs=1e-6)
            assert other.bytes_moved == forbidden[1] - here[1]
            compared += 1
    assert compared > 50
