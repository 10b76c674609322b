"""The arithmetic of measured costs, and what the compiler makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dfmesh import BestOf, Federation, ForEach, Pipeline, Yield
from dfmesh.compiler import compile_pipeline
from dfmesh.compiler.measured import MOST_RECORDS, MeasuredCosts, pipeline_key
from dfmesh.compiler.measures import (
    MEMORY,
    LinkMeasure,
    Mean,
    OperationMeasure,
    SendMeasure,
    SiteMeasure,
    StatementMeasure,
)
from dfmesh.engine.message_parts import OperationReport, SiteReport
from dfmesh.session.measuring import Loaded, measure


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    use = {"adapter": "builtins.dict", "compute_cost": {"fixed_time": 0.5, "fixed_size": 1000}}
    bare = {"adapter": "builtins.dict"}
    document: dict[str, Any] = {
        "dfm": "1.0.0",
        "operations": {
            "op.Make": {"parameters": {}},
            "op.Use": {"parameters": {"x": {}}},
            "op.Bare": {"parameters": {"x": {}}},
        },
        "sites": {
            "home": {"interface": {"op.Make": bare}},
            "a": {"interface": {"op.Use": use, "op.Bare": bare}},
            "b": {"interface": {"op.Use": use, "op.Bare": bare}},
        },
    }
    path = tmp_path_factory.mktemp("federation") / "costs.dfm.yaml"
    path.write_text(json.dumps(document))
    return Federation.load(path)


def calls(site: str, seconds: float, *, operation: str = "op.Use", size: float | None = None) -> OperationMeasure:
    return OperationMeasure(
        operation, None, site, Mean(seconds, 10), Mean(), Mean() if size is None else Mean(size, 10)
    )


def compiled(fed: Federation, measured: MeasuredCosts | None, operation: str = "Use") -> Any:
    with Pipeline(name="p") as pipeline:
        use = getattr(fed.ops.op, operation)
        Yield(use(x=fed.ops.op.Make(), site=BestOf(["a", "b"]), node_id="use"))
    return compile_pipeline(pipeline, fed.config, "home", measured=measured)


def test_a_mean_is_weighted_by_counts_and_follows_changes() -> None:
    assert Mean(1.0, 3).joined(Mean(5.0, 1)) == Mean(2.0, 4)
    assert Mean().joined(Mean(5.0, 2)) == Mean(5.0, 2)
    assert Mean(5.0, 2).joined(Mean()) == Mean(5.0, 2)
    old = Mean(1.0, 1_000_000).joined(Mean(3.0, MEMORY))
    assert old == Mean(2.0, 1_000_000 + MEMORY)


def test_joining_keeps_what_only_one_side_knows() -> None:
    both = MeasuredCosts([calls("a", 1.0)], folds=1).joined(MeasuredCosts([calls("b", 2.0)]))
    assert both.seconds("op.Use", None, "a") == 1.0
    assert both.seconds("op.Use", None, "b") == 2.0
    assert both.seconds("op.Use", None, "c") is None
    assert both.folds == 2


def test_the_number_of_records_is_bounded_and_the_stalest_go_first() -> None:
    many = MeasuredCosts().joined(MeasuredCosts([calls(f"s{n}", 1.0) for n in range(MOST_RECORDS)]))
    more = many.joined(MeasuredCosts([calls("s5", 1.0), calls("new", 1.0)]))
    assert len(more.operations) == MOST_RECORDS
    assert more.seconds("op.Use", None, "new") == 1.0
    assert more.seconds("op.Use", None, "s5") == 1.0


def test_how_calls_vary_is_read_from_reports(fed: Federation) -> None:
    plan = compiled(fed, None)

    def spread(loaded: Loaded, **figures: float) -> float:
        report = OperationReport("use", "op.Use", "", 0, 0, 5, 0, **{"seconds": 15.0, "bytes_out": 0, **figures})
        return measure(plan, [SiteReport("a", (report,), {})], loaded).spread("op.Use", None, "a")

    # Calls of 1, 2, 3, 4 and 5 s, of which the first was cold.
    every = {"squares": 55.0, "cold": 1, "cold_seconds": 1.0, "cold_squares": 1.0}
    assert spread({("op.Use", None, "a")}, **every) == pytest.approx(2.5**0.5)
    assert spread(set(), **every) == pytest.approx((5 / 3) ** 0.5)
    assert spread(set(), **{**every, "cold": 3}) == 0.0  # Too few are left.
    assert spread(set(), **every, items=7) == 0.0


def test_how_calls_vary_is_kept_and_joined() -> None:
    def varying(variance: float) -> MeasuredCosts:
        return MeasuredCosts([OperationMeasure("op.Use", None, "a", Mean(1.0, 4), variance=Mean(variance, 4))])

    both = varying(1.0).joined(varying(9.0))
    assert MeasuredCosts.from_json(both.to_json()).spread("op.Use", None, "a") == 5.0**0.5


def test_text_gives_back_the_same_costs() -> None:
    costs = MeasuredCosts(
        [calls("a", 1.0, size=7.0), OperationMeasure("op.Use", "provider", "a", first=Mean(2.0, 1))],
        [StatementMeasure("p", "%1", "ForEach", Mean(24.0, 2))],
        [SendMeasure("p", "%1", "ForEach", "element", Mean(49.0, 3))],
        [LinkMeasure("a", "b", Mean(0.1, 1), Mean(1e6, 1))],
        [SiteMeasure("a", Mean(0.004, 9))],
        folds=9,
    )
    again = MeasuredCosts.from_json(costs.to_json())
    assert again.to_json() == costs.to_json()
    assert again.operations == costs.operations
    assert again.folds == 9


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 99, "folds": 1}', '{"version": 1, "folds": 1, "x": 2}'])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        MeasuredCosts.from_json(text.encode())


def test_forgetting_an_operation_leaves_the_others() -> None:
    costs = MeasuredCosts([calls("a", 1.0), calls("a", 2.0, operation="op.Bare")]).without("op.Use")
    assert costs.seconds("op.Use", None, "a") is None
    assert costs.seconds("op.Bare", None, "a") == 2.0


def test_measured_times_decide_where_an_operation_runs(fed: Federation) -> None:
    assert compiled(fed, None).node("use") == "a"
    plan = compiled(fed, MeasuredCosts([calls("a", 0.9), calls("b", 0.1)]))
    assert plan.node("use") == "b"
    assert plan.costs.compute(next(node for node in plan.graph.nodes if node.node == "use"), "b") == 0.1


def test_a_declared_time_counts_where_nothing_was_measured(fed: Federation) -> None:
    assert compiled(fed, MeasuredCosts([calls("a", 0.9)])).node("use") == "b"  # 0.5 s declared
    assert compiled(fed, MeasuredCosts([calls("a", 0.4)])).node("use") == "a"


def test_where_nothing_is_declared_it_takes_as_long_as_elsewhere(fed: Federation) -> None:
    plan = compiled(fed, MeasuredCosts([calls("a", 0.9, operation="op.Bare")]), "Bare")
    node = next(node for node in plan.graph.nodes if node.node == "use")
    assert plan.costs.compute(node, "b") == 0.9
    assert plan.node("use") == "a"


def test_measured_sizes_and_links_count(fed: Federation) -> None:
    link = LinkMeasure("a", "home", Mean(0.2, 1), Mean(50.0, 1))
    plan = compiled(fed, MeasuredCosts([calls("a", 0.5, size=10.0), calls("b", 0.5, size=30.0)], links=[link]))
    node = next(node for node in plan.graph.nodes if node.node == "use")
    assert plan.costs.sizes[node.index] == 20.0
    assert plan.costs.transfer(100.0, "a", "home") == pytest.approx(2.2)
    assert plan.node("use") == "b"


def test_equal_costs_give_equal_nets(fed: Federation) -> None:
    measured = MeasuredCosts([calls("a", 0.9), calls("b", 0.1)])
    assert compiled(fed, measured).encoded_nets == compiled(fed, measured).encoded_nets


def test_a_pipeline_without_a_name_is_known_by_what_it_is_made_of(fed: Federation) -> None:
    def key(count: int) -> str:
        with Pipeline() as pipeline, ForEach(fed.ops.op.Make()) as x:
            for _ in range(count):
                Yield(x)
        return pipeline_key(None, compile_pipeline(pipeline, fed.config, "home").graph)

    assert key(1) == key(1) != key(2)
