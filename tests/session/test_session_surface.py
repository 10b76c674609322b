"""What users call, and how: spellings of parameters, results by set, coroutines, progress, help."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import (
    ConfigError,
    DfmeshError,
    Federation,
    ForEach,
    If,
    Job,
    JobError,
    Pipeline,
    PlaceParam,
    Session,
    SessionError,
    Yield,
)
from dfmesh.engine.message_parts import OperationReport, SiteReport
from dfmesh.session.job_inbox import JobStatus
from dfmesh.session.job_progress import JobProgress

FILE = Path(__file__).with_name("session.dfm.yaml")
LIMIT = 20.0


@pytest.fixture(scope="module")
def federation() -> Federation:
    return Federation.load(FILE)


@pytest.fixture(scope="module")
def session(federation: Federation) -> Iterator[Session]:
    with federation.session(target="inproc") as opened:
        yield opened


@pytest.fixture
def adding(federation: Federation) -> Pipeline:
    with Pipeline() as p:
        Yield(federation.ops.odd.Add(a=PlaceParam("x"), b=PlaceParam("y", default=1)), place="sum")
    return p


# Parameters


def test_both_spellings_in_both_methods(session: Session, adding: Pipeline) -> None:
    for run in (session.run, lambda *given, **more: session.submit(*given, **more).result(LIMIT)):
        assert run(adding, x=1)["sum"] == [2]
        assert run(adding, {"x": 1})["sum"] == [2]
        assert run(adding, {"x": 1}, y=5)["sum"] == [6]
        assert run(adding, [{"x": 1}, {"x": 2}])["sum"] == [2, 3]
        assert run(adding, iter([{"x": 1}, {"x": 2}]))["sum"] == [2, 3]


def test_parameters_may_be_called_as_arguments_of_the_methods(session: Session) -> None:
    names = ("pipeline", "parameters", "close", "self")
    with Pipeline() as p:
        Yield([PlaceParam(name) for name in names])
    given = dict(zip(names, range(4), strict=True))
    assert session.run(p, given).one() == [0, 1, 2, 3]
    assert session.submit(p, given).result(LIMIT).one() == [0, 1, 2, 3]
    assert session.run(p, {"self": 3}, pipeline=0, parameters=1, close=2).one() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("given", "more", "message"),
    [
        (3, {}, "int is no parameter set"),
        ("ab", {}, "str is no parameter set"),
        (["ab"], {}, "str is no parameter set"),
        ([{}, None], {}, "parameter set 1: NoneType is no parameter set"),
        ({1: 2}, {}, "names of parameters are text, not 1"),
        ([{"x": 1}], {"y": 2}, "go with one set"),
        ({"x": 1}, {"x": 2}, "'x' is given twice"),
    ],
)
def test_anything_else_is_a_type_error(session: Session, adding: Pipeline, given: Any, more: Any, message: str) -> None:
    for run in (session.run, session.submit):
        with pytest.raises(TypeError, match=message):
            run(adding, given, **more)


def test_a_set_of_an_iterator_that_is_none_is_a_type_error_of_the_job(session: Session, adding: Pipeline) -> None:
    job = session.submit(adding, iter([{"x": 1}, 3]))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="int is no parameter set"):
        job.result(LIMIT)


def test_execute_knows_its_options(session: Session, adding: Pipeline) -> None:
    with pytest.raises(TypeError, match="place_callback"):
        session.execute(adding, {"x": 1}, place_callback={})  # type: ignore[call-arg]
    assert session.execute(adding, {"x": 1}, debug=True, options={}).wait_until_finished(LIMIT)


def test_execute_takes_further_parameters_until_they_are_stopped(session: Session, adding: Pipeline) -> None:
    job = session.execute(adding, {"x": 1}, autostop=False)
    job.send_input_params([{"x": 2}, {"x": 3}])
    assert not job.wait_until_finished(0)
    assert job.get_status() in (JobStatus.STARTING, JobStatus.RUNNING)
    job.send_stop_frame()
    assert job.wait_until_finished(LIMIT)
    assert job.result()["sum"] == [2, 3, 4]
    assert job.job_id == job.id


# Results


def test_results_of_each_set(session: Session, federation: Federation) -> None:
    with Pipeline() as p:
        with ForEach(PlaceParam("xs")) as x:
            Yield(federation.ops.odd.Add(a=x, b=1), place="each")
        with If(PlaceParam("more")):
            Yield("more", place="more")
    given = [{"xs": [1, 2], "more": True}, {"xs": [], "more": False}, {"xs": [5], "more": False}]
    results = session.run(p, given)
    assert results["each"] == [2, 3, 6]
    assert [dict(own) for own in results.sets] == [
        {"each": [2, 3], "more": ["more"]},
        {"each": [], "more": []},
        {"each": [6], "more": []},
    ]
    assert results.sets[2].items_of("each")[0].frame == (2, 0)
    assert [dict(own) for own in results.sets[2].sets] == [{"each": [6], "more": []}]
    with pytest.raises(DfmeshError, match=r"results\.sets\[k\]\.one\('each'\)"):
        results.one("each")


def test_sets_of_an_iterator_and_of_what_is_sent(session: Session, adding: Pipeline) -> None:
    assert len(session.submit(adding, ({"x": n} for n in range(5))).result(LIMIT).sets) == 5
    job = session.submit(adding, close=False)
    assert [job.send(x=1), job.send({"x": 2}), job.send({"x": 3}, y=4)] == [0, 1, 2]
    job.close()
    assert [own.one("sum") for own in job.result(LIMIT).sets] == [2, 3, 7]
    with pytest.raises(SessionError, match="takes no more"):
        job.send(x=1)


def test_a_place_that_is_not_there(session: Session, adding: Pipeline, federation: Federation) -> None:
    job = session.submit(adding, x=1)
    for ask in (job.results, job.result(LIMIT).__getitem__):
        with pytest.raises(KeyError, match="did you mean 'sum'"):
            ask("sun")
    with Pipeline() as p:
        federation.ops.odd.Add(a=1, b=2)
    for ask in (session.submit(p).results, session.run(p).__getitem__):
        with pytest.raises(KeyError, match="has no Yield"):
            ask("yield")


# Coroutines


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_async_with(federation: Federation, adding: Pipeline, target: str) -> None:
    async def main() -> None:
        async with federation.session(target) as session:
            results = await session.submit(adding, x=1)
            assert results.one("sum") == 2
            assert [item.value async for item in session.submit(adding, [{"x": 1}, {"x": 2}]).results()] == [2, 3]
            kept = session.submit(adding, x=1, keep_results=False)
            assert (await kept)["sum"] == [2]
            with pytest.raises(JobError):
                await session.submit(failing)
        with pytest.raises(SessionError, match="closed"):
            session.submit(adding, x=1)

    with Pipeline() as failing:
        Yield(federation.ops.odd.Misbehave(how="surrogate"))
    asyncio.run(main())


def test_an_exception_inside_async_with_closes_the_session(federation: Federation) -> None:
    async def main() -> Session:
        with pytest.raises(ValueError, match="mine"):
            async with federation.session("inproc") as session:
                raise ValueError("mine")
        return session

    assert "closed" in repr(asyncio.run(main()))


def test_a_task_that_is_cancelled_while_the_sites_start(federation: Federation) -> None:
    async def main() -> Session:
        session = federation.session("local")

        async def enter() -> None:
            async with session:
                await asyncio.sleep(LIMIT)

        task = asyncio.create_task(enter())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return session

    assert "closed" in repr(asyncio.run(main()))


# Sessions


def test_several_threads_may_connect_at_once(federation: Federation, adding: Pipeline) -> None:
    session = federation.session("inproc")
    found: list[Any] = []

    def connect() -> None:
        try:
            found.append(session.connect().run(adding, x=1).one("sum"))
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    session.close()
    assert found == [2] * 8


def test_a_wrong_homesite_and_a_missing_file_say_where_and_what(
    federation: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SessionError, match=r"session\.dfm\.yaml has no site 'nort' .*did you mean 'north'"):
        federation.session(homesite="nort")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=f"cannot read none.dfm.yaml in {tmp_path}"):
        Federation.load("none.dfm.yaml")


def test_progress_can_be_read() -> None:
    def operation(name: str, **counts: Any) -> OperationReport:
        return OperationReport("%1", name, "p.py:1", *(counts.get(key, 0) for key in KEYS))

    KEYS = ("waiting", "running", "done", "failed", "seconds", "bytes_out")  # noqa: N806
    sites = (
        SiteReport("north", (operation("x.Read", done=12, seconds=1.5),), {"south": 2000, "client:7": 10}),
        SiteReport("south", (operation("x.Bin", waiting=3, running=1),), {"south": 5}),
    )
    progress = JobProgress(JobStatus.RUNNING, sites, 1)
    assert progress.bytes_between_sites == 2000
    assert repr(progress) == "<JobProgress running, 1 result, 2 kB between sites>"
    assert str(progress).splitlines() == [
        "running, 1 result, 2 kB between sites",
        "site   operation  done  running  waiting  failed  seconds",
        "north  x.Read       12        ·        ·       ·     1.50",
        "south  x.Bin         ·        1        3       ·     0.00",
        "north → south 2 kB, north → client 10 B",
    ]


def test_the_surface_is_what_users_call() -> None:
    def surface(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert surface(Session) == {
        *("close", "connect", "discover", "execute", "prepare", "run", "submit"),
        *("attach", "forget", "jobs"),
    }
    assert surface(Job) == {
        *("cancel", "close", "errors", "on_result", "partial_result", "progress", "result", "results", "send"),
        *("status", "wait", "restarts", "on_restart", "compiled", "name", "places", "detach", "log"),
    }


def test_what_was_prepared_for_another_homesite_is_refused(
    session: Session, federation: Federation, adding: Pipeline
) -> None:
    other = next(site for site in federation.sites if site != session.homesite)
    prepared = federation.session("inproc", homesite=other).prepare(adding)
    with pytest.raises(SessionError, match=rf"compiled for homesite '{other}', this session has .*session\.prepare"):
        session.submit(prepared, x=1)
