"""The validator: every fault, all at once, each with the user's line and a way out."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_cases import CASES, FEDERATION, FILE, SECTIONS, Case, error_of, write

from dfmesh import BestOf, FederationConfig, ForEach, Pipeline, PipelineError, PlaceParam, Yield
from dfmesh.api import Advise, NodeRef
from dfmesh.compiler import compile_pipeline, validate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> FederationConfig:
    path = tmp_path_factory.mktemp("federation") / "weather.dfm.yaml"
    path.write_text(json.dumps(FEDERATION))
    return FederationConfig.load(path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_fault(case: Case, weather: FederationConfig) -> None:
    faults = error_of(case, weather).faults
    found = [(fault.location.line if fault.location else 0, fault.message) for fault in faults]
    located = [fault.location.file for fault in faults if fault.location is not None]
    for line, message in case.expected:
        lines = [at if at else 0 for at, text in found if message in text]
        assert line in lines or (line == 0 and lines), (line, message, found)
    assert len(found) == len(case.expected), found
    assert set(located) <= {FILE, __file__, str(Path(__file__).with_name("fault_cases.py"))}
    for fault in faults:
        assert fault.hint or "cannot be sent" in fault.message, fault  # the codec says what to do


def test_all_faults_are_found_at_once(weather: FederationConfig) -> None:
    cases = [case for case in CASES if case.parameters is None and case.code != "pass" and not case.before]
    single = {case.title: len(error_of(case, weather).faults) for case in cases}
    # Ids of their own for each case, since numbers would go on.
    codes = [
        re.sub(r'node_id="(\w+)"|NodeRef\("(\w+)"\)', _renamed(number), case.code) for number, case in enumerate(cases)
    ]
    with pytest.raises(PipelineError) as raised:
        validate(write("\n".join(codes), weather), weather)
    assert len(raised.value.faults) >= sum(single.values())
    assert f"the pipeline has {len(raised.value.faults)} faults" in str(raised.value)


def _renamed(number: int) -> Callable[[re.Match[str]], str]:
    def rename(match: re.Match[str]) -> str:
        own, other = match.groups()
        return f'node_id="{own}{number}"' if own else f'NodeRef("{other}{number}")'

    return rename


def test_the_page_shows_the_real_messages(weather: FederationConfig) -> None:
    page = _page(weather)
    if os.environ.get("DFMESH_REGENERATE"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "run this test with DFMESH_REGENERATE=1 to rewrite docs/faults.md"


def _page(config: FederationConfig) -> str:
    lines = [
        "# What can be wrong with a pipeline",
        "",
        "<!-- Written by tests/compiler/test_compiler_faults.py with DFMESH_REGENERATE=1; do not edit. -->",
        "",
        "A pipeline is checked before anything runs. All faults are reported at once, each with your file and line and",
        "a way out. `PipelineError.faults` has them as data: `message`, `location`, `hint`.",
        "",
        "The lines below stand inside `with Pipeline() as p:` in a file `pipeline.py`, counted from 1. In the",
        "federation, `us` and `ca` offer `weather.Read(hour)`, `weather.Bin(reports, step)` and",
        "`weather.Merge(left, right)`; `app` offers `weather.Render(grid, colours)`, and its provider `gpu`",
        "`weather.Forecast(grid)`.",
    ]
    for section, cases in SECTIONS.items():
        lines += ["", f"## {section}"]
        for case in cases:
            lines += ["", f"### {case.title}", ""]
            if case.before:
                lines += ["After another pipeline, in a file `earlier.py`:", "", "```python", case.before, "```", ""]
            lines += ["```python", case.code, "```", ""]
            if case.parameters is not None:
                given = ", ".join(f"{name}={_shown(value)}" for name, value in case.parameters.items())
                lines += [f"Run with `session.run(p, {given})`:", ""]
            lines += ["```text", _message(error_of(case, config)), "```"]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return value.__name__ if callable(value) else repr(value)


def _message(error: PipelineError) -> str:
    text = str(error).replace(str(Path(__file__).with_name("fault_cases.py")), FILE)
    text = re.sub(r"( at)? 0x[0-9a-f]+", "", text)
    return re.sub(rf"{re.escape(FILE)}:(\d+): the pipeline is empty", f"{FILE}:1: the pipeline is empty", text)


# More than the page shows


def test_faults_without_a_line_have_the_id(weather: FederationConfig) -> None:
    node = {"tag": "@dfm-node", "ident": "reports"}
    body = [{"dfm_class_name": "weather.Reed", "dfm_node_id": node}]
    with pytest.raises(PipelineError) as raised:
        validate(Pipeline.load(json.dumps({"dfm_body": body})), weather)
    assert str(raised.value.faults[0]).startswith("reports: the federation has no operation 'weather.Reed'")
    body.append(
        {"dfm_class_name": "dfmesh.Yield", "dfm_node_id": {"tag": "@dfm-node", "ident": 1}, "value": {"id": node}}
    )
    with pytest.raises(PipelineError) as raised:
        validate(Pipeline.load(json.dumps({"dfm_body": body[::-1]})), weather)
    assert "Yield uses weather.Reed (id reports), which stands behind it" in str(raised.value)


def test_advise_is_for_discovery(weather: FederationConfig) -> None:
    with Pipeline() as pipeline:
        weather.ops.weather.Read(hour=Advise())
        weather.ops.weather.Read(hour=3, site=Advise())
        Yield([1, {"k": Advise()}])
    with pytest.raises(PipelineError) as raised:
        validate(pipeline, weather)
    assert len(raised.value.faults) == 3
    assert all("Advise()" in fault.message and fault.hint for fault in raised.value.faults)


def test_statements_of_one_branch_are_not_seen_in_the_other(weather: FederationConfig) -> None:
    code = """
with If(PlaceParam("x")):
    first = ops.weather.Read(hour=1)
    with If(PlaceParam("y")):
        inner = ops.weather.Read(hour=1)
    Yield(inner)
with Else():
    Yield(first)
"""
    with pytest.raises(PipelineError) as raised:
        validate(write(code, weather), weather)
    assert [fault.location.line for fault in raised.value.faults] == [6, 8]


def test_what_is_allowed(weather: FederationConfig) -> None:
    code = """
hours = ops.weather.Read(hour=3)
with ForEach(hours, window=3) as hour:
    reports = ops.weather.Read(hour=hour["n"], site=BestOf(["us", "app"]), retries=2, timeout=1.5)
    with If((hour > 1) & (hour.index < 3) | PlaceParam("all", default=False)):
        grid = ops.weather.Bin(reports=reports, step=1, after=[hours, reports])
    with ForEach(reports) as report:
        Yield([hour, report, report.index], place="class")
    Yield(Choose(hour > 1, grid, None))
grids = hour.collect(grid)
total = hour.reduce(ops.weather.Merge, reports, initial=hours, site="us")
ops.weather.Read(hour=3.0, after=hour, node_id="ü 1-2")
ops.weather.Bin(reports=grids, least=3)
ops.weather.Bin(total, most=3, site="ca")
ops.weather.Forecast(grid=None, provider="gpu")
with TryFromCache([total, "x"], ttl=3) as cached:
    with If(True):
        Yield(total)
    cached.cache(total)
Yield(PlaceParam("all", default=False))
Yield(cached)
"""
    assert {fault.severity for fault in validate(write(code, weather), weather)} == {"warning"}


def _loop(number: int, *body: Any) -> dict[str, Any]:
    return {"dfm_class_name": "dfmesh.ForEach", "dfm_node_id": _id(number), "seq": [1], "dfm_body": list(body)}


def _id(number: int) -> dict[str, Any]:
    return {"tag": "@dfm-node", "ident": number}


def test_gathering_in_a_strange_place(weather: FederationConfig) -> None:
    """A document may have it anywhere; the language cannot."""
    gather = {"dfm_class_name": "dfmesh.Collect", "dfm_node_id": _id(1), "loop": _id(0), "value": 1}
    branch = {"dfm_class_name": "dfmesh.If", "dfm_node_id": _id(2), "cond": True, "dfm_body": [gather]}
    for body in ([_loop(0, gather)], [_loop(0), branch], [_loop(2, _loop(0)), _loop(3, gather)]):
        with pytest.raises(PipelineError, match="does not stand in the block of its loop"):
            validate(Pipeline.load(json.dumps({"dfm_body": body})), weather)


def test_restricting_to_sites(weather: FederationConfig) -> None:
    with Pipeline() as pipeline:
        Yield(weather.ops.weather.Read(hour=3))
    assert compile_pipeline(pipeline, weather, "app", restrict_to_sites=["ca"]).node(0) == "ca"
    with pytest.raises(PipelineError, match="no site 'cuba'"):
        compile_pipeline(pipeline, weather, "app", restrict_to_sites=["cuba"])
    with pytest.raises(PipelineError, match=r"weather\.Read is not offered"):
        compile_pipeline(pipeline, weather, "app", restrict_to_sites=[])


def test_parameter_sets_are_filled_in(weather: FederationConfig) -> None:
    with Pipeline() as pipeline:
        with ForEach(PlaceParam("hours", default=[1])) as hour:
            weather.ops.weather.Read(hour=hour)
        Yield([PlaceParam("x", default=None), PlaceParam("y")["k"]])
        weather.ops.weather.Read(hour=PlaceParam("odd")["k"], site=BestOf())
    compiled = compile_pipeline(pipeline, weather, "app")
    assert compiled.parameter_set({"y": 1, "odd": "text"}) == {"hours": [1], "x": None, "y": 1, "odd": "text"}


def test_a_reference_to_a_statement_of_another_pipeline(weather: FederationConfig) -> None:
    with Pipeline():
        foreign = weather.ops.weather.Read(hour=3, node_id="foreign")
    with Pipeline() as pipeline:
        Yield(foreign)
        Yield(NodeRef("foreign"))
    with pytest.raises(PipelineError) as raised:
        validate(pipeline, weather)
    assert len(raised.value.faults) == 2


def test_a_line_that_a_python_loop_runs_is_wrong_once(weather: FederationConfig) -> None:
    ops: Any = weather.ops
    with Pipeline() as pipeline:
        for hour in range(3):
            Yield(ops.weather.Read(hours=hour, folder=3))
    with pytest.raises(PipelineError) as raised:
        validate(pipeline, weather)
    faults = raised.value.faults
    assert len(set(faults)) == len(faults)
    assert raised.value.summary == f"the pipeline has {len(faults)} fault{'s' * (len(faults) != 1)}"


def test_a_parameter_that_a_python_loop_takes_is_wrong_once(weather: FederationConfig) -> None:
    ops: Any = weather.ops
    with Pipeline() as pipeline:
        for _ in range(3):
            Yield(ops.weather.Read(hour=PlaceParam("hour")))
    with pytest.raises(PipelineError) as raised:
        compile_pipeline(pipeline, weather, "app").parameter_set({"hour": "noon"})
    assert len(raised.value.faults) == 1


def test_a_missing_parameter_is_asked_for_as_the_user_gives_it(weather: FederationConfig) -> None:
    with Pipeline() as pipeline:
        Yield(PlaceParam("above"), place="x")
    with pytest.raises(PipelineError, match=r"give --param above=\.\.\."):
        compile_pipeline(pipeline, weather, "app").parameter_set({}, spelling="--param {}=...")


def test_a_loop_in_a_block_that_may_be_left_out_may_have_none_for_its_parameter(weather: FederationConfig) -> None:
    code = """
days = PlaceParam("days", default=None)
with If(days != None):
    with ForEach(days) as day:
        Yield(day)
"""
    pipeline = write(code, weather)
    assert validate(pipeline, weather) == []
    compiled = compile_pipeline(pipeline, weather, "app")
    assert compiled.parameter_set({}) == compiled.parameter_set({"days": None}) == {"days": None}
    with pytest.raises(PipelineError, match="4: the parameter 'days' is 'Monday'"):
        compiled.parameter_set({"days": "Monday"})


def test_a_document_in_which_a_statement_names_itself(weather: FederationConfig) -> None:
    read = {"dfm_class_name": "weather.Read", "dfm_node_id": _id(1), "hour": {"id": _id(1)}, "dfm_after": _id(1)}
    with pytest.raises(PipelineError) as raised:
        validate(Pipeline.load(json.dumps({"dfm_body": [read]})), weather)
    uses, after = (fault.message for fault in raised.value.faults)
    assert uses == "weather.Read uses weather.Read (id %1), which is itself"
    assert after == "weather.Read comes after weather.Read (id %1), which is itself"


@pytest.mark.parametrize(("written_for", "warns"), [("1.0.0", True), ("2.0.0", False), ("", False)])
def test_a_pipeline_for_another_version(weather: FederationConfig, written_for: str, warns: bool) -> None:
    with Pipeline(api_version=written_for) as pipeline:
        Yield(1)
    assert validate(pipeline, weather) == []
    found = validate(pipeline, dataclasses.replace(weather, info={"api-version": "2.0.0"}))
    assert [str(warning).partition(": ")[2] for warning in found] == [
        "the pipeline was written for version 1.0.0 of the federation, which is now 2.0.0 "
        "(see what has changed, and give it the new api_version)"
    ] * warns


LATE = [
    "hour.collect([hour, both])",
    "hour.collect(hour.collect(hour))",
    "hour.reduce(ops.weather.Merge, merged)",
    "hour.collect(ops.weather.Read(hour=3, after=hour))",
    "hour.collect(after)",
    "hour.collect(cached)",
    "hour.collect(chosen)",
    "hour.collect(otherwise)",
]


@pytest.mark.parametrize("code", LATE)
def test_a_loop_does_not_gather_what_comes_when_it_has_ended(weather: FederationConfig, code: str) -> None:
    lines = f"""
first = ops.weather.Read(hour=3)
with ForEach([1, 2]) as hour:
    reports = ops.weather.Read(hour=hour)
both = hour.collect(reports)
apart = ops.weather.Read(hour=4)
merged = ops.weather.Merge(left=both, right=1)
after = ops.weather.Read(hour=5, after=merged)
with TryFromCache("key") as cached:
    cached.cache(merged)
chosen = Choose(both, 1, 2)
with If(both):
    Yield(1)
with Else():
    otherwise = ops.weather.Read(hour=6)
    Yield(otherwise)
Yield(hour.collect([hour, reports, first, apart]))
Yield(hour.reduce(ops.weather.Merge, reports, initial=both))
{code}
"""
    with pytest.raises(PipelineError) as raised:
        validate(write(lines, weather), weather)
    (fault,) = raised.value.faults
    assert "which is there only when its loop has ended" in fault.message
    assert fault.location is not None
    assert fault.location.line == lines.count("\n")
