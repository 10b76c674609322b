"""Adapters with `isolation: process`: the same as others, but whatever they do to their process harms nobody."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dfmesh import Federation, ForEach, Job, JobError, Pipeline, Session, Yield
from dfmesh.engine.isolation import worker_processes

FILE = Path(__file__).resolve().parents[1] / "federations" / "isolated" / "isolated.dfm.yaml"
LIMIT = 40.0
"""Seconds after which something that should happen at once has not happened."""

Make = Callable[[Any], Any]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return []


@pytest.fixture(scope="module", params=["local", "inproc"])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def session(target: str, lines: list[str]) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DFM_SECRET_ARCHIVE_KEY", "sesame")

        def output(site: str, line: str) -> None:
            lines.append(f"[{site}] {line}")

        with Federation.load(FILE).session(target=target, homesite="app", output=output) as opened:
            yield opened
    until(lambda: workers() == [])
    assert "isolated_operations" not in sys.modules or target == "inproc"
    sys.modules.pop("isolated_operations", None)


def workers(of: int | None = None) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(of).children(recursive=True):
        try:
            if "dfmesh.engine.isolation.worker" in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def pipeline(session: Session, make: Make) -> Pipeline:
    with Pipeline() as made:
        Yield(make(session.federation.ops.iso))
    return made


def value_of(session: Session, make: Make) -> Any:
    return session.run(pipeline(session, make)).one()


def failure_of(session: Session, make: Make) -> Any:
    with pytest.raises(JobError) as caught:
        session.run(pipeline(session, make))
    (failure,) = caught.value.errors
    return failure


def test_values_go_there_and_back(session: Session) -> None:
    for value in (7, "text", {"a": [1, (2, 3)]}, None, b"bytes"):
        assert value_of(session, lambda ops, value=value: ops.Echo(value=value)) == value
        assert value_of(session, lambda ops, value=value: ops.AsyncEcho(value=value)) == value
    array = np.arange(500_000)
    with Pipeline() as made:
        Yield(session.federation.ops.iso.Echo(value=session.federation.ops.iso.AsyncEcho(value=array)))
    assert np.array_equal(session.run(made).one(), array)


def test_calls_are_in_another_process_that_is_used_again(session: Session) -> None:
    pids = {value_of(session, lambda ops: ops.Echo(value="pid")) for _ in range(3)}
    assert len(pids) == 1
    assert os.getpid() not in pids
    with Pipeline() as made, ForEach(["pid"] * 12) as value:
        Yield(session.federation.ops.iso.Echo(value=value))
    assert len(set(session.run(made)["yield"])) <= 3, "no more processes than the site's capacity"


def test_streams_out_of_and_into_processes(session: Session) -> None:
    ops = session.federation.ops.iso
    with Pipeline() as made:
        Yield(ops.Count(count=300), place="plain")
        Yield(ops.AsyncCount(count=300), place="async")
        Yield(ops.Total(items=ops.Count(count=300)), place="total")
        Yield(ops.Length(items=ops.AsyncCount(count=300)), place="length")
    results = session.run(made)
    assert results["plain"] == results["async"] == list(range(300))
    assert results.one("total") == sum(range(300))
    assert results.one("length") == ["list", 300]


def test_a_slow_reader_holds_a_stream_back_and_the_generator_is_closed(session: Session, tmp_path: Path) -> None:
    mark = tmp_path / "produced"
    ops = session.federation.ops.iso
    with Pipeline() as made:
        Yield(ops.First(items=ops.Count(count=10**9, mark=str(mark))))
    assert session.run(made).one() == 0
    until(lambda: Path(f"{mark}.closed").exists())
    assert int(mark.read_text() or 0) < 1000  # empty if it was stopped while it wrote


def test_what_an_adapter_sees(session: Session) -> None:
    seen = value_of(session, lambda ops: ops.Surroundings(provider="archive"))
    assert seen == ["us", "archive", 3, "sesame", "https://archive.example", "north", "iso.Surroundings"]


def test_what_is_printed_and_logged_is_output_of_the_site(session: Session, target: str, lines: list[str]) -> None:
    value_of(session, lambda ops: ops.Echo(value="talk"))
    if target == "local":
        until(lambda: "[us] printed in a process" in lines)
        until(lambda: "[us] WARNING isolated: logged in a process" in lines)


def test_the_site_learns_a_class_from_the_module_of_the_adapter(session: Session) -> None:
    assert value_of(session, lambda ops: ops.Echo(value="grid").field("cells")) == [1, 2]


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("raise", "ValueError", "no such luck"),
        ("sys.exit", "SystemExit", "sys.exit(3)"),
        ("os._exit", "AdapterProcessError", "exited with code 4"),
        ("crash", "AdapterProcessError", "killed by SIGSEGV"),
        ("kill", "AdapterProcessError", "killed by SIGKILL"),
        ("close", "AdapterProcessError", "connection with the site"),
    ],
)
def test_what_goes_wrong_is_of_that_call_alone(session: Session, how: str, kind: str, message: str) -> None:
    ops = session.federation.ops.iso
    with Pipeline() as made:
        Yield(ops.Fail(how=how), place="never")
        Yield(ops.Echo(value=1), place="other")
    job = session.submit(made)
    job.wait(LIMIT)
    (failure,) = job.errors
    assert (failure.operation, failure.site, failure.kind) == ("iso.Fail", "us", kind)
    assert message in failure.message
    assert job.partial_result()["other"] == [1]
    if how == "raise":
        assert failure.raised_at.startswith("isolated_operations.py:")
        assert "no such luck" in failure.traceback


def test_results_that_cannot_be_sent_and_modules_that_end_the_process(session: Session) -> None:
    assert failure_of(session, lambda ops: ops.Echo(value="lambda")).kind == "ValueEncodingError"
    assert "exited with code 7" in failure_of(session, lambda ops: ops.Unloadable()).message
    assert value_of(session, lambda ops: ops.Echo(value=5)) == 5


def test_a_call_whose_process_died_is_made_again(session: Session, tmp_path: Path) -> None:
    assert value_of(session, lambda ops: ops.Flaky(mark=str(tmp_path / "it"), retries=1)) == "well"


def test_a_call_that_may_run_again_does_when_its_process_is_killed(session: Session, tmp_path: Path) -> None:
    assert value_of(session, lambda ops: ops.Repeatable(mark=str(tmp_path / "it"), most=2)) == 3
    failure = failure_of(session, lambda ops: ops.Repeatable(mark=str(tmp_path / "other"), most=100))
    assert failure.kind == "AdapterProcessError"
    assert "killed by SIGKILL" in failure.message
    assert "process 3" in failure.message
    assert (tmp_path / "other").read_text() == "..."


def begin(session: Session, how: str, mark: Path, timeout: float | None = None) -> tuple[Job, int]:
    job = session.submit(pipeline(session, lambda ops: ops.Burn(how=how, mark=str(mark), timeout=timeout)))
    until(lambda: mark.exists() and mark.read_text())
    return job, int(mark.read_text())


@pytest.mark.parametrize("how", ["hash", "pattern", "deaf"])
def test_cancel_ends_c_code_that_does_not_yield(session: Session, tmp_path: Path, how: str) -> None:
    job, pid = begin(session, how, tmp_path / "it")
    job.cancel()
    assert job.wait(LIMIT)
    assert job.status == "cancelled"
    until(lambda: not psutil.pid_exists(pid))
    assert value_of(session, lambda ops: ops.Echo(value=5)) == 5


def test_cancel_leaves_a_process_that_listens(session: Session, tmp_path: Path) -> None:
    job, pid = begin(session, "sleep", tmp_path / "it")
    job.cancel()
    assert job.wait(LIMIT)
    until((tmp_path / "it.left").exists)
    time.sleep(0.2)
    job, another = begin(session, "sleep", tmp_path / "another")
    assert another == pid
    job.cancel()
    job.wait(LIMIT)


def test_a_time_out_ends_it_too(session: Session, tmp_path: Path) -> None:
    assert value_of(session, lambda ops: ops.Echo(value=1)) == 1  # The process need not start in that time.
    job, pid = begin(session, "pattern", tmp_path / "it", timeout=2.0)
    job.wait(LIMIT)
    assert [failure.kind for failure in job.errors] == ["CallTimeoutError"]
    until(lambda: not psutil.pid_exists(pid))


def test_nothing_is_left_of_a_site_that_is_killed(tmp_path: Path) -> None:
    before = set(workers())
    with Federation.load(FILE).session(homesite="app", output="none") as session:
        job, pid = begin(session, "pattern", tmp_path / "it")
        site = psutil.Process(pid).ppid()
        assert site != os.getpid()
        os.kill(site, signal.SIGKILL)
        job.wait(LIMIT)
        assert [failure.kind for failure in job.errors] == ["SiteLost"]
        until(lambda: not psutil.pid_exists(pid))
        assert value_of(session, lambda ops: ops.Echo(value=5)) == 5
        assert set(workers()) - before
    until(lambda: set(workers()) <= before)


def test_processes_that_have_nothing_to_do_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "IDLE_SECONDS", 0.1)
    before = set(workers())
    with Federation.load(FILE).session(target="inproc", homesite="app") as session:
        assert value_of(session, lambda ops: ops.Echo(value=5)) == 5
        until(lambda: set(workers()) <= before)
        assert value_of(session, lambda ops: ops.Echo(value=6)) == 6
