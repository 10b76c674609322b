"""What a prediction says, from what it knows, and how far it scales."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from prediction_reference import federation

from dfmesh import Else, Federation, ForEach, If, Pipeline, PipelineError, PlaceParam, TryFromCache, Yield
from dfmesh.compiler import compile_pipeline
from dfmesh.compiler.measured import MeasuredCosts
from dfmesh.compiler.measures import Mean, OperationMeasure, SiteMeasure, StatementMeasure
from dfmesh.session.prediction import predict


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    return federation(tmp_path_factory.mktemp("reference"))


def looped(fed: Federation, sequence: Any, *, site: str = "a", window: int | None = None) -> Pipeline:
    with Pipeline(name="looped") as pipeline, ForEach(sequence, window=window, node_id="loop") as x:
        Yield(fed.ops.op.Use(x=x, site=site, node_id="use"))
    return pipeline


def calls(prediction: Any) -> int:
    return sum(item.calls for item in prediction.operations if item.operation == "op.Use")


def test_iterations_are_known_from_constants_and_parameters(fed: Federation) -> None:
    assert calls(fed.predict(looped(fed, [1, 2, 3]), homesite="home")) == 3
    assert calls(fed.predict(looped(fed, PlaceParam("p")), {"p": [1, 2]}, homesite="home")) == 2
    assert calls(fed.predict(looped(fed, PlaceParam("p", default=[1] * 4)), homesite="home")) == 4
    sets = [{"p": [1, 2]}, {"p": {"k": [1]}}, {"p": [1] * 5}]
    assert calls(fed.predict(looped(fed, PlaceParam("p")), sets, homesite="home")) == 2 + 1 + 5
    nested = looped(fed, PlaceParam("p")["k"])
    assert calls(fed.predict(nested, {"p": {"k": range(9)}}, homesite="home")) == 9


def test_what_nobody_knows_is_assumed_and_said(fed: Federation) -> None:
    prediction = fed.predict(looped(fed, PlaceParam("p")), homesite="home")
    assert calls(prediction) == 10
    assert len(prediction.assumptions) == 1
    assert prediction.assumptions[0].startswith("ForEach loop (")
    assert "10 iterations" in prediction.assumptions[0]
    assert "assumed: ForEach loop" in prediction.to_text()


def test_the_mean_of_measured_iterations_comes_out(fed: Federation) -> None:
    measured = MeasuredCosts(statements=[StatementMeasure("looped", "loop", "ForEach", Mean(2.5, 4))])
    compiled = compile_pipeline(looped(fed, PlaceParam("p")), fed.config, "home", measured=measured)
    assert calls(predict(compiled, fed.config, [{}] * 100)) == 250
    assert calls(predict(compiled, fed.config, iterations={"loop": 7})) == 7


def test_shares_of_conditions_come_out(fed: Federation) -> None:
    op = fed.ops.op
    with Pipeline() as pipeline, ForEach(list(range(100)), node_id="loop") as x:
        with If(x > 3, node_id="if"):
            op.Use(x=x, site="a", node_id="then")
        with Else():
            op.Use(x=x, site="b", node_id="else")
        with TryFromCache(key=x, site="c", node_id="cache") as cache:
            cache.cache(op.Use(x=x, site="c", node_id="miss"))
        Yield(cache)

    def counts(**shares: float) -> dict[str, int]:
        prediction = fed.predict(pipeline, homesite="home", shares=shares)
        return {item.statement: item.calls for item in prediction.operations}

    assert counts(**{"if": 0.3, "cache": 0.9}) == {"then": 30, "else": 70, "miss": 10}
    assert counts(**{"if": 1.0, "cache": 1.0}) == {"then": 100, "else": 0, "miss": 0}
    assert counts() == {"then": 50, "else": 50, "miss": 100}


def test_figures_that_do_not_fit_are_all_refused_at_once(fed: Federation) -> None:
    with pytest.raises(PipelineError) as caught:
        fed.predict(looped(fed, [1]), homesite="home", iterations={"lop": 3, "loop": -1}, shares={"loop": 0.5})
    assert [fault.message for fault in caught.value.faults] == [
        "the pipeline has no loop 'lop'",
        "the loop 'loop' cannot have -1",
        "the pipeline has no condition or look-up 'loop'",
    ]


def test_parameters_need_not_be_complete_but_those_given_must_fit(fed: Federation) -> None:
    with Pipeline() as p:
        with ForEach(PlaceParam("xs")) as x:
            Yield(x)
        Yield(PlaceParam("other"))
    compiled = fed.compile(p)
    assert predict(compiled, fed.config, {"xs": [1, 2]}).results == 3
    with pytest.raises(PipelineError, match="do not fit") as raised:
        predict(compiled, fed.config, {"xs": 5, "ys": 1})
    assert [fault.message.partition(",")[0] for fault in raised.value.faults] == [
        "the pipeline has no parameter 'ys'",
        "the parameter 'xs' is 5 (int)",
    ]


def test_capacity_and_window_limit_what_goes_on_at_a_time(fed: Federation) -> None:
    def parallel(site: str, window: int | None) -> float:
        prediction = fed.predict(looped(fed, list(range(300)), site=site, window=window), homesite="home")
        return next(item.parallel for item in prediction.sites if item.site == site)

    assert parallel("a", None) == pytest.approx(2, rel=0.05)  # Its capacity.
    assert parallel("a", 1) == pytest.approx(1, rel=0.05)
    assert 2.5 < parallel("b", None) < 64
    assert parallel("c", None) < 3.01


def test_a_full_site_is_the_bottleneck(fed: Federation) -> None:
    prediction = fed.predict(looped(fed, list(range(1000))), homesite="home")
    assert str(prediction.bottleneck) == "op.Use use at a"
    assert prediction.bottleneck.times == pytest.approx(500, abs=2)
    assert prediction.bottleneck_line().startswith("bottleneck: op.Use use at a is")
    assert next(item for item in prediction.sites if item.site == "a").busy > 0.95


def test_a_slow_link_is_the_bottleneck(fed: Federation) -> None:
    op = fed.ops.op
    with Pipeline() as pipeline, ForEach(list(range(200)), node_id="loop") as x:
        Yield(op.Use(x=op.Use(x=x, site="b"), site="c"))
    prediction = fed.predict(pipeline, homesite="home")
    assert str(prediction.bottleneck) == "sending from b to c"
    link = next(link for link in prediction.links if (link.source, link.destination) == ("b", "c"))
    assert link.busy > 0.9
    assert link.messages >= 200


def test_freshly_started_sites_load_once(fed: Federation) -> None:
    loading = OperationMeasure("op.Use", None, "a", Mean(0.01, 5), Mean(3.01, 1))
    measured = MeasuredCosts([loading])
    compiled = compile_pipeline(looped(fed, list(range(10))), fed.config, "home", measured=measured)
    warm, cold = predict(compiled, fed.config), predict(compiled, fed.config, cold=True)
    assert cold.seconds == pytest.approx(warm.seconds + 3.0)
    assert str(cold.bottleneck) == "loading the libraries of op.Use at a"
    assert warm.measured == 1.0
    assert sum(part.seconds for part in cold.path) == pytest.approx(cold.seconds)


def test_the_lag_of_a_site_counts_for_results_and_for_what_comes(fed: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(fed.ops.op.Use(x=fed.ops.op.Use(x=1, site="b"), site="a"))
    measured = MeasuredCosts(sites=[SiteMeasure("a", Mean(0.5, 1))])
    without, lagging = (
        predict(compile_pipeline(pipeline, fed.config, "home", measured=costs), fed.config)
        for costs in (None, measured)
    )
    assert lagging.seconds == pytest.approx(without.seconds + 2 * 0.5)
    assert sum(part.seconds for part in lagging.path) == pytest.approx(lagging.seconds)
    assert any(str(part) == "waiting for a to take results of its calls" for part in lagging.path)


def test_what_is_not_declared_is_said(tmp_path: Path) -> None:
    sites = {
        "home": {"interface": {"op.Make": {"adapter": "x.y"}}},
        "a": {"interface": {"op.Use": {"adapter": "x.y", "compute_cost": {"fixed_time": 1}}}},
    }
    operations = {name: {"parameters": {"x": {}}} for name in ("op.Make", "op.Use", "op.Other")}
    path = tmp_path / "bare.dfm.yaml"
    path.write_text(json.dumps({"dfm": "1.0.0", "operations": operations, "sites": sites}))
    fed = Federation.load(path)
    with Pipeline() as pipeline:
        Yield(fed.ops.op.Use(x=fed.ops.op.Make(x=1)))
    prediction = fed.predict(pipeline, homesite="home", measure=False)
    assert prediction.undeclared == (
        "time of op.Make at home: calls take no time",
        "size of what op.Make gives: 1.02 kB",
        "size of what op.Use gives: 1.02 kB",
        "speed of a -> home, home -> a: 1 ms and 100 MB per second",
    )
    assert "not declared: time of op.Make" in prediction.to_text()
    # To ask both sites and to hear from them 2 ms, to send the value 1 ms and 1,060 bytes, 1 s, and 1 ms for the result
    # or for the report behind it, which has 28 bytes.
    assert prediction.seconds == pytest.approx(0.002 + 0.001 + 1060e-8 + 1 + 0.001 + (1060 + 28) * 1e-8, abs=1e-9)


def test_a_site_is_full_at_its_capacity(fed: Federation) -> None:
    prediction = fed.predict(looped(fed, list(range(50))), homesite="home")
    site = next(item for item in prediction.sites if item.site == "a")
    assert (site.capacity, round(site.parallel)) == (2, 2)
    assert "2.0 of 2" in prediction.to_text()


def test_mermaid_shows_sites_links_and_bottleneck(fed: Federation) -> None:
    lines = fed.predict(looped(fed, list(range(1000))), homesite="home").to_mermaid().splitlines()
    assert lines[0] == "flowchart LR"
    assert lines[1].startswith('  s0["a<br/>1,000 calls, busy ')
    assert any(line.startswith(("  s1 -->|", "  s0 -->|")) for line in lines)
    assert lines[-1] == "  style s0 stroke:#c00,stroke-width:3px"
    op = fed.ops.op
    with Pipeline() as pipeline, ForEach(list(range(200)), node_id="loop") as x:
        Yield(op.Use(x=op.Use(x=x, site="b"), site="c"))
    assert "linkStyle" in fed.predict(pipeline, homesite="home").to_mermaid()


def test_a_join_of_calls_that_vary_waits_longer_than_one_call_takes(fed: Federation) -> None:
    with Pipeline() as pipeline, ForEach(list(range(400)), window=1, node_id="loop") as x:
        op = fed.ops.op
        Yield(op.Use(x=[op.Use(x=x, site="home", node_id=f"part{number}") for number in range(3)], site="home"))

    def seconds(spread: float) -> float:
        calls = OperationMeasure("op.Use", None, "home", Mean(1.0, 9), variance=Mean(spread**2, 9))
        compiled = compile_pipeline(pipeline, fed.config, "home", measured=MeasuredCosts([calls]))
        return predict(compiled, fed.config).seconds

    assert seconds(0.0) == pytest.approx(800, rel=0.01)
    # The longest of three log-normal times of mean 1 and deviation 0.5 is 1.42 on average (of 4 million random ones).
    assert seconds(0.5) == pytest.approx(400 * 2.42, rel=0.03)


def test_the_same_prediction_comes_out_again(fed: Federation) -> None:
    one, other = (fed.predict(looped(fed, list(range(50))), homesite="home").to_json() for _ in range(2))
    assert one == other
    data = json.loads(one)
    assert data["results"] == 50
    assert data["bottleneck"]
    assert data["bytes_between_sites"] == sum(link["size"] for link in data["links"])


def test_text_and_html_say_the_same(fed: Federation) -> None:
    prediction = fed.predict(looped(fed, [1, 2]), homesite="home")
    for text in (prediction.to_text(), prediction._repr_html_()):
        assert "2 results" in text
        assert "op.Use" in text
        assert "critical path" in text


def test_nothing_to_do_takes_the_time_of_a_job(fed: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(1)
    prediction = fed.predict(pipeline, homesite="home")
    assert prediction.results == 1
    assert prediction.bottleneck_line() == ""


@pytest.mark.parametrize("window", [1, 64])
def test_memory_does_not_grow_with_the_items(fed: Federation, window: int) -> None:
    with Pipeline() as pipeline, ForEach(fed.ops.op.Make(n=1, site="home"), window=window, node_id="loop") as x:
        Yield(fed.ops.op.Use(x=x, site="b"))
    compiled = fed.compile(pipeline, homesite="home")

    def peak(items: int) -> int:
        tracemalloc.start()
        predict(compiled, fed.config, iterations={"loop": items})
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    few = peak(10_000)
    assert peak(40_000) < few * 1.5 + 100_000
