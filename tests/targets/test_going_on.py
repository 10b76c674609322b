"""Real sites that die or hang: the job goes on if it may, all results come and none twice; else it says why not."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, ForEach, JobError, Pipeline, PlaceParam, Session, Yield
from dfmesh.targets.local import supervisor

HERE = Path(__file__).parent / "going_on"
sys.path.insert(0, str(HERE))
FEDERATION = Federation.load(HERE / "going_on.dfm.yaml")
ops = FEDERATION.ops.site
ITEMS = list(range(60))
PATIENCE = 60.0


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch, FEDERATION.session("local") as opened:
        patch.setattr(supervisor, "_LONGEST_DELAY", 0.1)  # who dies again and again is restarted at once all the same
        yield opened


def processes(session: Session) -> dict[str, int]:
    found: dict[str, int] = session._connection._runner.processes  # type: ignore[attr-defined]
    return found


def steps() -> Pipeline:
    with Pipeline() as p, ForEach(ops.Count(n=len(ITEMS), site="b"), window=4) as item:
        Yield(ops.Step(x=ops.Step(x=item, site="a"), site="b"), place="each")
    return p


def after(job: Any, count: int, act: Callable[[], None]) -> list[int]:
    """Take all results of a job, and do something when so many have come."""
    values = []
    for item in job:
        values.append(item.value)
        if len(values) == count:
            act()
    return values


@pytest.mark.parametrize("site", ["a", "b", "app"])
def test_a_job_goes_on_when_a_site_is_killed(session: Session, site: str) -> None:
    job = session.submit(steps())
    values = after(job, 10, lambda: os.kill(processes(session)[site], signal.SIGKILL))
    assert sorted(values) == ITEMS
    assert job.result(timeout=PATIENCE)["each"] == ITEMS
    assert [(lost[0].site, lost[0].message) for lost in job.restarts] == [(site, "killed by SIGKILL")]


def test_two_sites_are_killed_together(session: Session) -> None:
    def kill() -> None:
        for site in ("a", "b"):
            os.kill(processes(session)[site], signal.SIGKILL)

    job = session.submit(steps())
    assert sorted(after(job, 10, kill)) == ITEMS


def test_parameter_sets_come_while_the_homesite_is_lost(session: Session) -> None:
    with Pipeline() as p:
        Yield(ops.Step(x=PlaceParam("x"), site="a"))
    told: list[Any] = []
    job = session.submit(p, close=False)
    job.on_restart(told.append)
    for x in range(20):
        job.send(x=x)
        if x == 10:
            os.kill(processes(session)["app"], signal.SIGKILL)
    job.close()
    assert job.result(timeout=PATIENCE)["yield"] == list(range(20))
    assert [lost[0].site for lost in told] == ["app"]


def test_what_must_not_run_twice_does_not(session: Session, tmp_path: Path) -> None:
    """A site that lives keeps what it did once only, while the others do their part again."""
    path, mark = str(tmp_path / "lines"), str(tmp_path / "mark")
    with Pipeline() as p:
        with ForEach(list(range(12)), window=3) as item:
            written = ops.Write(path=path, x=item, site="a")
            Yield(ops.Step(x=written, site="b"), place="each")
        Yield(ops.KillOnce(path=mark, x=ops.Step(x=1, site="b"), site="b"), place="last")
    job = session.submit(p)
    results = job.result(timeout=PATIENCE)
    assert (results["each"], results["last"]) == (list(range(12)), [1])
    assert len(job.restarts) == 1
    assert sorted(map(int, Path(path).read_text().split())) == list(range(12))


def test_a_job_that_must_not_be_repeated_says_so(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "lines")
    with Pipeline() as p:
        written = ops.Write(path=path, x=1, site="a")
        Yield(ops.KillAlways(x=written, site="a"), place="never")
    job = session.submit(p)
    with pytest.raises(JobError, match="SIGKILL") as raised:
        job.result(timeout=PATIENCE)
    error = raised.value.errors[0]
    assert (error.site, error.operation, error.kind) == ("a", "site.KillAlways", "SiteLost")
    assert "site.Write of site a may have run" in error.message
    assert "`idempotent: true`" in error.message
    assert Path(path).read_text() == "1\n"


def test_a_job_that_kills_a_site_each_time_ends(session: Session) -> None:
    with Pipeline() as p:
        Yield(ops.KillAlways(x=1, site="b"), place="never")
    job = session.submit(p)
    with pytest.raises(JobError, match="lost 5 times in a row"):
        job.result(timeout=PATIENCE)
    assert len(job.restarts) == 4
    assert {(error.site, error.kind) for error in job.errors} == {("b", "SiteLost")}


def test_a_job_is_cancelled_while_it_begins_again(session: Session) -> None:
    job = session.submit(steps())
    job.on_restart(lambda lost: job.cancel())
    after(job, 5, lambda: os.kill(processes(session)["a"], signal.SIGKILL))
    assert job.wait(timeout=PATIENCE)
    assert job.status == "cancelled"
    assert session.submit(steps()).result(timeout=PATIENCE)["each"] == ITEMS


def test_sites_that_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is stopped is lost, and the job goes on; one whose adapter holds the interpreter's lock is not."""
    monkeypatch.setenv("DFMESH_SILENT_SECONDS", "3")
    lines: list[str] = []
    told = threading.Event()

    def take(site: str, line: str) -> None:
        lines.append(f"{site}: {line}")
        if "has stood still" in line:
            told.set()

    with FEDERATION.session("local", output=take) as session:
        job = session.submit(steps())
        assert sorted(after(job, 10, lambda: os.kill(processes(session)["a"], signal.SIGSTOP))) == ITEMS
        assert "its event loop stood still for 3 s" in job.restarts[0][0].message
        with Pipeline() as p:
            Yield(ops.Hold(seconds=8.0, site="b"))
        job = session.submit(p)
        assert told.wait(PATIENCE)
        with pytest.raises(TimeoutError, match="site b works and has not answered for"):
            job.progress(timeout=0.2)
        assert job.result(timeout=PATIENCE)["yield"] == [8.0]
        assert job.restarts == ()
    assert any(line.startswith("b: dfmesh: the event loop of the site has stood still") for line in lines), lines
