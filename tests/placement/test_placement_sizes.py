"""Larger problems, one of each shape; how often gaps close on many is measured by `benchmarks/placement.py`."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from placement_problems import SHAPES, cost, make

from dfmesh.compiler.placement import Objective, Placement, place

HERE = Path(__file__).parent


def placed(
    shape: str, nodes: int, sites: int, candidates: int | None, objective: Objective = Objective.TIME
) -> Placement:
    stated = make((0, "sizes"), shape, nodes, sites, candidates=candidates)
    return place(stated.graph, stated.costs, stated.home, stated.sites, objective)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("candidates", [3, 10, None])
def test_one_problem_of_sixty_operations_over_ten_sites_is_placed_exactly(shape: str, candidates: int | None) -> None:
    assert placed(shape, 60, 10, candidates).certificate.gap == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_one_problem_of_five_hundred_over_fifty_is_within_a_hundredth(shape: str) -> None:
    assert placed(shape, 500, 50, 5).certificate.gap <= 0.01


@pytest.mark.parametrize("shape", SHAPES)
def test_one_problem_of_a_thousand_over_twenty_is_within_a_hundredth(shape: str) -> None:
    assert placed(shape, 1_000, 20, 4).certificate.gap <= 0.01


@pytest.mark.parametrize("shape", SHAPES)
def test_five_hundred_that_may_be_at_any_of_fifty_sites_are_within_a_hundredth(shape: str) -> None:
    assert placed(shape, 500, 50, 50).certificate.gap <= 0.01


@pytest.mark.parametrize(
    ("shape", "objective"),
    [
        ("chain", Objective.BYTES),
        ("in-tree", Objective.BYTES),
        ("out-tree", Objective.MONEY),
        ("diamonds", Objective.MONEY),
    ],
)
def test_bytes_and_money_of_five_hundred_are_within_a_hundredth(shape: str, objective: Objective) -> None:
    assert placed(shape, 500, 50, 5, objective).certificate.gap <= 0.01


@pytest.mark.parametrize("shape", ["dag", "fan"])
def test_money_of_five_hundred_that_may_be_at_any_of_fifty_sites_is_within_a_hundredth(shape: str) -> None:
    assert placed(shape, 500, 50, 50, Objective.MONEY).certificate.gap <= 0.01


@pytest.mark.parametrize("objective", list(Objective), ids=lambda objective: objective.value)
def test_a_large_problem_is_placed_as_its_certificate_says(objective: Objective) -> None:
    stated = make((1, "stated"), "dag", 300, 12, candidates=4)
    placement = place(stated.graph, stated.costs, stated.home, stated.sites, objective)  # type: ignore[arg-type]
    found = cost(stated, placement.sites, objective.value)[0]
    assert found == pytest.approx(placement.certificate.cost, abs=1e-5)
    assert placement.certificate.bound <= found + 1e-6


@pytest.mark.parametrize("objective", [Objective.BYTES, Objective.MONEY], ids=lambda objective: objective.value)
def test_forty_chained_diamonds_are_not_counted_per_path(objective: Objective) -> None:
    certificate = placed("diamonds", 120, 4, 2, objective).certificate
    assert certificate.bound <= certificate.cost < 1e9


def digest() -> str:
    placements = [
        placed(shape, nodes, sites, None, objective).sites
        for shape in SHAPES
        for objective in Objective
        for nodes, sites in ((8, 3), (30, 6))
    ]
    return hashlib.sha256(json.dumps(placements).encode()).hexdigest()


def test_placements_do_not_depend_on_the_process() -> None:
    code = "import test_placement_sizes as t; print(t.digest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "77")
    }
    assert len(found) == 1
