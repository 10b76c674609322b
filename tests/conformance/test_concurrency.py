"""Many jobs, many threads, cancelling, and what is left behind (Show 6)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

import dfmesh
from dfmesh import ForEach, Pipeline, PlaceParam, Yield

from .conftest import CALC_FILE, HOMESITE, LIMIT, Runner, scaled


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended and waits to be noticed by its parent does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.timeout(120)
def test_eight_threads_with_many_jobs_each(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        n = PlaceParam("n")
        x = ops.calc.Add(a=n, b=1, site="a")
        with ForEach([x, n], window=2) as item:
            Yield(ops.calc.Add(a=item, b=0, site="b"), place="items")
        Yield(ops.calc.Mix(values=[n, x], site="c"), place="mix")
    jobs = max(15, scaled(50))
    expected = {n: live(p, n=n) for n in (0, 3)}
    assert expected[3]["items"] == [4, 3]

    def work(thread: int) -> list[Any]:
        return [dict(live.session.run(p, n=thread * 1000 + job)) for job in range(jobs)]

    with ThreadPoolExecutor(8) as pool:
        for thread, results in enumerate(pool.map(work, range(8))):
            for job, result in enumerate(results):
                n = thread * 1000 + job
                assert result["items"] == [n + 1, n]
                assert len(result["mix"]) == 1
    assert live(p, n=3) == expected[3]


def test_threads_with_pipelines_of_their_own(local: Runner, ops: Any) -> None:
    """Pipelines are written, compiled and run in several threads at once."""

    def work(thread: int) -> list[Any]:
        found = []
        for job in range(5):
            with Pipeline() as p:
                x = ops.calc.Add(a=thread, b=job, site="abcd"[thread % 4])
                Yield(ops.calc.Add(a=x, b=100, site="abcd"[job % 4]), place=f"of {thread}")
            found.append(dict(local.session.run(p)))
        return found

    with ThreadPoolExecutor(8) as pool:
        for thread, results in enumerate(pool.map(work, range(8))):
            assert results == [{f"of {thread}": [thread + job + 100]} for job in range(5)]


def test_prepared_pipeline_runs_many_times(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=PlaceParam("n"), b=1, site="a"), place="x")
    prepared = live.session.prepare(p)
    jobs = [live.session.submit(prepared, {"n": n}) for n in range(20)]
    assert [job.result(timeout=LIMIT)["x"] for job in jobs] == [[n + 1] for n in range(20)]
    assert len({job.id for job in jobs}) == 20


def test_results_while_running(live: Runner, ops: Any, tmp_path: Path) -> None:
    """Each step is only allowed after the client has the result of the one before."""
    with Pipeline() as p, ForEach([str(tmp_path / str(n)) for n in range(5)], window=1) as path:
        Yield(ops.calc.Gate(path=path, x=path.index, site="a"), place="x")
    job = live.session.submit(p)
    (tmp_path / "0").touch()
    seen = []
    for item in job:
        seen.append(item.value)
        assert str(getattr(job.status, "value", job.status)) == "running" or item.value == 4
        (tmp_path / str(item.value + 1)).touch()
    assert seen == list(range(5))
    assert job.result(timeout=LIMIT)["x"] == seen


def test_results_in_asyncio(live: Runner, ops: Any) -> None:
    with Pipeline() as p, ForEach(PlaceParam("xs"), window=3) as item:
        Yield(ops.calc.Add(a=item, b=1, site="b"), place="x")

    async def one(n: int) -> list[Any]:
        job = live.session.submit(p, {"xs": [n, n + 1]})
        return [item.value async for item in job.results("x")]

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(one(n) for n in range(5)))

    assert asyncio.run(all_of_them()) == [[n + 1, n + 2] for n in range(5)]


def test_parameter_sets_while_running(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Add(a=PlaceParam("n"), b=1, site="a"), place="x")
    job = live.session.submit(p, close=False)
    items = iter(job.results("x"))
    seen = []
    for n in range(5):
        job.send(n=n)
        seen.append(next(items).value)
    job.close()
    assert seen == [1, 2, 3, 4, 5]
    assert job.result(timeout=LIMIT)["x"] == seen


# Cancel.


def test_cancel_and_the_next_job(live: Runner, ops: Any, tmp_path: Path) -> None:
    """FINDINGS 39: ends at once, gives nothing to later jobs, and its work stops."""
    with Pipeline() as slow:
        Yield(ops.calc.Add(a=1, b=1, site="a"), place="first")
        with ForEach(list(range(1000)), window=2) as item:
            Yield(ops.calc.Sleep(seconds=0.05, site="b", after=ops.calc.Add(a=item, b=0, site="a")), place="x")
    with Pipeline() as quick:
        Yield(ops.calc.Add(a=PlaceParam("n"), b=0, site="b"), place="x")
    for n in range(5):
        job = live.session.submit(slow)
        next(iter(job))
        job.cancel()
        assert job.wait(timeout=LIMIT) is True
        assert str(getattr(job.status, "value", job.status)) == "cancelled"
        with pytest.raises(dfmesh.JobCancelledError):
            job.result(timeout=LIMIT)
        assert dict(live.session.run(quick, n=n)) == {"x": [n]}


def test_cancelled_work_stops(live: Runner, ops: Any, tmp_path: Path) -> None:
    with Pipeline() as p, ForEach([str(tmp_path / str(n)) for n in range(200)], window=1) as path:
        waited = ops.calc.Sleep(seconds=0.05, site="a")
        Yield(ops.calc.Leave(path=path, site="a", after=waited), place="x")
    job = live.session.submit(p)
    next(iter(job))
    job.cancel()
    assert job.wait(timeout=LIMIT)
    left = len(list(tmp_path.iterdir()))
    time.sleep(0.5)  # Enough for ten more calls; one was perhaps going on.
    assert len(list(tmp_path.iterdir())) <= left + 1 < 100


def test_cancel_at_any_moment(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        x = ops.calc.Add(a=1, b=1, site="a")
        with ForEach(list(range(20)), window=3) as item:
            Yield(ops.calc.Add(a=item, b=x, site="b"), place="x")
    for moment in range(15):
        job = live.session.submit(p)
        time.sleep(moment * 0.001)
        job.cancel()
        assert job.wait(timeout=LIMIT) is True
        assert str(getattr(job.status, "value", job.status)) in {"cancelled", "finished"}
        job.cancel()
    assert dict(live.session.run(p)) == {"x": [n + 2 for n in range(20)]}


def test_result_with_a_timeout(live: Runner, ops: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Pipeline() as p:
        Yield(ops.calc.Gate(path=str(gate), x=1, site="a"), place="x")
    job = live.session.submit(p)
    assert job.wait(timeout=0.1) is False
    with pytest.raises(TimeoutError):
        job.result(timeout=0.1)
    gate.touch()
    assert job.result(timeout=LIMIT)["x"] == [1]
    assert job.wait(timeout=0) is True


def test_cancel_while_others_wait(live: Runner, ops: Any, tmp_path: Path) -> None:
    """Threads that wait for results, for the end, and for the next item all come back."""
    with Pipeline() as p:
        Yield(ops.calc.Gate(path=str(tmp_path / "never"), site="a"), place="x")
    job = live.session.submit(p)
    back: list[str] = []

    def wait() -> None:
        job.wait(timeout=LIMIT)
        back.append("wait")

    def iterate() -> None:
        with contextlib.suppress(dfmesh.DfmeshError):
            list(job)
        back.append("iterate")

    def result() -> None:
        with contextlib.suppress(dfmesh.DfmeshError):
            job.result(timeout=LIMIT)
        back.append("result")

    threads = [threading.Thread(target=target, daemon=True) for target in (wait, iterate, result)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    job.cancel()
    for thread in threads:
        thread.join(LIMIT)
    (tmp_path / "never").touch()
    assert sorted(back) == ["iterate", "result", "wait"]


def test_memory_and_records_of_finished_jobs(local: Runner, ops: Any) -> None:
    """FINDINGS 44: a site's memory does not grow with the number of jobs it has done."""
    with Pipeline() as p:
        Yield(ops.calc.Add(a=PlaceParam("n"), b=0, site="a"), place="x")
    with Pipeline() as who:
        Yield(ops.calc.Where(site="a")["pid"], place="pid")
    site = psutil.Process(local(who)["pid"][0])

    def many(count: int) -> int:
        for n in range(count):
            assert local.session.run(p, n=n).one("x") == n
        return int(site.memory_info().rss)

    many(100)
    before = many(100)
    count = scaled(2000)
    assert many(count) - before < 2_000_000 + 2_000 * count


# Nothing idle, nothing left.


@pytest.fixture
def fresh(fed: Any) -> Iterator[Any]:
    """A session of its own, and the processes that belong to it."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with fed.session(target="local", homesite=HOMESITE) as session:
        children = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
        yield session, children


def test_idle_federation_uses_no_cpu(fresh: Any, ops: Any) -> None:
    session, children = fresh
    with Pipeline() as p:
        for site in "abcd":
            Yield(ops.calc.Add(a=1, b=1, site=site), place=site)
    session.run(p)
    assert len(children) >= 5
    everyone = [*children, psutil.Process()]
    time.sleep(0.5)

    def used() -> list[int]:
        return [process.num_ctx_switches().voluntary for process in everyone]

    before = used()
    time.sleep(2)
    waked = [after - then for then, after in zip(before, used(), strict=True)]
    print(f"idle federation: waked {waked} times in two seconds")
    assert max(waked) < 20


def test_nothing_runs_after_close(fed: Any, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Where(site="a")["pid"], place="pid")
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    threads = threading.active_count()
    with fed.session(target="local", homesite=HOMESITE) as session:
        session.run(p)
        children = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert [child for child in children if alive(child.pid)] == []
    until(lambda: threading.active_count() <= threads)


def test_close_with_running_jobs(fed: Any, ops: Any, tmp_path: Path) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Block(seconds=30, site="a"), place="blocked")
        Yield(ops.calc.Sleep(seconds=30, site="b"), place="asleep")
        Yield(ops.calc.Where(site="a")["pid"], place="pid")
    session = fed.session(target="local", homesite=HOMESITE)
    with session:
        job = session.submit(p)
        pid = next(iter(job)).value
    until(lambda: not alive(pid))
    assert job.wait(timeout=LIMIT) is True
    with pytest.raises(dfmesh.DfmeshError):
        job.result(timeout=LIMIT)
    with pytest.raises(dfmesh.SessionError):
        session.run(p)


def test_nothing_runs_after_an_exception(fed: Any, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Where(site="a")["pid"], place="pid")
    pid = 0

    def use() -> None:
        nonlocal pid
        with fed.session(target="local", homesite=HOMESITE) as session:
            pid = session.run(p).one("pid")
            raise RuntimeError("of the user")

    with pytest.raises(RuntimeError, match="of the user"):
        use()
    until(lambda: not alive(pid))


CLIENT = f"""
import sys, time
import dfmesh
fed = dfmesh.Federation.load({str(CALC_FILE)!r})
with dfmesh.Pipeline() as p:
    for site in ("a", "b", "c", "d", "app"):
        dfmesh.Yield(fed.ops.calc.Where(site=site)["pid"], place=site)
with dfmesh.Pipeline() as busy:
    dfmesh.Yield(fed.ops.calc.Block(seconds=60, site="a"), place="x")
    dfmesh.Yield(fed.ops.calc.Sleep(seconds=60, site="b"), place="y")
session = fed.session(target="local", homesite="app")
session.__enter__()
print(*(values[0] for values in session.run(p).values()), flush=True)
BUSY
END
"""


def client(end: str, *, busy: bool) -> tuple[subprocess.Popen[str], list[int]]:
    text = CLIENT.replace("END", end).replace("BUSY", "job = session.submit(busy); time.sleep(0.3)" if busy else "")
    process = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(set(pids)) == 5, process.stderr.read()
    return process, pids


ENDS = [
    "time.sleep(60)  # SIGKILL",
    "time.sleep(60)  # SIGTERM",
    "time.sleep(60)  # SIGINT",
    "raise RuntimeError('of the user')",
    "sys.exit(0)",
    "import os; os._exit(1)",
    "pass",
]


@pytest.mark.parametrize(
    ("end", "busy"),
    [(end, True) for end in ENDS] + [(end, False) for end in (ENDS[0], ENDS[-1])],
    ids=[*(f"{end}-busy" for end in ENDS), f"{ENDS[0]}-idle", f"{ENDS[-1]}-idle"],
)
def test_nothing_runs_after_the_client(end: str, busy: bool) -> None:
    """FINDINGS 43: however it ends, and also if it never closed its session."""
    process, pids = client(end, busy=busy)
    name = end.rpartition("# ")[2]
    if hasattr(signal, name):
        time.sleep(0.5 if busy else 0.1)
        os.kill(process.pid, getattr(signal, name))
    # Reads to the end: nobody else may hold the standard output open.
    process.communicate(timeout=LIMIT)
    until(lambda: not any(map(alive, pids)))


def test_two_sessions_at_once(fed: Any, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.calc.Where(site="a")["pid"], place="pid")
    with (
        fed.session(target="local", homesite=HOMESITE) as one,
        fed.session(target="local", homesite=HOMESITE) as two,
        fed.session(target="inproc", homesite=HOMESITE) as three,
    ):
        pids = {session.run(p).one("pid") for session in (one, two, three)}
    assert len(pids) == 3
    assert os.getpid() in pids


def test_session_of_another_homesite(fed: Any, ops: Any) -> None:
    with Pipeline() as p:
        x = ops.calc.Add(a=1, b=1, site="a")
        Yield(ops.calc.Add(a=x, b=1, site="b"), place="x")
    with fed.session(target="inproc", homesite="b") as session:
        assert session.run(p).one("x") == 3


def test_million_of_an_endless_stream_is_not_made(local: Runner, ops: Any) -> None:
    """An endless stream can be cancelled, and its memory does not grow without bound meanwhile."""
    with Pipeline() as who:
        Yield(ops.calc.Where(site="a")["pid"], place="pid")
    site = psutil.Process(local(who)["pid"][0])
    with Pipeline() as p, ForEach(ops.calc.Endless(site="a"), window=2) as item:
        Yield(ops.calc.Add(a=item, b=0, site="b"), place="x")
    job = local.session.submit(p)
    try:
        items = iter(job.results("x"))
        assert [next(items).value for _ in range(10)] == list(range(10))
        before = site.memory_info().rss
        time.sleep(1)
        assert site.memory_info().rss - before < 50_000_000
    finally:
        job.cancel()
    assert job.wait(timeout=LIMIT)
