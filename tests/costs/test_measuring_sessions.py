"""Jobs are measured, and later pipelines are compiled with what they have cost."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from dfmesh import BestOf, Else, Federation, ForEach, If, JobError, Pipeline, TryFromCache, Yield

ADAPTERS = """
import time

def numbers(n):
    return list(range(n))

def slow(x):
    time.sleep(0.03)
    return bytes(5000)

def quick(x):
    return bytes(5000)

def fill(x):
    return [bytes(30_000) for _ in range(200)]

def fail(x):
    raise ValueError(x)
"""


@pytest.fixture
def fed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Federation:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DFMESH_MEASURE", "1")
    (tmp_path / "measured_adapters.py").write_text(dedent(ADAPTERS))
    one = {"parameters": {"x": {}}}
    document: dict[str, Any] = {
        "dfm": "1.0.0",
        "info": {"name": "measured"},
        "operations": {"op.Numbers": {"parameters": {"n": {}}}, "op.Use": one, "op.Fail": one, "op.Fill": one},
        "sites": {
            "home": {"interface": {"op.Numbers": {"adapter": "measured_adapters.numbers"}}},
            "a": {
                "interface": {
                    "op.Use": {"adapter": "measured_adapters.slow"},
                    "op.Fail": {"adapter": "measured_adapters.fail"},
                    "op.Fill": {"adapter": "measured_adapters.fill"},
                }
            },
            "b": {"interface": {"op.Use": {"adapter": "measured_adapters.quick"}}},
        },
    }
    path = tmp_path / "measured.dfm.yaml"
    path.write_text(json.dumps(document))
    return Federation.load(path)


def at(fed: Federation, site: Any, count: int = 5) -> Pipeline:
    with Pipeline(name="p") as pipeline:
        with ForEach(fed.ops.op.Numbers(n=count), window=1, node_id="loop") as x:
            used = fed.ops.op.Use(x=x, site=site, node_id="use")
        Yield(x.collect(used))
    return pipeline


def run(fed: Federation, pipeline: Pipeline, **options: Any) -> None:
    with fed.session("inproc", **options) as session:
        session.run(pipeline)


def test_later_pipelines_go_where_it_was_faster(fed: Federation) -> None:
    anywhere = at(fed, BestOf(["a", "b"]))
    with fed.session("inproc") as session:
        assert session.prepare(anywhere).node("use") == "a"
        session.run(at(fed, "a"))
        session.run(at(fed, "b"))
        assert session.prepare(anywhere).node("use") == "b"
    assert fed.compile(anywhere).node("use") == "b"
    assert fed.compile(anywhere, measure=False).node("use") == "a"


def test_times_sizes_and_iterations_are_kept(fed: Federation) -> None:
    run(fed, at(fed, "a"))
    costs = fed.costs.costs()
    record = costs.operations["op.Use", None, "a"]
    assert record.seconds.count == 4  # The first call may have loaded something.
    assert 0.03 <= record.seconds.value < 0.3
    assert record.variance.count == 4
    assert 0 < record.variance.value < 0.1
    assert record.first.count == 1
    assert record.size.value == pytest.approx(5000, rel=0.01)
    assert costs.counted("p", "loop", "ForEach") == 5.0
    assert costs.sent("p", "use", "op.Use", "value") == pytest.approx(5000, rel=0.02)


def test_the_import_of_an_adapter_is_no_part_of_what_its_only_call_costs(fed: Federation, tmp_path: Path) -> None:
    module = tmp_path / "measured_adapters.py"
    module.write_text("import time as heavy\nheavy.sleep(0.5)\n" + module.read_text())
    with fed.session("local") as session:
        with Pipeline() as pipeline:
            Yield(fed.ops.op.Use(x=1, site="b"))
        session.run(pipeline)
    record = fed.costs.costs().operations["op.Use", None, "b"]
    assert record.usual.value < 0.4 < record.loading


def test_a_second_job_of_a_session_finds_everything_loaded(fed: Federation) -> None:
    with fed.session("inproc") as session:
        session.run(at(fed, "b"))
        session.run(at(fed, "b"))
    record = fed.costs.costs().operations["op.Use", None, "b"]
    assert record.seconds.count == 4 + 5
    assert record.first.count == 1


def test_shares_of_conditions_and_look_ups_are_kept(fed: Federation) -> None:
    with Pipeline(name="p") as pipeline, ForEach(fed.ops.op.Numbers(n=4), window=1) as x:
        with If(x < 3, node_id="if"):
            Yield(x)
        with Else():
            Yield(0)
        with TryFromCache(key="the same", site="b", node_id="cache") as cache:
            cache.cache(fed.ops.op.Use(x=1, site="b"))
        Yield(cache)
    run(fed, pipeline)
    costs = fed.costs.costs()
    assert {name: item.counted.value for (_, name, _), item in costs.statements.items() if name in ("if", "cache")} == {
        "if": 0.75,
        "cache": 0.75,
    }


def test_failed_jobs_teach_nothing(fed: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(fed.ops.op.Fail(x=1))
    with fed.session("inproc") as session, pytest.raises(JobError):
        session.run(pipeline)
    assert not fed.costs.costs()


def test_measuring_can_be_switched_off(fed: Federation, monkeypatch: pytest.MonkeyPatch) -> None:
    run(fed, at(fed, "a"), measure=False)
    assert not fed.costs.path.exists()
    monkeypatch.setenv("DFMESH_MEASURE", "0")
    run(fed, at(fed, "a"))
    assert not fed.costs.path.exists()
    run(fed, at(fed, "a"), measure=True)
    assert fed.costs.costs()


def test_a_run_makes_a_prediction_without_assumptions(fed: Federation) -> None:
    pipeline = at(fed, "a")
    before = fed.predict(pipeline)
    assert [text.partition(" (")[0] for text in before.assumptions] == ["ForEach loop"]
    run(fed, pipeline)
    after = fed.predict(pipeline)
    assert after.assumptions == ()
    assert {item.operation: item.calls for item in after.operations} == {"op.Use": 5, "op.Numbers": 1}
    assert 0.15 <= after.seconds < 1.5
    assert str(after.bottleneck) == "op.Use use at a"


def test_a_link_that_has_more_to_take_than_it_can_shows_its_speed(fed: Federation) -> None:
    with Pipeline() as pipeline, ForEach(list(range(10))) as x:
        Yield(fed.ops.op.Fill(x=x, site="a"))
    with fed.session("local", homesite="home") as session:
        session.run(pipeline)
    assert 1e5 < fed.costs.costs().bandwidth("a", "home") < 1e11
