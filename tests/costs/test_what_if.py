"""What if a link, a site or an operation were different: the same figures, changed, and the plan for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dfmesh import Federation, ForEach, Pipeline, PipelineError, Yield
from dfmesh.cli.app import app
from dfmesh.compiler.measured import NOTHING_MEASURED, MeasuredCosts
from dfmesh.compiler.measures import LinkMeasure, Mean, OperationMeasure, SendMeasure
from dfmesh.compiler.what_if import what_if

FEDERATION: dict[str, Any] = {
    "dfm": "1.0.0",
    "info": {"homesite": "home"},
    "operations": {
        "op.Read": {"parameters": {"n": {}}},
        "op.Work": {"parameters": {"x": {}}, "required": ["x"]},
    },
    "sites": {
        "home": {"interface": {}},
        "a": {
            "interface": {
                "op.Read": {"adapter": "x.y", "compute_cost": {"fixed_time": 1, "fixed_size": 10_000_000}},
                "op.Work": {"adapter": "x.y", "compute_cost": {"fixed_time": 2, "compute_throughput": 1e7}},
            },
            "capacity": 2,
            "send_cost": {"home": {"fixed_time": 0.5, "bandwidth": 1e6}, "b": {"fixed_time": 0, "bandwidth": 1e6}},
        },
        "b": {
            "interface": {
                "op.Work": {"adapter": "x.y", "compute_cost": {"fixed_time": 0.5, "fixed_size": 1000}},
            },
        },
    },
}


@pytest.fixture
def fed(tmp_path: Path) -> Federation:
    path = tmp_path / "what.dfm.yaml"
    path.write_text(json.dumps(FEDERATION))
    return Federation.load(path)


def read_at_a(fed: Federation) -> Pipeline:
    with Pipeline() as pipeline:
        Yield(fed.ops.op.Read(n=1, site="a", node_id="read"))
    return pipeline


def seconds(fed: Federation, pipeline: Pipeline, **changes: float | str) -> float:
    given = {key.replace("__", "."): value for key, value in changes.items()}
    return fed.predict(pipeline, measure=False, what_if=given).seconds


def test_a_link_that_is_ten_times_as_fast(fed: Federation) -> None:
    pipeline = read_at_a(fed)
    # 1 s to read, 10 s to send; half a second of latency for the value, and as much for the answer at the end.
    before = seconds(fed, pipeline)
    for link in ("a__to__home", "*__to__home", "a__to__*", "*__to__*"):
        assert seconds(fed, pipeline, **{f"{link}__bandwidth": "x10"}) == pytest.approx(before - 9, abs=0.01)
    assert seconds(fed, pipeline, a__to__home__bandwidth=1e7) == pytest.approx(before - 9, abs=0.01)
    assert before - seconds(fed, pipeline, a__to__home__latency=0) == pytest.approx(1, abs=0.01)
    assert seconds(fed, pipeline, home__to__a__bandwidth="x10") == pytest.approx(before, abs=0.01)


def test_the_compiler_chooses_for_what_is_changed(fed: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(fed.ops.op.Work(x=fed.ops.op.Read(n=1, site="a"), node_id="work"))
    before = fed.predict(pipeline, measure=False)
    after = fed.predict(pipeline, measure=False, what_if={"a.to.b.bandwidth": "x100"})
    assert [item.site for item in before.operations if item.statement == "work"] == ["a"]
    assert [item.site for item in after.operations if item.statement == "work"] == ["b"]
    first, moved = after.compared(before)
    assert "instead of" in first
    assert moved == "op.Work work runs at b instead of a"
    assert after.changes == ("a.to.b.bandwidth x100 (1 link)",)


def test_calls_at_a_time(fed: Federation) -> None:
    with Pipeline() as pipeline, ForEach(list(range(8)), node_id="loop") as x:
        fed.ops.op.Work(x=x, site="a")
    each = 2.0
    before = seconds(fed, pipeline)
    assert seconds(fed, pipeline, a__capacity=8) == pytest.approx(before - 3 * each, abs=0.05)
    assert seconds(fed, pipeline, a__capacity="x2") == pytest.approx(before - 2 * each, abs=0.05)
    assert seconds(fed, pipeline, a__op__Work__concurrency=1) == pytest.approx(before + 4 * each, abs=0.05)


def test_more_sites_of_a_kind_take_what_may_run_anywhere(fed: Federation) -> None:
    with Pipeline() as pipeline:
        for number in range(12):
            Yield(fed.ops.op.Read(n=number))
    few = {"op.Read.size": 1000}
    more = fed.predict(pipeline, measure=False, what_if={"a.copies": 3, "a-3.capacity": 1, **few})
    assert len([site for site in more.sites if site.calls and site.site.startswith("a")]) > 1
    assert more.seconds < fed.predict(pipeline, measure=False, what_if=few).seconds - 2
    changed = what_if(
        fed.config,
        MeasuredCosts(links=[LinkMeasure("a", "home", bandwidth=Mean(5.0, 1))]),
        {"b.copies": 1, "a.copies": 1},
    )
    assert changed.config.sites["a"].send_cost["b-2"] == changed.config.sites["a"].send_cost["b"]
    assert changed.measured.bandwidth("a-2", "home") == 5.0
    assert list(fed.config.sites) == ["home", "a", "b"]


def test_times_and_sizes_of_operations(fed: Federation) -> None:
    pipeline = read_at_a(fed)
    before = seconds(fed, pipeline)
    assert seconds(fed, pipeline, op__Read__seconds=3) == pytest.approx(before + 2)
    assert seconds(fed, pipeline, a__op__Read__seconds="x0.5") == pytest.approx(before - 0.5)
    assert seconds(fed, pipeline, op__Read__size="x0.1") == pytest.approx(before - 9)
    assert seconds(fed, pipeline, op__Read__size=1e6) == pytest.approx(before - 9)
    with Pipeline() as pipeline:
        Yield(fed.ops.op.Work(x=fed.ops.op.Read(n=1, site="a"), site="a"))
    # 2 s and 10 MB at 10 MB/s: a factor is for both.
    assert seconds(fed, pipeline, a__op__Work__seconds="x2") == pytest.approx(seconds(fed, pipeline) + 3)


def test_what_was_measured_is_multiplied_before_what_is_declared(fed: Federation) -> None:
    operation = OperationMeasure("op.Read", None, "a", Mean(4.0, 9), Mean(7.0, 1), Mean(100.0, 9), 0, Mean(1.0, 9))
    measured = MeasuredCosts(
        [operation],
        sends=[SendMeasure("p", "%0", "op.Read", "value", Mean(130.0, 9))],
        links=[LinkMeasure("a", "b", bandwidth=Mean(50.0, 1))],
    )
    changes = {"op.Read.seconds": "x0.5", "op.Read.size": "x3", "a.to.b.bandwidth": "x2"}
    changed = what_if(fed.config, measured, changes).measured
    assert changed.seconds("op.Read", None, "a") == 2.0
    assert changed.loading("op.Read", None, "a") == 3.0
    assert changed.spread("op.Read", None, "a") == 0.5
    assert changed.size("op.Read", None, ["a"]) == 300.0
    assert changed.sent("p", "%0", "op.Read", "value") == 390.0
    assert changed.bandwidth("a", "b") == 100.0


def test_changes_that_do_not_fit_are_all_refused_at_once(fed: Federation) -> None:
    changes = {
        "a.capacity": 0,
        "b.capacity": "x2",
        "c.capacity": 2,
        "a.copies": "x2",
        "a.to.c.bandwidth": 1,
        "a.to.b.bandwidth": "x0",
        "a.to.b.latency": "soon",
        "b.op.Read.seconds": 1,
        "op.Reed.seconds": 1,
        "Read.size": -1,
        "a.b": 1,
    }
    with pytest.raises(PipelineError, match="does not fit the federation") as raised:
        what_if(fed.config, NOTHING_MEASURED, changes)
    assert {fault.message.partition("=")[0]: fault.message.partition(": ")[2] for fault in raised.value.faults} == {
        "a.copies": "0 copies are too few",
        "a.capacity": "0 calls at a time are too few",
        "b.capacity": "b has no limit that could be multiplied",
        "c.capacity": "the federation has no site 'c'",
        "a.to.c.bandwidth": "the federation has no site 'c'",
        "a.to.b.bandwidth": "nothing would ever arrive",
        "a.to.b.latency": "this is no figure",
        "b.op.Read.seconds": "site 'b' does not offer 'op.Read'",
        "op.Reed.seconds": "the federation has no operation 'op.Reed'",
        "Read.size": "this is no figure",
        "a.b": "there is no such figure",
    }


def test_on_the_command_line(fed: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFMESH_MEASURE", "0")
    script = tmp_path / "p.py"
    script.write_text(
        "from dfmesh import Pipeline, Yield\n"
        "def build(federation):\n"
        "    with Pipeline() as p:\n"
        "        for site in federation.sites:\n"
        "            if site.startswith('a'):\n"
        "                Yield(federation.ops.op.Read(n=1, site=site))\n"
        "    return p\n"
    )

    def simulate(*more: str, code: int = 0) -> str:
        found = CliRunner().invoke(app, ["simulate", str(fed.config.path), str(script), *more])
        assert found.exit_code == code, found.output
        return found.output

    text = simulate("--what-if", "a.to.home.bandwidth=x10")
    assert "what if: a.to.home.bandwidth x10 (1 link)" in text
    assert "instead of" in text
    data = json.loads(simulate("--what-if", "a.copies=2", "--json"))
    assert [item["site"] for item in data["operations"]] == ["a", "a-2", "a-3"]
    assert len(data["without_changes"]["operations"]) == 1
    drawn = simulate("--what-if", "a.copies=2", "--mermaid")
    assert drawn.startswith("flowchart LR")
    assert "a-3<br/>1 calls" in drawn
    assert "--what-if" in simulate("--what-if", "fast", code=2)
    assert "did you mean" in simulate("--what-if", "hom.capacity=2", code=1)
    assert "one of --json and --mermaid" in simulate("--json", "--mermaid", code=2)
