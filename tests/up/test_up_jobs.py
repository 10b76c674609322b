"""Jobs on a federation that is up: submitted, left, listed, met again, cancelled, by any client."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from up_host import UpHost, doubling, holding, one, open_gate, values_of, wait_for

from dfmesh import Federation, JobCancelledError, JobError, Pipeline, SessionError, Yield
from dfmesh.session import Session
from dfmesh.session.host import Host
from dfmesh.targets.up.job_store import MOST_JOBS

CLIENT = """
import os, sys
from pathlib import Path
from dfmesh import Federation
from up_host import one
federation = Federation.load(sys.argv[1])
session = federation.session(target="up").connect()
job = session.submit(one(federation), close=False)
for x in range(3):
    job.send(x=x)
next(iter(job))
print(job.id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def federation(shared_federation: Federation) -> Federation:
    return shared_federation


@pytest.fixture
def session(federation: Federation) -> Session:
    with federation.session(target="up") as session:
        yield session


def test_a_job_runs_as_anywhere(session: Session, federation: Federation) -> None:
    results = session.run(doubling(federation), [{"n": 3}, {"n": 2}])
    assert [own["doubled"] for own in results.sets] == [[0, 2, 4], [0, 2]]
    job = session.submit(doubling(federation), n=2)
    assert [(item.frame, item.value, item.site) for item in job.results("doubled")] == [
        ((0, 0), 0, "b"),
        ((0, 1), 2, "b"),
    ]
    progress = job.progress()
    assert [(entry.site, entry.operation, entry.done) for entry in progress.operations] == [
        ("app", "up.Numbers", 1),
        ("b", "up.Double", 2),
    ]


def test_the_homesite_is_that_of_the_host(federation: Federation) -> None:
    with federation.session(target="up") as session:
        assert session.homesite == "app"
    with pytest.raises(SessionError, match="has the homesite 'app', not 'a'"):
        federation.session(target="up", homesite="a").connect()


def test_a_job_goes_on_without_its_client(federation: Federation, tmp_path: Path) -> None:
    with federation.session(target="up") as session:
        job = session.submit(holding(federation, tmp_path), n=4)
        open_gate(tmp_path, 1)
        assert next(iter(job)).value == 1
    assert job.status == "detached"
    open_gate(tmp_path)
    with federation.session(target="up") as session:
        again = session.attach(job.id)
        assert values_of(again, "number") == [0, 1, 2, 3]
        assert again.result()["number"] == [0, 1, 2, 3]
        assert next(iter(again)).value == 1, "results come in the order in which they came at first"
        summary = next(entry for entry in session.jobs() if entry.id == job.id)
    assert (summary.name, summary.status, summary.results, summary.failures) == ("holding", "finished", 4, 0)
    assert summary.ended is not None
    assert summary.ended > summary.submitted


def test_several_clients_see_the_same(session: Session, federation: Federation, tmp_path: Path) -> None:
    job = session.submit(holding(federation, tmp_path), n=3)
    with federation.session(target="up") as other:
        seen = [other.attach(job.id[:10]), other.attach(job.id), session.attach(job.id)]
        open_gate(tmp_path, 2)
        for follower in seen:
            assert next(iter(follower)).value == 2
        seen[0].detach()
        open_gate(tmp_path)
        for follower in (*seen[1:], job):
            assert follower.result()["number"] == [0, 1, 2]
        with pytest.raises(SessionError, match=r"was detached from; session.attach\('"):
            seen[0].result()
        assert [item.value for item in seen[0]] == [2]


def test_leaving_and_coming_back_in_one_session(session: Session, federation: Federation, tmp_path: Path) -> None:
    job = session.submit(holding(federation, tmp_path), n=2)
    job.detach()
    assert job.status == "detached"
    assert not next(entry for entry in session.jobs() if entry.id == job.id).status.over
    again = session.attach(job.id)
    assert again.name == "holding"
    open_gate(tmp_path)
    assert again.result()["number"] == [0, 1]


def test_another_client_cancels(session: Session, federation: Federation, tmp_path: Path) -> None:
    job = session.submit(holding(federation, tmp_path), n=3)
    open_gate(tmp_path, 0)
    assert next(iter(job)).value == 0
    with federation.session(target="up") as other:
        other.attach(job.id).cancel("I need the machine")
    with pytest.raises(JobCancelledError, match="I need the machine"):
        job.result(timeout=30)
    assert job.partial_result()["number"] == [0]
    with pytest.raises(JobCancelledError, match="I need the machine"):
        session.attach(job.id).result()


def test_errors_are_those_of_the_job(session: Session, federation: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(federation.ops.up.Fail(x=1), place="never")
        Yield(federation.ops.up.Double(x=1, site="a"), place="fine")
    job = session.submit(pipeline)
    with pytest.raises(JobError) as own:
        job.result()
    attached = session.attach(job.id)
    with pytest.raises(JobError) as others:
        attached.result()
    assert str(others.value) == str(own.value)
    assert attached.errors[0].traceback == job.errors[0].traceback != ""
    assert attached.errors[0].location.startswith(__file__)
    assert attached.partial_result()["fine"] == [2]
    assert attached.partial_result()["never"] == []
    assert attached.progress().sites == job.progress().sites


def test_the_order_of_yields_is_that_of_the_pipeline(session: Session, federation: Federation) -> None:
    up = federation.ops.up
    with Pipeline() as pipeline:
        Yield(up.Double(x=3, site="b"), place="x")
        Yield(7, place="x")
        Yield(up.Double(x=1, site="a"), place="x")
        Yield(up.Numbers(n=2), place="y")
    job = session.submit(pipeline)
    assert job.result()["x"] == [6, 7, 2]
    attached = session.attach(job.id)
    assert attached.places == job.places == {"x": 3, "y": 1}
    assert attached.result()["x"] == [6, 7, 2]
    assert values_of(attached, "x") == [6, 7, 2]


def test_large_values_come_whole(session: Session, federation: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(federation.ops.up.Blob(size=5_000_000), place="blob")
        Yield("small", place="small")
    job = session.submit(pipeline)
    expected = np.arange(5_000_000, dtype=np.uint8)
    for seen in (job, session.attach(job.id)):
        assert np.array_equal(seen.result().one("blob"), expected)
        assert seen.result().one("small") == "small"


def test_more_parameter_sets_than_a_homesite_holds(session: Session, federation: Federation) -> None:
    sets = [{"x": x} for x in range(3000)]
    job = session.submit(one(federation), sets)
    job.detach()
    attached = session.attach(job.id)
    results = attached.result(timeout=60)
    assert results["doubled"] == [2 * x for x in range(3000)]
    assert len(results.sets) == 3000


def test_a_client_that_dies_before_it_has_given_all(session: Session, federation: Federation) -> None:
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(federation.config.path)],
        cwd=Path(__file__).parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    job_id = client.stdout.readline().strip()
    owner = next(entry for entry in session.jobs() if entry.id == job_id).owner
    assert owner == client.pid
    client.send_signal(signal.SIGKILL)
    client.communicate()
    job = session.attach(job_id)
    with pytest.raises(JobError) as raised:
        job.result(timeout=30)
    assert raised.value.errors[0].kind == "ClientLeft"
    assert f"the client (process {owner}) ended before it had given all" in str(raised.value)
    assert job.partial_result()["doubled"] == [0, 2, 4]


def test_a_session_that_is_closed_before_all_is_given(session: Session, federation: Federation) -> None:
    with federation.session(target="up") as other:
        job = other.submit(one(federation), close=False)
        for x in range(50):
            job.send(x=x)
    attached = session.attach(job.id)
    assert attached.wait(30)
    assert [error.kind for error in attached.errors] == ["ClientLeft"]
    assert attached.partial_result()["doubled"] == [2 * x for x in range(50)]


def test_only_its_own_client_gives_parameter_sets(session: Session, federation: Federation) -> None:
    job = session.submit(one(federation), close=False)
    attached = session.attach(job.id)
    with pytest.raises(SessionError, match="was submitted by another client"):
        attached.send(x=1)
    with pytest.raises(SessionError, match="known only to the client that submitted it"):
        assert attached.compiled
    assert job.send(x=4) == 0
    job.close()
    assert attached.result(timeout=30)["doubled"] == [8]


def test_results_of_a_job_that_makes_room_still_reach_who_reads_them(
    session: Session, federation: Federation, tmp_path: Path
) -> None:
    jobs = [session.submit(holding(federation, tmp_path), n=1) for _ in range(MOST_JOBS + 100)]
    open_gate(tmp_path)
    assert all(job.result(timeout=100)["number"] == [0] for job in jobs)
    assert len(session.jobs()) == MOST_JOBS


def test_unknown_and_ambiguous_ids(session: Session, federation: Federation) -> None:
    jobs = {session.submit(one(federation), x=x).id for x in range(20)}
    with pytest.raises(SessionError, match="there is no job 'zzz'"):
        session.attach("zzz")
    first = next(job[:1] for job in jobs if sum(other.startswith(job[:1]) for other in jobs) > 1)
    with pytest.raises(SessionError, match=f"several jobs begin with '{first}'"):
        session.attach(first)


def test_a_job_can_be_forgotten_when_it_is_over(session: Session, federation: Federation, tmp_path: Path) -> None:
    job = session.submit(holding(federation, tmp_path), n=1)
    with pytest.raises(SessionError, match="is going on"):
        session.forget(job.id)
    open_gate(tmp_path)
    job.result(timeout=30)
    assert session.forget(job.id[:12]) == job.id
    assert job.id not in [entry.id for entry in session.jobs()]
    with pytest.raises(SessionError, match="there is no job"):
        session.attach(job.id)


def test_what_is_printed_in_the_time_of_a_job(session: Session, federation: Federation, tmp_path: Path) -> None:
    up = federation.ops.up
    with Pipeline() as pipeline:
        said = up.Say(text="before the gate")
        held = up.Hold(x=1, gates=str(tmp_path), after=said)
        Yield(up.Say(text="behind the gate", after=held), place="said")
    job = session.submit(pipeline)
    parts: list[bytes] = []

    def take(data: bytes, end: bool) -> None:
        parts.append(data)
        if data:
            open_gate(tmp_path)

    with Host(federation.config.path) as host:
        host.lines(take, job.id, follow=True)
        lines = b"".join(parts).decode().splitlines()
        texts = [line.split(" ", 1)[1] for line in lines]
        assert [text.removeprefix("a").split(" ", 1)[1] for text in texts] == ["before the gate", "behind the gate"]
        job.result(timeout=30)
        again: list[bytes] = []
        host.lines(lambda data, end: again.append(data), job.id)
        assert b"".join(again) == b"".join(parts)


def test_many_clients_at_once(federation: Federation) -> None:
    def client(number: int) -> list[list[int]]:
        with federation.session(target="up") as session:
            jobs = [session.submit(doubling(federation), n=number + more) for more in range(10)]
            seen = [session.attach(job.id) for job in jobs]
            assert [job.result(timeout=60)["doubled"] for job in jobs] == [job.result()["doubled"] for job in seen]
            return [job.result()["doubled"] for job in seen]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(client, range(8)))
    for number, lists in enumerate(found):
        assert lists == [[2 * x for x in range(number + more)] for more in range(10)]


def test_in_coroutines(federation: Federation) -> None:
    async def body() -> list[int]:
        async with federation.session(target="up") as session:
            job = session.submit(doubling(federation), n=3)
            await job
            attached = await asyncio.to_thread(session.attach, job.id)
            return [item.value async for item in attached.results("doubled")]

    assert asyncio.run(body()) == [0, 2, 4]


def test_sites_are_asked_through_the_host(session: Session, federation: Federation) -> None:
    with Pipeline() as pipeline:
        Yield(federation.ops.up.Double(x=1), place="x")
    found = session.discover(pipeline)
    assert {site for node in found for site in node.sites} == {"a", "b"}


def test_other_targets_have_no_host(federation: Federation) -> None:
    with federation.session(target="inproc") as session:
        job = session.submit(one(federation), x=1)
        with pytest.raises(SessionError, match="only jobs of target 'up'"):
            session.jobs()
        with pytest.raises(SessionError, match="needs target 'up'"):
            job.detach()
        assert job.result()["doubled"] == [2]


def test_a_pipeline_for_another_homesite_is_refused(session: Session, federation: Federation) -> None:
    compiled = federation.compile(one(federation), homesite="a")
    with pytest.raises(SessionError, match="was compiled for homesite 'a', the host has 'app'"):
        session.submit(compiled, x=1)


def test_who_asks_how_far_it_is(session: Session, federation: Federation, tmp_path: Path, shared_host: UpHost) -> None:
    job = session.submit(holding(federation, tmp_path), n=2)
    attached = session.attach(job.id)
    wait_for(lambda: any(entry.running == 2 for entry in attached.progress().operations))
    assert [entry.running for entry in job.progress().operations if entry.operation == "up.Hold"] == [2]
    open_gate(tmp_path)
    job.result(timeout=30)
