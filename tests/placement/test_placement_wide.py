"""Very many sites: what is needed grows with the sites that each operation may have, not with all there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from placement_problems import SHAPES, best, cost, legal, make

from dfmesh import BestOf, FederationConfig, Pipeline, Yield
from dfmesh.compiler import compile_pipeline
from dfmesh.compiler.explain import explain
from dfmesh.compiler.placement import Objective, place, solver
from dfmesh.compiler.placement.problem import Problem
from dfmesh.errors import PipelineError

SITES = 2_000


def federation(tmp_path: Path, sites: int = SITES) -> FederationConfig:
    names = [f"s{number}" for number in range(sites)]
    document: dict[str, Any] = {"dfm": "1.0.0", "operations": {}, "sites": {name: {"interface": {}} for name in names}}
    for number in range(40):
        operation = f"d.N{number}"
        document["operations"][operation] = {"parameters": {"x": {}}}
        for which in range(3):
            timing = {"fixed-time": 1 + which, "fixed-size": 1_000_000}
            offer = {"adapter": "builtins.dict", "compute-cost": timing}
            document["sites"][names[(number * 37 + which * 11) % sites]]["interface"][operation] = offer
    path = tmp_path / "wide.dfm.yaml"
    path.write_text(json.dumps(document))
    return FederationConfig.load(path)


@pytest.mark.parametrize("objective", list(Objective), ids=lambda objective: objective.value)
def test_a_pipeline_over_two_thousand_sites(tmp_path: Path, objective: Objective) -> None:
    config = federation(tmp_path)
    with Pipeline() as pipeline:
        value: Any = 0
        for number in range(120):
            value = getattr(config.ops.d, f"N{number % 40}")(x=value, site=BestOf())
        Yield(value)
    compiled = compile_pipeline(pipeline, config, "s5", objective=objective)
    certificate = compiled.placement.certificate
    assert certificate.gap <= 0.01
    if objective is Objective.TIME:
        # A hop is never free but cheaper than a slower site: the fastest of the three is right for every operation.
        assert 120 < certificate.cost < 125
    rows = explain(compiled).rows
    assert rows[0].next_best is not None


@pytest.mark.parametrize("objective", list(Objective), ids=lambda objective: objective.value)
def test_short_lists_never_make_a_bound_too_large(objective: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "WIDE", 0)
    monkeypatch.setattr("dfmesh.compiler.placement.shortlists.LISTED", 2)
    found = 0
    for seed in range(100):
        stated = make((seed, "short"), SHAPES[seed % len(SHAPES)], 2 + seed % 4, 4)
        placement = place(stated.graph, stated.costs, stated.home, stated.sites, objective)  # type: ignore[arg-type]
        least = best(stated, objective.value)
        assert least is not None
        assert legal(stated, placement.sites)
        assert placement.certificate.bound <= least[0] + 1e-6
        found += cost(stated, placement.sites, objective.value)[0] <= least[0] * 1.05 + 1e-6
    assert found >= 60


@pytest.mark.parametrize("objective", list(Objective), ids=lambda objective: objective.value)
def test_no_table_over_all_pairs_of_sites_is_made_per_edge(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(problem: Problem) -> None:
        raise MemoryError

    monkeypatch.setattr(solver, "WIDE", 0)
    monkeypatch.setattr(Problem, "delay", property(too_large))
    for shape in ("dag", "shared", "fan"):
        stated = make((5, "wide"), shape, 60, 8, candidates=3)
        placement = place(stated.graph, stated.costs, stated.home, stated.sites, objective)  # type: ignore[arg-type]
        assert legal(stated, placement.sites)


def test_rules_are_kept_there_too(tmp_path: Path) -> None:
    path = tmp_path / "rules.dfm.yaml"
    config = federation(tmp_path)
    document = json.loads((tmp_path / "wide.dfm.yaml").read_text())
    document["sites"]["s0"]["interface"]["d.N0"]["residency"] = []
    path.write_text(json.dumps(document))
    config = FederationConfig.load(path)
    with Pipeline() as pipeline:
        Yield(config.ops.d.N1(x=config.ops.d.N0(x=1, site=BestOf()), site=BestOf()))
    sites = compile_pipeline(pipeline, config, "s5").placement.sites
    assert sites[0] != "s0"
    with Pipeline() as pipeline:
        Yield(config.ops.d.N1(x=config.ops.d.N0(x=1, site="s0"), site=BestOf()))
    with pytest.raises(PipelineError, match="cannot be placed"):
        compile_pipeline(pipeline, config, "s5")
