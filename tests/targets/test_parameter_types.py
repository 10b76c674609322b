"""A site checks every argument of every call against its own declaration, before the adapter sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dfmesh
from dfmesh import ForEach, Pipeline, PipelineError, PlaceParam, Yield

FILE = """
dfm: 1.0.0
operations:
  o.Add: {parameters: {a: {type: number}, b: {type: number}}}
  o.Hour: {parameters: {hour: {type: integer, minimum: 0, maximum: 23}, note: {type: string}}, required: [hour]}
  o.Rows: {parameters: {table: {type: pyarrow.Table}}}
  o.Level: {parameters: {x: {}}}
  o.List: {parameters: {n: {}}}
sites:
  a:
    interface: &all
      o.Add: checked_adapters.add
      o.Hour: checked_adapters.hour
      o.Rows: checked_adapters.rows
      o.List: checked_adapters.listed
      o.Level:
        adapter: checked_adapters.level
        args: {x: x, level: {const: 1, expose-as: {param: level, type: integer}}}
  apart:
    interface:
      o.Hour: {adapter: checked_adapters.hour, isolation: process}
"""
ADAPTERS = """
def add(a, b): return a + b
def hour(hour, note="none"): return hour, note
def rows(table): return len(table)
def level(x, level): return level
def listed(n): return [n] * 2
"""


@pytest.fixture(scope="module", params=["inproc", "local"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("checked")
    (folder / "o.dfm.yaml").write_text(FILE)
    (folder / "checked_adapters.py").write_text(ADAPTERS)
    with dfmesh.Federation.load(folder / "o.dfm.yaml").session(request.param, homesite="a") as opened:
        yield opened


@pytest.fixture
def run(session: Any) -> Callable[..., Any]:
    def run(make: Callable[[Any], Any], **given: Any) -> Any:
        with Pipeline() as pipeline:
            Yield(make(session.federation.ops.o))
        return session.run(pipeline, **given)["yield"]

    return run


COMPUTED = [
    (lambda o: o.Hour(hour=o.Add(a=20, b=20), site="a"), "hour is 40, above the maximum 23"),
    (lambda o: o.Hour(hour=o.Add(a=20, b=20), site="apart"), "hour is 40, above the maximum 23"),
    (lambda o: o.Hour(hour=o.Add(a=20, b=20), site="a", timeout=60), "hour is 40, above the maximum 23"),
    (lambda o: o.Hour(hour=1, note=o.Add(a=1, b=1), site="a"), "note is 2 \\(int\\), expected string"),
    (lambda o: o.Rows(table=o.List(n=1)), "table is \\[1, 1\\] \\(list\\), expected pyarrow.Table"),
    (lambda o: o.Level(x=1, level=o.List(n="x")[0]), "level is 'x' \\(str\\), expected integer"),
]


@pytest.mark.parametrize(("make", "reason"), COMPUTED)
def test_what_was_computed_is_checked(run: Any, make: Any, reason: str) -> None:
    with pytest.raises(
        dfmesh.JobError, match=rf"test_parameter_types.py:\d+: o\.\w+ .*: AdapterArgumentError: {reason}"
    ):
        run(make)


def test_only_the_call_that_does_not_fit_fails(session: Any) -> None:
    o = session.federation.ops.o
    with Pipeline() as pipeline, ForEach([1, 22]) as start:
        Yield(o.Hour(hour=o.Add(a=start, b=2), site="a"))
    job = session.submit(pipeline)
    with pytest.raises(dfmesh.JobError, match="hour is 24"):
        job.result()
    assert job.partial_result()["yield"] == [(3, "none")]


def test_what_fits_arrives(run: Any) -> None:
    assert run(lambda o: o.Hour(hour=o.Add(a=1.0, b=2.0), note=o.List(n=None)[0], site="a")) == [(3.0, None)]
    assert run(lambda o: o.Level(x=1)) == [1]
    assert run(lambda o: o.Level(x=1, level=o.Add(a=1, b=1))) == [2]


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ([22, 25, "noon"], r"hour is 25, above the maximum 23 \(element 1 of the loop\)"),
        (range(20, 30), r"hour is 24, above the maximum 23 \(element 4 of the loop\)"),
        (PlaceParam("hours", default=["noon"]), r"\(element 0 of the default of parameter 'hours' of the loop\)"),
    ],
)
def test_what_a_loop_iterates_is_checked_before_the_run(session: Any, sequence: Any, reason: str) -> None:
    with Pipeline() as pipeline, ForEach(sequence) as hour:
        Yield(session.federation.ops.o.Hour(hour=hour))
    with pytest.raises(PipelineError, match=reason):
        session.prepare(pipeline)


def test_what_only_one_site_exposes_is_checked_before_the_run(session: Any) -> None:
    with Pipeline() as pipeline:
        Yield(session.federation.ops.o.Level(x=1, level="x"))
    with pytest.raises(PipelineError, match="level is 'x'"):
        session.prepare(pipeline)
