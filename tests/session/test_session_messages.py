"""What a session says about wrong uses of it."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from dfmesh import Federation, JobError, Pipeline, PipelineError, PlaceParam, Session, SessionError, Yield

LIMIT = 60

FILE = """
dfm: 1.0.0
operations:
  o.Hour: {parameters: {hour: {type: integer, minimum: 0, maximum: 23}}}
  o.Fail: {}
  o.Write: {parameters: {array: {}}}
  o.Union: {parameters: {b: {anyOf: [{type: integer}, {type: string}]}}}
sites:
  a:
    interface:
      o.Hour: message_adapters.hour
      o.Fail: message_adapters.fail
      o.Write: message_adapters.write
      o.Union: message_adapters.hour
"""

ADAPTERS = """
def hour(hour=None, b=None):
    return hour

def fail():
    raise ValueError("no")

def write(array):
    array[0] = 1
"""


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Federation:
    directory = tmp_path_factory.mktemp("messages")
    (directory / "o.dfm.yaml").write_text(FILE)
    (directory / "message_adapters.py").write_text(ADAPTERS)
    return Federation.load(directory / "o.dfm.yaml")


@pytest.fixture(scope="module")
def session(federation: Federation) -> Iterator[Session]:
    with federation.session("inproc", measure=False) as session:
        yield session


@pytest.fixture
def hours(federation: Federation) -> Pipeline:
    with Pipeline() as pipeline:
        Yield(federation.ops.o.Hour(hour=PlaceParam("hour")))
    return pipeline


SETS: list[dict[str, Any]] = [*({"hour": hour} for hour in range(20)), {"hours": 3}, {"hour": 99}, {"hour": "x"}]


def test_all_sets_of_a_list_that_do_not_fit_are_named_with_number_and_line(session: Session, hours: Pipeline) -> None:
    with pytest.raises(PipelineError) as raised:
        session.run(hours, SETS)
    error = raised.value
    assert error.summary == "3 of 23 parameter sets do not fit the pipeline"
    assert [fault.message.partition(":")[0] for fault in error.faults] == [
        f"parameter set {number}" for number in (20, 20, 21, 22)
    ]
    assert all(fault.location is not None and fault.location.file == __file__ for fault in error.faults)
    with pytest.raises(PipelineError) as raised:
        session.run(hours, [{"hour": -1}] * 50)
    assert len(raised.value.faults) == 11
    assert "40 more parameter sets" in raised.value.faults[-1].message
    with pytest.raises(PipelineError, match="50 of 5000") as raised:
        session.run(hours, [{"hour": 1}] * 4950 + [{"hour": -1}] * 50)


def test_the_sets_of_an_iterator_before_a_wrong_one_are_done(session: Session, hours: Pipeline) -> None:
    job = session.submit(hours, iter(SETS))
    with pytest.raises(PipelineError, match="parameter set 20: the pipeline has no parameter 'hours'") as raised:
        job.result(LIMIT)
    assert raised.value.faults[0].location is not None
    assert raised.value.faults[0].location.file == __file__
    assert job.partial_result()["yield"] == list(range(20))
    assert job.status == "failed"
    job = session.submit(hours, iter([{"hour": 1}, 3]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="parameter set 1: int is no parameter set"):
        job.result(LIMIT)
    assert job.partial_result()["yield"] == [1]


def test_what_is_no_pipeline(session: Session) -> None:
    for given in ("t.py", None, Path("t.py"), lambda: None):
        for use in (session.run, session.submit, session.prepare, session.discover):
            with pytest.raises(TypeError, match="a Pipeline is expected, not "):
                use(given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Pipeline\.load"):
        session.run("t.py")  # type: ignore[arg-type]


def test_what_is_no_time_no_function_and_no_list(session: Session, hours: Pipeline) -> None:
    job = session.submit(hours, hour=1)
    for wait in (job.wait, job.result, job.progress):
        for timeout in ("x", True, float("nan")):
            with pytest.raises(TypeError, match=r"timeout=.* is no time; give seconds, or None to wait for ever"):
                wait(timeout)  # type: ignore[arg-type]
    assert job.wait(float("inf"))
    assert job.result(numpy.float32(5)).one() == 1  # type: ignore[arg-type]
    for use in (lambda: session.submit(hours, {"hour": 1}, on_result=3), lambda: job.on_result(3)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="on_result=3 cannot be called; give a function that takes a result"):
            use()
    with pytest.raises(TypeError, match=r"default_callback=1 cannot .*; place_callbacks\['p'\]=2 cannot"):
        session.execute(hours, {"hour": 1}, default_callback=1, place_callbacks={"p": 2})  # type: ignore[arg-type, dict-item]
    for sites, says in (("a", "is one text; give a list of names"), (3, "is no list"), ([3], "3 is no name of a site")):
        with pytest.raises(TypeError, match=f"restrict_to_sites.*{says}"):
            session.prepare(hours, restrict_to_sites=sites)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes the federation, what Federation\.load"):
        hours.explain(None)  # type: ignore[type-var]


def test_objectives(session: Session, hours: Pipeline) -> None:
    with pytest.raises(ValueError, match="no objective 'speed'; there are 'time', 'bytes', 'money'"):
        session.prepare(hours, objective="speed")  # type: ignore[arg-type]
    assert session.run(hours, hour=1, objective="money").one() == 1
    assert session.submit(hours, {"hour": 1}, objective="bytes").result(LIMIT).one() == 1
    with pytest.raises(TypeError, match="prepare"):
        session.run(session.prepare(hours), hour=1, objective="money")
    with Pipeline() as named:
        Yield(PlaceParam("objective"))
    with pytest.raises(TypeError, match="in a dictionary"):
        session.run(named, objective="money")
    assert session.run(named, {"objective": 5}).one() == 5


def test_how_often_an_operation_was_called(session: Session, federation: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(federation.ops.o.Fail(retries=1))
    with pytest.raises(JobError, match="ValueError: no") as raised:
        session.run(pipeline)
    assert "it was called 2 times" in str(raised.value)
    with Pipeline() as pipeline:
        Yield(federation.ops.o.Fail())
    with pytest.raises(JobError) as raised:
        session.run(pipeline)
    assert "it was called" not in str(raised.value)


def test_writing_to_an_array_that_others_read(session: Session, federation: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(federation.ops.o.Write(array=numpy.zeros(100_000)))
    with pytest.raises(JobError, match="read-only") as raised:
        session.run(pipeline)
    assert "copy" in str(raised.value)


def test_a_value_that_fits_no_option(session: Session, federation: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(federation.ops.o.Union(b=None))
    with pytest.raises(PipelineError, match="expected integer or string"):
        session.run(pipeline)


def test_a_federation_can_be_copied_and_pickled(federation: Federation) -> None:
    assert copy.deepcopy(federation) is copy.copy(federation) is federation
    assert copy.deepcopy(federation.config).operations.keys() == federation.config.operations.keys()
    again = pickle.loads(pickle.dumps(federation))
    assert again.config.digest == federation.config.digest


def test_what_is_printed_can_be_read(session: Session, federation: Federation, hours: Pipeline) -> None:
    results = session.run(hours, [{"hour": 1}, {"hour": 2}])
    assert str(results) == "results of 2 parameter sets:\n  2 values in 'yield'"
    assert repr(results.sets[0]) == "<Results: 1 value in 'yield'>"
    cells = re.findall(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", results._repr_html_())
    assert cells == ["place", "values", "yield", "2"]
    explanation = federation.explain(hours)
    assert str(explanation) == explanation.to_text().rstrip()
    prediction = federation.predict(hours, {"hour": 1})
    assert str(prediction) == prediction.to_text().rstrip()


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (pandas.Timestamp("2020-01-01"), "value.to_pydatetime()"),
        (pandas.Timedelta("1D"), "value.to_pytimedelta()"),
        (pandas.NaT, "send None in its place"),
        (pandas.NA, "send None in its place"),
        (pandas.DatetimeIndex(["2020-01-01"]), "value.to_series()"),
    ],
)
def test_values_of_pandas_that_cannot_be_sent(session: Session, value: Any, advice: str) -> None:
    with Pipeline() as pipeline:
        Yield(value)
    with pytest.raises(PipelineError, match=re.escape(advice)):
        session.run(pipeline)


def test_a_homesite_that_is_not_there(federation: Federation, hours: Pipeline) -> None:
    said = "has no site 'b' to be the homesite: there is a"
    asked = [
        lambda: federation.compile(hours, homesite="b"),
        lambda: federation.explain(hours, homesite="b"),
        lambda: federation.predict(hours, homesite="b"),
        lambda: hours.explain(federation, homesite="b"),
        lambda: federation.session(homesite="b"),
    ]
    for ask in asked:
        with pytest.raises(SessionError, match=said):
            ask()


def test_one_text_is_no_list_of_sites(federation: Federation, session: Session, hours: Pipeline) -> None:
    for compile_for_sites in (federation.compile, session.prepare):
        with pytest.raises(TypeError, match=r"give a list of names, such as \['a'\]"):
            compile_for_sites(hours, restrict_to_sites="a")  # type: ignore[operator]


def test_results_have_names_not_numbers(session: Session, hours: Pipeline) -> None:
    with pytest.raises(KeyError, match="no place 0: there is yield"):
        session.run(hours, hour=1)[0]  # type: ignore[index]


def test_what_sites_are_chosen_for_may_be_said_wherever_a_pipeline_is_explained(
    federation: Federation, hours: Pipeline
) -> None:
    assert hours.explain(federation, objective="bytes").objective == "bytes"
    assert federation.explain(hours, objective="money").objective == "money"
