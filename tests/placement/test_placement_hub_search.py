"""Bounds and placements where a few variables on which most others depend are fixed one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from placement_problems import SHAPES, best, cost, legal, make

from dfmesh.compiler.placement import Objective, cheapest, place
from dfmesh.compiler.placement.attempt import some_placement
from dfmesh.compiler.placement.charges import charge
from dfmesh.compiler.placement.cheapening import Cheapening
from dfmesh.compiler.placement.hub_search import HubSearch, hubs_of
from dfmesh.compiler.placement.messages import Messages
from dfmesh.compiler.placement.pair_smoothing import PairSmoothing
from dfmesh.compiler.placement.passing import pass_on
from dfmesh.compiler.placement.problem import Problem, build


@pytest.fixture(autouse=True)
def _many_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two neighbours make a hub, and two takers be many."""
    monkeypatch.setattr("dfmesh.compiler.placement.hub_search.HUB", 2)
    monkeypatch.setattr("dfmesh.compiler.placement.messages.MANY", 2)
    monkeypatch.setattr("dfmesh.compiler.placement.cheapening.STAGE", 1)


def problem_of(seed: object, shape: str, nodes: int) -> tuple[Problem, int]:
    stated = make((seed, "hubs"), shape, nodes, 4, candidates=3)
    problem = build(stated.graph, stated.costs, stated.home, stated.sites)  # type: ignore[arg-type]
    least = best(stated, "money")
    assert least is not None
    return problem, round(least[0] * 1e6)


@pytest.mark.parametrize("work", [0, 20_000, 10_000_000])
def test_the_bound_holds_whenever_the_search_ends(work: int) -> None:
    closed = 0
    for seed in range(35):
        problem, least = problem_of(seed, SHAPES[seed % len(SHAPES)], 3 + seed % 4)
        charges = charge(problem, Objective.MONEY, tie_breaks=False)
        first = some_placement(problem, problem.domain)
        standing = Cheapening(problem, charges, first, charges.total(problem, first))
        messages = Messages(problem, charges, list(range(len(problem.members))), problem.domain)
        hubs = hubs_of(problem)
        messages.watch(hubs)
        pass_on(standing, messages, 1, np.inf)
        if standing.bound < standing.total:
            HubSearch(standing, hubs).run(messages, work)
        assert standing.bound <= least + 10
        assert standing.total >= least - 10
        closed += standing.bound >= 0.99 * least - 10
    assert closed >= (30 if work > 1_000_000 else 0)


def test_an_ascent_begins_where_messages_end() -> None:
    kept = []
    for seed in range(35):
        problem, least = problem_of(seed, SHAPES[seed % len(SHAPES)], 3 + seed % 4)
        if problem.residency or not problem.shipments:
            continue
        charges = charge(problem, Objective.MONEY, tie_breaks=False)
        messages = Messages(problem, charges, list(range(len(problem.members))), problem.domain)
        for _ in range(3):
            messages.forward(None)
            messages.backward(None)
            messages.even_out()
        messages.forward(None)
        smoothing = PairSmoothing.of(problem, charges, problem.domain, messages)
        begun, _ = smoothing.certify(smoothing.shares)
        kept.append(begun >= 0.99 * messages.bound - 10)
        assert begun <= smoothing.raised(60, 1e5, 1e3)[0] <= least + 10
    assert sum(kept) >= 0.8 * len(kept)


def test_without_a_search_tree_money_is_near_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheapest, "SMALL", 0)
    monkeypatch.setattr("dfmesh.compiler.placement.cheapening.FEW_WAYS", 10**6)
    found = 0
    for seed in range(42):
        stated = make((seed, "hub"), SHAPES[seed % len(SHAPES)], 3 + seed % 4, 4)
        least = best(stated, "money")
        assert least is not None
        placement = place(stated.graph, stated.costs, stated.home, stated.sites, Objective.MONEY)  # type: ignore[arg-type]
        assert legal(stated, placement.sites)
        assert placement.certificate.bound <= least[0] + 1e-6 <= placement.certificate.cost + 2e-6
        found += cost(stated, placement.sites, "money")[0] <= least[0] * 1.01 + 1e-6
    assert found >= 38
