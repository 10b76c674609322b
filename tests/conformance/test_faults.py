"""Whatever an operation does, the job ends, says why, and harms nothing else (Show 5)."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas
import pytest

import dfmesh
from dfmesh import And, Choose, Else, ForEach, If, Pipeline, PlaceParam, Yield

from .conftest import LIMIT, Outcome, Runner

HERE = Path(__file__).name

# Operation and its arguments, what the cause says.
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "raises": ("Fail", {"message": "it rains"}, "ValueError: it rains"),
    "raises something odd": ("FailOddly", {}, "OddError"),
    "exits": ("Exit", {}, "SystemExit"),
    "exits with a text": ("Exit", {"code": "bye"}, "bye"),
    "exits in a coroutine": ("AsyncExit", {}, "SystemExit"),
    "interrupts": ("Interrupt", {}, "KeyboardInterrupt"),
    "unsendable": ("Unsendable", {}, "object"),
    "unsendable function": ("UnsendableFunction", {}, "function"),
    "does not import": ("Broken", {}, "a_package_that_nobody_has"),
    "is not there": ("Missing", {}, "calc_no_such_module"),
    "constructor raises": ("BrokenConstructor", {}, "the constructor broke"),
    "stream breaks": ("FailingStream", {"n": 3}, "the stream broke"),
}


def line() -> int:
    """Give the line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def works(run: Runner, ops: Any) -> None:
    """The next job of the same session uses every site."""
    with Pipeline() as p:
        for site in "abcd":
            Yield(ops.calc.Add(a=1, b=1, site=site), place=site)
        Yield(ops.calc.Where(site="app")["site"], place="app")
    outcome = run.outcome(p)
    assert outcome.errors == []
    assert outcome.results == {**{site: [2] for site in "abcd"}, "app": ["app"]}


def ends_in_time(run: Runner, pipeline: Any, *sets: dict[str, Any]) -> Outcome:
    if run.target != "simulator":
        works_once = run.session  # opened before the clock starts
        assert works_once is not None
    outcome = run.outcome(pipeline, *sets)
    assert outcome.status == "failed"
    return outcome


def assert_names(error: Any, *, site: str, operation: str, at: int, cause: str) -> None:
    assert (error.site, error.operation) == (site, operation)
    assert error.location.endswith(f"{HERE}:{at}")
    assert cause in error.cause
    for part in (site, operation, f"{HERE}:{at}", cause):
        assert part in str(dfmesh.JobError("job", [error]))


@pytest.mark.parametrize("site", ["a", "b"])
@pytest.mark.parametrize("case", list(CASES))
def test_operation_that(case: str, run: Runner, ops: Any, site: str) -> None:
    name, arguments, cause = CASES[case]
    if run.target != "simulator":
        works(run, ops)
    with Pipeline() as p:
        first = ops.calc.Add(a=1, b=1, site=site)
        bad, at = getattr(ops.calc, name)(**arguments, site=site, node_id="bad"), line()
        Yield(ops.calc.Identity(x=bad, site="c"), place="bad")
        Yield([1, bad], place="bad too")
        Yield(first, place="before")
        Yield(ops.calc.Add(a=first, b=1, site=site), place="beside")
        Yield(ops.calc.Add(a=first, b=2, site="d"), place="elsewhere")
    outcome = ends_in_time(run, p)
    assert [str(error.node) for error in outcome.errors] == ["bad"]
    assert_names(outcome.errors[0], site=site, operation=f"calc.{name}", at=at, cause=cause)
    assert outcome.errors[0].frame == (0,)
    assert outcome.results == {"before": [2], "beside": [3], "elsewhere": [4]}
    works(run, ops)


def test_run_raises_the_error(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        bad, at = ops.calc.Fail(message="it rains", site="a"), line()
        Yield(bad, place="bad")
    with pytest.raises(dfmesh.JobError, match=f"{HERE}:{at}.*it rains") as raised:
        run(p)
    assert len(raised.value.errors) == 1
    assert isinstance(raised.value, dfmesh.DfmeshError)


def test_traceback_of_the_site(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Fail(message="it rains", site="a"), place="bad")
    text = run.outcome(p).errors[0].traceback
    assert "calc_operations.py" in text
    assert "it rains" in text


def test_several_failures_are_all_told(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        for site in "abcd":
            Yield(ops.calc.Fail(message=f"of {site}", site=site), place=site)
        Yield(1, place="good")
    outcome = ends_in_time(run, p)
    assert sorted(error.message for error in outcome.errors) == ["of a", "of b", "of c", "of d"]
    assert outcome.results == {"good": [1]}


def test_failure_in_some_frames(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([1, 2, 3, 4], window=2) as item:
            good = ops.calc.FailIf(x=ops.calc.Add(a=item, b=PlaceParam("n"), site="a"), modulus=3, site="b")
            Yield(ops.calc.Add(a=good, b=0, site="c"), place="x")
        Yield(item.collect(good), place="all")
        Yield(item.collect(item), place="items")
    outcome = ends_in_time(run, p, {"n": 0}, {"n": 1}, {"n": 10})
    assert outcome.results == {
        "x": [1, 2, 4, 2, 4, 5, 11, 13, 14],
        "items": [[1, 2, 3, 4]] * 3,
    }
    assert [error.frame for error in outcome.errors] == [(0, 2), (1, 1), (2, 1)]


def test_failure_in_one_parameter_set(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.FailIf(x=PlaceParam("n"), modulus=2, site="a"), place="x")
    outcome = ends_in_time(run, p, *({"n": n} for n in range(6)))
    assert outcome.results == {"x": [1, 3, 5]}
    assert [error.frame for error in outcome.errors] == [(0,), (2,), (4,)]


def test_failing_sequence(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(ops.calc.Fail(message="no list", site="a")) as item:
            x = ops.calc.Add(a=item, b=1, site="b")
            Yield(x, place="never")
            with ForEach([item]) as inner:
                Yield(inner, place="never")
        Yield(item.collect(x), place="all")
        Yield(ops.calc.Add(a=1, b=1, site="b"), place="good")
    outcome = ends_in_time(run, p)
    assert outcome.results == {"good": [2]}
    assert [error.message for error in outcome.errors] == ["no list"]


def test_failing_condition(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        bad = ops.calc.Fail(message="no answer", site="a")
        with If(bad > 3):
            Yield(ops.calc.Add(a=1, b=1, site="b"), place="never")
        Yield(Choose(bad > 3, 1, 2), place="never")
        Yield(1, place="good")
    outcome = ends_in_time(run, p)
    assert outcome.results == {"good": [1]}
    assert [error.message for error in outcome.errors] == ["no answer"]


def test_failing_part_of_a_condition_means_the_same_in_if_and_choose(run: Runner, ops: Any) -> None:
    """A condition one of whose inputs failed has no answer, also where the others would decide it."""
    with Pipeline() as p:
        bad = ops.calc.Fail(message="no answer", site="a")
        condition = And(PlaceParam("on"), bad > 3)
        with If(condition):
            Yield(1, place="if")
        with Else():
            Yield(2, place="else")
        Yield(Choose(condition, 1, 2), place="choose")
    for on in (True, False):
        outcome = ends_in_time(run, p, {"on": on})
        assert outcome.results == {}
        assert [error.message for error in outcome.errors] == ["no answer"]


def test_choose_does_not_mind_a_failure_in_what_it_does_not_choose(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        bad = ops.calc.Fail(message="not wanted", site="a")
        Yield(Choose(PlaceParam("on"), bad, ops.calc.Add(a=1, b=1, site="b")), place="x")
    assert ends_in_time(run, p, {"on": False}).results == {"x": [2]}
    assert ends_in_time(run, p, {"on": True}).results == {}


def test_condition_that_cannot_be_computed(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        text = ops.calc.Concat(parts=["x"], site="a")
        with If(text > 3):
            Yield(1, place="never")
        Yield(1, place="good")
    outcome = ends_in_time(run, p)
    assert outcome.results == {"good": [1]}
    assert len(outcome.errors) == 1
    assert HERE in outcome.errors[0].location
    assert "TypeError" in outcome.errors[0].cause


def test_failing_reduce(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach([4, 3, 5]) as item:
            x = ops.calc.Add(a=item, b=0, site="a")
        Yield(item.reduce(ops.calc.FailIf, x), place="never")  # 4 modulo 3 is well, 4 modulo 5 too
        Yield(item.reduce(ops.calc.FailIf, x, initial=8), place="never too")
        Yield(item.collect(x), place="good")
    outcome = run.outcome(p)
    assert outcome.results == {"good": [[4, 3, 5]], "never": [4]}
    assert len(outcome.errors) == 1
    assert "calc.FailIf" in outcome.errors[0].operation


def test_wrong_type_of_an_argument(run: Runner, ops: Any) -> None:
    """A value that only exists at run time and does not fit is an error of the operation that takes it."""
    with Pipeline() as p:
        text = ops.calc.Concat(parts=["x"], site="a")
        bad, at = ops.calc.Add(a=text, b=1, site="b"), line()
        Yield(bad, place="never")
        Yield(text, place="good")
    outcome = ends_in_time(run, p)
    assert outcome.results == {"good": ["x"]}
    assert_names(outcome.errors[0], site="b", operation="calc.Add", at=at, cause="Error")


@pytest.mark.parametrize("consumer", ["a", "b"], ids=["same site", "other site"])
@pytest.mark.parametrize("operation", ["Unsendable", "UnsendableFunction", "UnsendableKeys"])
def test_value_that_cannot_be_encoded_means_the_same_everywhere(
    run: Runner, ops: Any, consumer: str, operation: str
) -> None:
    """Whether a pipeline works does not depend on where its operations are placed."""
    with Pipeline() as p:
        bad, at = getattr(ops.calc, operation)(site="a"), line()
        Yield(ops.calc.Mix(values=bad, site=consumer), place="never")
        Yield(1, place="good")
    outcome = ends_in_time(run, p)
    assert outcome.results == {"good": [1]}
    assert len(outcome.errors) == 1
    assert_names(outcome.errors[0], site="a", operation=f"calc.{operation}", at=at, cause="ValueEncodingError")


def test_value_that_cannot_be_encoded_is_yielded(run: Runner, ops: Any) -> None:
    with Pipeline() as p:
        bad, at = ops.calc.Unsendable(site="a"), line()
        Yield(bad, place="never")
    outcome = ends_in_time(run, p)
    assert len(outcome.errors) == 1
    assert_names(outcome.errors[0], site="a", operation="calc.Unsendable", at=at, cause="ValueEncodingError")


def test_many_failures(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(list(range(2000)), window=50) as item:
            bad = ops.calc.FailIf(x=item, modulus=1, site="a")
            Yield(ops.calc.Add(a=bad, b=1, site="b"), place="never")
        Yield(1, place="good")
    outcome = ends_in_time(live, p)
    assert outcome.results == {"good": [1]}
    assert [error.frame for error in outcome.errors] == [(0, n) for n in range(2000)]
    assert len(str(dfmesh.JobError("job", outcome.errors))) < 10_000


def test_timeout(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        for place, slow in (("coroutine", ops.calc.Sleep), ("function", ops.calc.Block)):
            Yield(slow(seconds=4, site="a", timeout=0.2, node_id=place), place=place)
        Yield(ops.calc.Sleep(seconds=0.01, site="a", timeout=30), place="good")
    outcome = ends_in_time(live, p)
    assert list(outcome.results) == ["good"]
    assert sorted(str(error.node) for error in outcome.errors) == ["coroutine", "function"]
    assert all("imeout" in error.cause or "0.2" in error.cause for error in outcome.errors)
    works(live, ops)


def test_retries(live: Runner, ops: Any, tmp_path: Path) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Flaky(path=str(tmp_path / "a"), times=2, site="a", retries=2), place="good")
        Yield(ops.calc.Flaky(path=str(tmp_path / "b"), times=2, site="b", retries=1), place="bad")
    outcome = live.outcome(p)
    assert outcome.results == {"good": [3]}
    assert [error.site for error in outcome.errors] == ["b"]


# A process that is killed.


@pytest.mark.parametrize("site", ["a", "d"])
def test_operation_kills_its_site(local: Runner, ops: Any, site: str) -> None:
    works(local, ops)
    with Pipeline() as p:
        bad, at = ops.calc.Kill(site=site, node_id="bad"), line()
        Yield(bad, place="bad")
        Yield(ops.calc.Identity(x=bad, site="c"), place="bad too")
        other = ops.calc.Add(a=1, b=1, site="b")
        Yield(ops.calc.Add(a=other, b=1, site="c"), place="elsewhere")
    outcome = ends_in_time(local, p)
    mine = [error for error in outcome.errors if str(error.node) == "bad"]
    assert len(mine) == 1
    assert_names(mine[0], site=site, operation="calc.Kill", at=at, cause="SIGKILL")
    assert outcome.results == {"elsewhere": [3]}
    works(local, ops)


def test_operation_kills_the_homesite(local: Runner, ops: Any) -> None:
    works(local, ops)
    with Pipeline() as p:
        bad, at = ops.calc.Kill(site="app", node_id="bad"), line()
        Yield(bad, place="bad")
    outcome = ends_in_time(local, p)
    mine = [error for error in outcome.errors if str(error.node) == "bad"]
    assert len(mine) == 1
    assert_names(mine[0], site="app", operation="calc.Kill", at=at, cause="SIGKILL")
    works(local, ops)


def test_site_is_killed_inside_a_loop(local: Runner, ops: Any) -> None:
    """The other iterations end too, with values or with the loss of the site; nothing hangs.

    A loop in which the lost site has a part may end early; but never does that look like a whole one.
    """
    works(local, ops)
    with Pipeline() as p:
        with ForEach(list(range(6)), window=3) as item:
            x = ops.calc.Add(a=item, b=0, site="a")
            with If(item == 2):
                Yield(ops.calc.Kill(site="b"), place="never")
            with ForEach([1, 2]) as inner:
                Yield(ops.calc.Add(a=inner, b=x, site="b"), place="x")
            Yield(ops.calc.Add(a=x, b=0, site="c"), place="well")
        Yield(item.collect(x), place="all")
    outcome = ends_in_time(local, p)
    assert any(error.operation == "calc.Kill" and error.site == "b" for error in outcome.errors)
    assert outcome.results["well"] == list(range(len(outcome.results["well"])))
    assert len(outcome.results["well"]) >= 3
    assert outcome.results.get("all", [list(range(6))]) == [list(range(6))]
    assert {error.site for error in outcome.errors} == {"b"}
    works(local, ops)


def test_site_of_a_loop_is_killed(local: Runner, ops: Any) -> None:
    works(local, ops)
    with Pipeline() as p:
        with ForEach(ops.calc.Numbers(n=4, site="a"), window=1) as item:
            with If(item.index == 1):
                Yield(ops.calc.Kill(site="a"), place="never")
            Yield(ops.calc.Add(a=item, b=0, site="b"), place="x")
        Yield(ops.calc.Add(a=1, b=1, site="c"), place="good")
    outcome = ends_in_time(local, p)
    assert outcome.results["good"] == [2]
    assert any(error.operation == "calc.Kill" for error in outcome.errors)
    works(local, ops)


@pytest.mark.parametrize("victim", ["b", "app"])
def test_idle_site_is_killed_from_outside(local: Runner, ops: Any, victim: str) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Where(site=victim)["pid"], place="pid")
    before = local(p)["pid"][0]
    os.kill(before, signal.SIGKILL)
    works_soon(local, ops)
    assert local(p)["pid"][0] != before


@pytest.mark.parametrize("victim", ["b", "app"])
def test_busy_site_is_killed_from_outside(local: Runner, ops: Any, victim: str, tmp_path: Path) -> None:
    works(local, ops)
    with Pipeline() as p:
        Yield(ops.calc.Where(site=victim)["pid"], place="pid")
        Yield(ops.calc.Gate(path=str(tmp_path / "never"), site="b"), place="never")
        Yield(ops.calc.Add(a=1, b=1, site="c"), place="good")
    job = local.session.submit(p)
    pid = next(item.value for item in job if item.place == "pid")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(dfmesh.JobError, match=victim) as raised:
        job.result(timeout=LIMIT)
    if victim == "b":
        assert "calc.Gate" in str(raised.value)
        assert HERE in str(raised.value)
    works_soon(local, ops)
    (tmp_path / "never").touch()


def test_other_jobs_survive_a_killed_site(local: Runner, ops: Any, tmp_path: Path) -> None:
    works(local, ops)
    gate = tmp_path / "gate"
    with Pipeline() as bystander:
        Yield(ops.calc.Add(a=ops.calc.Gate(path=str(gate), x=1, site="c"), b=1, site="d"), place="x")
    with Pipeline() as killer:
        Yield(ops.calc.Kill(site="a"), place="never")
    job = local.session.submit(bystander)
    ends_in_time(local, killer)
    gate.touch()
    assert job.result(timeout=LIMIT)["x"] == [2]


def works_soon(run: Runner, ops: Any) -> None:
    """A job submitted in the moment of a loss may fail; within a bounded time the session works again."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with contextlib.suppress(dfmesh.DfmeshError, AssertionError):
            works(run, ops)
            return
    works(run, ops)


def test_session_that_cannot_start_says_why(fed: Any) -> None:
    with pytest.raises(dfmesh.DfmeshError, match="nowhere"), fed.session(target="local", homesite="nowhere"):
        pass


def test_unknown_target(fed: Any) -> None:
    with pytest.raises((dfmesh.DfmeshError, ValueError), match="cloud"), fed.session(target="cloud"):
        pass


def test_failure_reaches_iteration(live: Runner, ops: Any, session_of: Callable[[str], Any]) -> None:
    """Who iterates over a job that fails gets what there is, then the error or the end; never a wait without end."""
    with Pipeline() as p:
        Yield(ops.calc.Fail(message="it rains", site="a"), place="bad")
        Yield(ops.calc.Add(a=1, b=1, site="b"), place="good")
    job = live.session.submit(p)
    values = []
    with contextlib.suppress(dfmesh.JobError):
        values += [item.value for item in job]
    assert values == [2]
    assert job.wait(timeout=LIMIT) is True
    with pytest.raises(dfmesh.JobError):
        job.result()


def test_a_part_that_cannot_be_sent_is_an_error_of_its_call(run: Runner, ops: Any) -> None:
    """A part of a value can be of a type that the whole is not made of."""
    frame = pandas.DataFrame({"p": pandas.period_range("2020", periods=2, freq="M")})
    with Pipeline() as p:
        same = ops.calc.Identity(x=PlaceParam("x"), site="a")
        with ForEach([1, 2, 3]) as item:
            Yield(ops.calc.Identity(x=[item, same["p"][0]], site="a"), place="loop")
        Yield(ops.calc.Identity(x=same["p"][0], site="a"), place="alone")
        Yield(ops.calc.Add(a=1, b=2, site="a"), place="other")
    found = run.outcome(p, {"x": frame}, {"x": {"p": [5]}})
    assert {error.kind for error in found.errors} == {"ValueEncodingError"}
    assert {error.operation for error in found.errors} == {"calc.Identity"}
    assert len(found.errors) == 4
    assert found.results == {"loop": [[1, 5], [2, 5], [3, 5]], "alone": [5], "other": [3, 3]}
