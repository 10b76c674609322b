"""Rules of the federation file: residency, capacity, prices; and what a user is told when they leave no placement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dfmesh import BestOf, FederationConfig, ForEach, Pipeline, Yield
from dfmesh.compiler.costs import Costs
from dfmesh.compiler.lower import lower
from dfmesh.compiler.placement import Objective, Placement, place
from dfmesh.config import ResidencyRule
from dfmesh.errors import ConfigError, PipelineError

OPERATIONS = {
    "d.Read": {},
    "d.Mean": {"parameters": {"x": {}}, "required": ["x"]},
    "d.Work": {"parameters": {"x": {}}},
}


def federation(tmp_path: Path, sites: dict[str, Any]) -> FederationConfig:
    path = tmp_path / "rules.dfm.yaml"
    path.write_text(json.dumps({"dfm": "1.0.0", "operations": OPERATIONS, "sites": sites}, indent=1))
    return FederationConfig.load(path)


def offering(*operations: str, **more: Any) -> dict[str, Any]:
    return {"interface": {name: {"adapter": "builtins.dict"} for name in operations}, **more}


def placed(config: FederationConfig, pipeline: Pipeline, home: str, objective: Objective = Objective.TIME) -> Placement:
    graph = lower(pipeline, config)
    return place(graph, Costs(graph, config), home, list(config.sites), objective)


def read_and_mean(config: FederationConfig, **mean: Any) -> Pipeline:
    with Pipeline() as pipeline:
        Yield(config.ops.d.Mean(x=config.ops.d.Read(site="clinic"), **mean))
    return pipeline


def test_data_that_may_not_leave_is_worked_on_where_it_is(tmp_path: Path) -> None:
    slow = {"adapter": "builtins.dict", "compute-cost": {"fixed-time": 60}}
    clinic = {"interface": {"d.Read": {"adapter": "builtins.dict", "residency": []}, "d.Mean": slow}}
    config = federation(tmp_path, {"clinic": clinic, "fast": offering("d.Mean"), "home": {}})
    placement = placed(config, read_and_mean(config), "home")
    assert placement.sites[:2] == ["clinic", "clinic"], "its result is a new value, under no rule"
    del clinic["interface"]["d.Read"]["residency"]
    config = federation(tmp_path, {"clinic": clinic, "fast": offering("d.Mean"), "home": {}})
    assert placed(config, read_and_mean(config), "home").sites[:2] == ["clinic", "fast"]


def test_the_rule_of_an_adapter_comes_before_that_of_its_site(tmp_path: Path) -> None:
    clinic = offering("d.Read", residency=["partner"])
    sites = {"clinic": clinic, "other": offering("d.Mean"), "partner": offering("d.Mean"), "home": {}}
    config = federation(tmp_path, sites)
    assert placed(config, read_and_mean(config), "home").sites[1] == "partner"
    clinic["interface"]["d.Read"]["residency"] = ["other"]
    config = federation(tmp_path, sites)
    assert placed(config, read_and_mean(config), "home").sites[1] == "other"


def test_what_only_passes_a_value_on_passes_its_rule_on(tmp_path: Path) -> None:
    sites = {
        "clinic": offering("d.Read", residency=["partner"]),
        "home": offering("d.Work"),
        "partner": offering("d.Work"),
    }
    config = federation(tmp_path, sites)
    with Pipeline() as pipeline:
        with ForEach(config.ops.d.Read()) as item:
            pass
        config.ops.d.Work(x=item.collect(item))
    placement = placed(config, pipeline, "home")
    assert placement.sites[-1] == "partner"
    assert set(placement.sites) <= {"clinic", "partner"} | {placement.sites[-1]}


def test_a_conflict_is_told_with_the_fewest_rules_and_both_files(tmp_path: Path) -> None:
    clinic = offering("d.Read", "d.Mean", residency=["partner"])
    sites = {"clinic": clinic, "abroad": offering("d.Mean"), "partner": offering("d.Mean"), "home": offering("d.Work")}
    config = federation(tmp_path, sites)
    with Pipeline() as pipeline:
        unrelated = config.ops.d.Work(x=1)
        mean = config.ops.d.Mean(x=config.ops.d.Read(), site="abroad")
        Yield([mean, unrelated])
    with pytest.raises(PipelineError, match="cannot be placed") as caught:
        placed(config, pipeline, "home")
    summary, *rules = caught.value.faults
    assert len(rules) == 3
    assert summary.message.startswith("3 rules cannot all be kept")
    texts = " / ".join(rule.message for rule in rules)
    assert "d.Mean (%2) can only run at abroad" in texts
    assert "d.Read (%1) can only run at clinic" in texts
    assert "made at clinic may go to partner" in texts
    files = {Path(rule.location.file).name for rule in rules if rule.location}
    assert files == {Path(__file__).name, "rules.dfm.yaml"}


def test_a_conflict_among_hundreds_of_rules_is_told_as_shortly(tmp_path: Path) -> None:
    sites = {f"s{number}": offering("d.Read", "d.Work", residency=["hub"]) for number in range(4)}
    config = federation(tmp_path, sites | {"hub": offering("d.Mean"), "abroad": offering("d.Mean"), "home": {}})
    with Pipeline() as pipeline:
        for _ in range(150):
            config.ops.d.Mean(x=config.ops.d.Work(x=config.ops.d.Read(site="s1"), site="s1"), site=BestOf())
        config.ops.d.Mean(x=config.ops.d.Read(site="s2"), site="abroad")
    with pytest.raises(PipelineError, match="cannot be placed") as caught:
        placed(config, pipeline, "home")
    summary, *rules = caught.value.faults
    assert summary.message.startswith("3 rules cannot all be kept")
    assert {rule.message.partition(" (")[0] for rule in rules} == {"d.Read", "d.Mean", "results of d.Read"}


def test_results_that_may_not_go_to_the_homesite_cannot_be_yielded(tmp_path: Path) -> None:
    config = federation(tmp_path, {"clinic": offering("d.Read", residency=[]), "home": {}})
    with Pipeline() as pipeline:
        Yield(config.ops.d.Read())
    with pytest.raises(PipelineError, match="results that are yielded go to the homesite home") as caught:
        placed(config, pipeline, "home")
    assert len(caught.value.faults) == 3


def test_a_site_of_limited_capacity_does_not_get_all_the_work(tmp_path: Path) -> None:
    def offer(seconds: float) -> dict[str, Any]:
        return {"interface": {"d.Work": {"adapter": "builtins.dict", "compute-cost": {"fixed-time": seconds}}}}

    sites = {"fast": offer(1.0) | {"capacity": 2}, "slow": offer(1.5), "home": {}}
    config = federation(tmp_path, sites)
    with Pipeline() as pipeline:
        for number in range(6):
            config.ops.d.Work(x=number, site=BestOf())
    placement = placed(config, pipeline, "home")
    assert placement.certificate.gap == 0
    assert placement.estimate.seconds == 1.5
    assert placement.sites.count("fast") <= 3
    del sites["fast"]["capacity"]
    assert placed(federation(tmp_path, sites), pipeline, "home").sites == ["fast"] * 6


def test_money_is_saved_where_that_is_asked_for(tmp_path: Path) -> None:
    def offer(seconds: float, price: float) -> dict[str, Any]:
        cost = {"fixed-time": seconds, "price-per-second": price, "fixed-size": 1_000_000}
        return {"interface": {"d.Work": {"adapter": "builtins.dict", "compute-cost": cost}}}

    sites = {"fast": offer(1, 10), "cheap": offer(20, 0.1), "home": {}}
    sites["cheap"]["send-cost"] = {"home": {"price-per-byte": 1e-6}}
    config = federation(tmp_path, sites)
    with Pipeline() as pipeline:
        Yield(config.ops.d.Work(x=1))
    assert placed(config, pipeline, "home").sites[0] == "fast"
    placement = placed(config, pipeline, "home", Objective.MONEY)
    assert placement.sites[0] == "cheap"
    assert placement.estimate.money == pytest.approx(20 * 0.1 + 1)
    assert placement.certificate.bound == placement.certificate.cost == pytest.approx(3)


def test_a_value_takes_the_way_over_a_third_site_where_that_is_faster(tmp_path: Path) -> None:
    sites = {
        "a": offering("d.Read", **{"send-cost": {"b": {"fixed-time": 100}, "relay": {"fixed-time": 1}}}),
        "b": offering("d.Work"),
        "relay": {"send-cost": {"b": {"fixed-time": 1}}},
    }
    config = federation(tmp_path, sites)
    with Pipeline() as pipeline:
        with ForEach(config.ops.d.Read()) as item:
            pass
        config.ops.d.Work(x=item.collect(item))
    placement = placed(config, pipeline, "a")
    assert "relay" in placement.sites, "a node that can run anywhere is not bound to its neighbours' sites"
    assert placement.certificate.gap == 0


def test_the_configuration_is_read_and_checked(tmp_path: Path) -> None:
    clinic = offering("d.Read", residency=["home"], capacity=3)
    config = federation(tmp_path, {"clinic": clinic, "home": {}})
    rule = config.sites["clinic"].residency
    assert isinstance(rule, ResidencyRule)
    assert rule.sites == ("home",)
    assert rule.location.line > 1
    assert config.sites["clinic"].capacity == 3
    clinic |= {"residency": ["hom"], "capacity": 0}
    with pytest.raises(ConfigError) as caught:
        federation(tmp_path, {"clinic": clinic, "home": {}})
    messages = [str(fault) for fault in caught.value.faults]
    assert len(messages) == 2
    assert any("there is no site 'hom'" in message and "home" in message for message in messages)
    assert any("sites.clinic.capacity" in message for message in messages)
