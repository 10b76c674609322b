"""What placements of least seconds rest on: edges that never decide, and searches within a limit."""

from __future__ import annotations

import numpy as np
import pytest
from placement_problems import SHAPES, Maker, Stated, add_rules, best, make

from dfmesh.compiler.placement.attempt import Attempt, Effort, InfeasibleError
from dfmesh.compiler.placement.descent import Descent, Outcome
from dfmesh.compiler.placement.least_seconds import least_seconds
from dfmesh.compiler.placement.needed import without_needless_edges
from dfmesh.compiler.placement.problem import Problem, build
from dfmesh.compiler.placement.propagation import Propagation

NANOSECOND = 1e-9


def problem_of(stated: Stated) -> Problem:
    return build(stated.graph, stated.costs, stated.home, stated.sites)  # type: ignore[arg-type]


def test_without_needless_edges_every_placement_takes_the_same_time() -> None:
    left_out = 0
    for seed in range(120):
        problem = problem_of(make((seed, "needed"), SHAPES[seed % len(SHAPES)], 30, 4))
        other = without_needless_edges(problem)
        left_out += len(problem.source) - len(other.source)
        draw = np.random.default_rng(seed)
        for _ in range(20):
            chosen = [int(draw.choice(np.flatnonzero(may))) for may in problem.domain]
            assert other.seconds(chosen) == problem.seconds(chosen)
    assert left_out > 100


def test_diamonds_without_needless_edges_are_exact_at_once() -> None:
    problem = problem_of(make((1, "needed"), "diamonds", 200, 12, candidates=12))
    other = without_needless_edges(problem)
    assert len(other.source) < len(problem.source)
    assert Attempt(other, Effort()).windows.bound(other.domain) > Attempt(problem, Effort()).windows.bound(
        problem.domain
    )
    _, bound, proven = least_seconds(Attempt(other, Effort()))
    assert proven
    assert bound > 0


@pytest.mark.parametrize("ruled", [False, True], ids=["free", "rules and capacities"])
def test_a_descent_finds_what_keeps_a_limit_or_proves_that_nothing_does(ruled: bool) -> None:
    for seed in range(150):
        stated = make((seed, "descent"), SHAPES[seed % len(SHAPES)], 2 + seed % 5, 2 + seed % 3)
        if ruled:
            add_rules(stated, seed)
        least = best(stated, "time")
        if least is None:
            continue
        problem = problem_of(stated)
        limit = min_seconds(problem)
        assert limit == pytest.approx(least[0], abs=1e-6)
        assert within(problem, limit - 2 * NANOSECOND).proven
        found = within(problem, limit).chosen
        assert found is not None
        assert problem.allows(found)
        assert problem.seconds(found) <= limit + NANOSECOND


def within(problem: Problem, limit: float) -> Outcome:
    propagation = Propagation(problem, [np.flatnonzero(may) for may in problem.domain])
    return Descent(propagation).within(limit, np.inf, 10_000, 10_000)


def min_seconds(problem: Problem) -> float:
    chosen, bound, proven = least_seconds(Attempt(problem, Effort()))
    assert proven
    assert bound == problem.seconds(chosen)
    return bound


def test_what_the_rules_leave_nothing_of_is_refused() -> None:
    problem = problem_of(make((3, "descent"), "chain", 4, 3))
    problem.domain[2] = False
    assert without_needless_edges(problem) is problem
    with pytest.raises(InfeasibleError):
        Attempt(problem, Effort())


def test_when_the_work_is_done_a_descent_gives_what_it_has() -> None:
    problem = problem_of(make((5, "descent"), "dag", 60, 8, candidates=8))
    chosen, bound, proven = least_seconds(Attempt(problem, Effort(steps=1)))
    assert problem.allows(chosen)
    assert bound <= problem.seconds(chosen)
    exact = min_seconds(problem)
    assert bound <= exact <= problem.seconds(chosen)
    assert not proven or exact == problem.seconds(chosen)


def test_sites_of_limited_capacity_are_filled_well() -> None:
    maker = Maker("capacity", 10)
    for _ in range(120):
        maker.operation([], 10)
    stated = maker.stated()
    stated.costs.capacities = dict.fromkeys(stated.sites, 1)
    problem = problem_of(stated)
    chosen, bound, _ = least_seconds(Attempt(problem, Effort()))
    assert bound <= problem.seconds(chosen) <= 1.3 * bound
