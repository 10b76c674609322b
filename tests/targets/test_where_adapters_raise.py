"""A failure names the line in the adapter, and what an exception was raised from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from speaking_federation import line_of, write_federation

import dfmesh
from dfmesh import ForEach, Pipeline, Yield

FIND = "speaking_stations.py:5"


@pytest.fixture(params=["inproc", "local"], scope="module")
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file = write_federation(tmp_path_factory.mktemp("talk"))
    with dfmesh.Federation.load(file).session(request.param, measure=False) as session:
        yield session


@pytest.fixture
def fail(session: Any) -> Callable[[str], dfmesh.JobError]:
    def run(how: str) -> dfmesh.JobError:
        with Pipeline() as p:
            Yield(session.federation.ops.talk.Fail(how=how, site="us"))
        with pytest.raises(dfmesh.JobError) as raised:
            session.run(p)
        return raised.value

    return run


Fail = Callable[[str], dfmesh.JobError]


@pytest.mark.parametrize(
    ("how", "place"),
    [
        ("own", f"speaking.py:{line_of('[99]')}"),
        ("deep", FIND),
        ("library", f"speaking.py:{line_of('json.loads')}"),
    ],
)
def test_the_line_of_the_adapters_own_code_is_named(fail: Fail, how: str, place: str) -> None:
    error = fail(how)
    assert error.errors[0].raised_at == place
    assert f"{error.errors[0].message} [{place}]" in str(error)
    assert str(error).endswith("full traceback: errors[0].traceback of this error")


def test_what_an_exception_was_raised_from_is_told(fail: Fail) -> None:
    text = str(fail("from"))
    place = f"speaking.py:{line_of('no such station')}"
    assert f"RuntimeError: no such station [{place}] (caused by KeyError: 'from' [{FIND}])" in text


def test_what_was_being_handled_is_told(fail: Fail) -> None:
    assert f"(while handling KeyError: 'while' [{FIND}])" in str(fail("while"))


def test_what_is_hidden_is_not_told(fail: Fail) -> None:
    failure = fail("hidden").errors[0]
    assert failure.caused_by == ""
    assert "KeyError" not in str(failure)


def test_of_a_group_the_first_is_told(fail: Fail) -> None:
    assert "(the first of 2 is ValueError: one)" in str(fail("group"))


def test_what_dfmesh_itself_says_has_no_place(fail: Fail) -> None:
    error = fail("unsendable")
    assert error.errors[0].raised_at == ""
    assert "full traceback" not in str(error)


def test_collected_errors_have_the_place(session: Any) -> None:
    with Pipeline() as p:
        with ForEach(["own"], on_error="collect") as how:
            x = session.federation.ops.talk.Fail(how=how, site="us")
        Yield(how.collect(x), place="all")
    error = session.run(p)["all"][0][0]
    assert error.raised_at == f"speaking.py:{line_of('[99]')}"


def test_own_code_is_known_without_paths(tmp_path: Path) -> None:
    """Code that an adapter makes at run time has no file; the last line with one of its own files counts."""
    from dfmesh.config import FederationConfig
    from dfmesh.engine.adapters import OwnCode, describe

    own = OwnCode(FederationConfig.load(write_federation(tmp_path)), "us")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(compile("1 / 0", "<made>", "exec"), {"__name__": "speaking"})
    assert describe(raised.value, own).raised_at == "<made>:1"
