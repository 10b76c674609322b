"""Bytes and money of middle-sized problems: sweeps over the open ends of partial placements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from placement_problems import SHAPES, Stated, make

from dfmesh.compiler.placement import Objective, place
from dfmesh.compiler.placement.charges import Charges, charge
from dfmesh.compiler.placement.frontier import Frontier
from dfmesh.compiler.placement.frontier_order import frontier_order
from dfmesh.compiler.placement.ordering import decoupling_order
from dfmesh.compiler.placement.problem import Problem, build
from dfmesh.compiler.placement.relaxation import Relaxation

MUCH = 10**8


def built(stated: Stated) -> Problem:
    return build(stated.graph, stated.costs, stated.home, stated.sites)  # type: ignore[arg-type]


def swept(problem: Problem, charges: Charges, ceiling: int, width: int) -> Frontier:
    relaxation = Relaxation(problem, charges, decoupling_order(problem), problem.domain, ceiling)
    relaxation.ascend(5, even_out=True)
    order = frontier_order(problem, relaxation.domain, careful=True)
    relaxation.reorder(order)
    relaxation.lean_back()
    frontier = Frontier(relaxation, charges.shipping, order, width, MUCH)
    frontier.run()
    return frontier


def least(problem: Problem, charges: Charges) -> int:
    options = [np.flatnonzero(may).tolist() for may in problem.domain]
    return min(charges.total(problem, list(chosen)) for chosen in itertools.product(*options))


@pytest.mark.parametrize("objective", [Objective.BYTES, Objective.MONEY], ids=lambda objective: objective.value)
@pytest.mark.parametrize("shape", ["dag", "diamonds", "shared", "fan"])
def test_a_sweep_finds_the_least_and_a_narrow_one_a_bound_of_it(shape: str, objective: Objective) -> None:
    for seed in range(25):
        problem = built(make((seed, "sweep"), shape, 6, 3))
        charges = charge(problem, objective, tie_breaks=False)
        optimum = least(problem, charges)
        wide, narrow = (swept(problem, charges, optimum + 1, width) for width in (10_000, 1))
        assert wide.best is not None
        assert charges.total(problem, wide.best) == wide.charges == wide.bound == optimum
        assert narrow.bound <= optimum <= narrow.charges


def test_takers_whose_value_is_there_already_make_up_for_its_payment() -> None:
    # The site of the value is fixed when some takers have theirs: what it then costs, the open takers save.
    problem = built(make((156, "dbg"), "fan", 6, 3))
    charges = charge(problem, Objective.MONEY, tie_breaks=False)
    optimum = least(problem, charges)
    assert swept(problem, charges, optimum + 1, 10_000).charges == optimum


@pytest.mark.parametrize("objective", [Objective.BYTES, Objective.MONEY], ids=lambda objective: objective.value)
@pytest.mark.parametrize(("candidates", "shape"), [(n, shape) for n in (3, 10) for shape in SHAPES if shape != "dag"])
def test_bytes_and_money_of_sixty_operations_over_ten_sites_are_proven(
    shape: str, candidates: int, objective: Objective
) -> None:
    stated = make((0, "sizes"), shape, 60, 10, candidates=candidates)
    placement = place(stated.graph, stated.costs, stated.home, stated.sites, objective)  # type: ignore[arg-type]
    assert placement.certificate.gap == 0


def test_an_order_has_every_variable_once() -> None:
    problem = built(make((3, "order"), "dag", 40, 5))
    for careful in (False, True):
        assert sorted(frontier_order(problem, problem.domain, careful=careful)) == list(range(len(problem.members)))
