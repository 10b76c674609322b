"""Kills of homesites and hosts: what was announced is neither lost nor repeated, and jobs go on where they may."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from up_host import UpHost, holding, one, open_gate, values_of, wait_for

from dfmesh import Federation, JobError, SessionError

Start = Callable[..., UpHost]


def journal_of(place: Path, job: str) -> Path:
    return next((place / "xdg_state_home").glob(f"dfmesh/*/jobs/{job}"))


def test_the_homesite_is_killed(start_host: Start, federation: Federation, tmp_path: Path) -> None:
    host = start_host()
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path), [{"n": 3}, {"n": 5}])
        open_gate(tmp_path, 2)
        assert [item.value for _, item in zip(range(2), job, strict=False)] == [2, 2]
        old = host.site("app")
        old.send_signal(signal.SIGKILL)
        wait_for(lambda: host.site("app") != old)
        open_gate(tmp_path)
        results = job.result(timeout=30)
        assert [own["number"] for own in results.sets] == [[0, 1, 2], [0, 1, 2, 3, 4]]
        assert [item.value for item in job][:2] == [2, 2]
        assert values_of(session.attach(job.id), "number") == [0, 1, 2, 0, 1, 2, 3, 4]
        assert session.run(one(federation), x=1)["doubled"] == [2]


def test_what_must_not_run_twice_is_not_repeated(start_host: Start, federation: Federation, tmp_path: Path) -> None:
    host = start_host()
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path, "HoldOnce"), n=2)
        open_gate(tmp_path, 0)
        next(iter(job))
        host.site("app").send_signal(signal.SIGKILL)
        with pytest.raises(JobError, match="must not run twice"):
            job.result(timeout=30)
        assert job.partial_result()["number"] == [0]
        assert next(entry for entry in session.jobs()).status == "failed"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_the_host_ends_and_comes_back(
    start_host: Start, federation: Federation, tmp_path: Path, place: Path, end: str
) -> None:
    host = start_host()
    with federation.session(target="up") as session:
        before = session.submit(one(federation), x=4)
        before.result(timeout=30)
        job = session.submit(holding(federation, tmp_path), n=4)
        waiting = session.submit(one(federation), [{"x": x} for x in range(2500)])
        waiting.wait(30)
        open_gate(tmp_path, 3)
        assert next(iter(job)).value == 3
        job_id = job.id
        getattr(host, end)()
        assert job.wait(30)
        assert [error.kind for error in job.errors] == ["HostLost"]
        with pytest.raises(SessionError, match="is gone"):
            session.jobs()
    with pytest.raises(SessionError, match="is not up; start it with `dfmesh up"):
        federation.session(target="up").connect()
    results = journal_of(place, job_id) / "results"
    with results.open("ab") as file:
        file.write(results.read_bytes()[:40])  # A batch that was being written.
    again = start_host()
    assert again.record["resumed"] == 1
    open_gate(tmp_path)
    with federation.session(target="up") as session:
        attached = session.attach(job_id)
        assert attached.result(timeout=30)["number"] == [0, 1, 2, 3]
        assert next(iter(attached)).value == 3
        assert session.attach(before.id).result()["doubled"] == [8]
        assert len(session.attach(waiting.id).result()["doubled"]) == 2500
        assert {entry.status for entry in session.jobs()} == {"finished"}


def test_a_job_that_may_not_go_on_is_marked(start_host: Start, federation: Federation, tmp_path: Path) -> None:
    host = start_host()
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path, "HoldOnce"), n=2)
        open_gate(tmp_path, 1)
        next(iter(job))
        host.kill()
    assert start_host().record["resumed"] == 0
    with federation.session(target="up") as session:
        attached = session.attach(job.id)
        with pytest.raises(JobError, match="the host was stopped while it ran"):
            attached.result(timeout=30)
        assert attached.partial_result()["number"] == [1]


def test_many_parameter_sets_survive_the_host(start_host: Start, federation: Federation, tmp_path: Path) -> None:
    host = start_host()
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path), [{"n": 1}] * 2000)
        job.detach()  # From now on the host has it.
        host.kill()
    open_gate(tmp_path)
    start_host()
    with federation.session(target="up") as session:
        results = session.attach(job.id).result(timeout=60)
        assert [own["number"] for own in results.sets] == [[0]] * 2000


def test_a_job_of_which_its_client_died_is_still_marked_after_the_host_ended(
    start_host: Start, federation: Federation, tmp_path: Path
) -> None:
    host = start_host()
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path), close=False)
        job.send(n=2)
        wait_for(lambda: session.jobs()[0].parameter_sets == 1)
        host.kill()
    open_gate(tmp_path)
    start_host()
    with federation.session(target="up") as session:
        attached = session.attach(job.id)
        assert attached.wait(30)
        assert [error.kind for error in attached.errors] == ["ClientLeft"]
        assert attached.partial_result()["number"] == [0, 1]


def test_a_cancelled_job_does_not_come_back(start_host: Start, federation: Federation, tmp_path: Path) -> None:
    host = start_host()
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path), n=2)
        job.cancel()
        assert job.wait(30)
        host.kill()
    assert start_host().record["resumed"] == 0
    with federation.session(target="up") as session:
        attached = session.attach(job.id)
        assert attached.wait(30)
        assert attached.status == "cancelled"
