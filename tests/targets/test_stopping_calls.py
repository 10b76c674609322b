"""Cancelling a job, or a time-out, stops the adapters of its calls, whatever they are doing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dfmesh import Federation, Job, JobError, Pipeline, Session, Yield

FILE = Path(__file__).resolve().parents[1] / "federations" / "stopping" / "stopping.dfm.yaml"
LIMIT = 30.0
"""Seconds after which something that should happen at once has not happened."""


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return []


@pytest.fixture(scope="module")
def session(lines: list[str]) -> Iterator[Session]:
    federation = Federation.load(FILE)
    with federation.session(homesite="app", output=lambda site, line: lines.append(f"[{site}] {line}")) as opened:
        yield opened


@pytest.fixture(scope="module")
def inproc() -> Iterator[Session]:
    with Federation.load(FILE).session(target="inproc", homesite="app") as opened:
        yield opened
    sys.modules.pop("stopping_operations", None)


def until(path: Path) -> None:
    end = time.monotonic() + LIMIT
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not come"
        time.sleep(0.01)


def begin(session: Session, operation: str, how: str, mark: Path, site: str, timeout: float | None = None) -> Job:
    with Pipeline() as pipeline:
        made = getattr(session.federation.ops.stop, operation)
        Yield(made(how=how, mark=str(mark), site=site, timeout=timeout))
    job = session.submit(pipeline)
    until(Path(f"{mark}.begun"))
    return job


def cancel(job: Job) -> None:
    job.cancel()
    assert job.wait(LIMIT)
    assert job.status == "cancelled"


@pytest.mark.parametrize("how", ["spin", "spin and catch", "sleep", "event", "queue", "command", "connection", "poll"])
@pytest.mark.parametrize("operation", ["Wait", "Count"])
def test_cancel_reaches_a_thread(session: Session, tmp_path: Path, operation: str, how: str) -> None:
    job = begin(session, operation, how, tmp_path / "it", "us")
    cancel(job)
    until(tmp_path / "it.left")


@pytest.mark.parametrize("operation", ["Wait", "Count"])
def test_cancel_reaches_a_coroutine(session: Session, tmp_path: Path, operation: str) -> None:
    job = begin(session, operation, "await", tmp_path / "it", "ca")
    cancel(job)
    until(tmp_path / "it.left")


@pytest.mark.parametrize("how", ["spin", "event"])
def test_inproc_as_well(inproc: Session, tmp_path: Path, how: str) -> None:
    job = begin(inproc, "Wait", how, tmp_path / "it", "us")
    cancel(job)
    until(tmp_path / "it.left")


def test_a_call_that_takes_too_long_is_stopped(session: Session, tmp_path: Path) -> None:
    job = begin(session, "Wait", "sleep", tmp_path / "it", "us", timeout=0.2)
    with pytest.raises(JobError) as caught:
        job.result(LIMIT)
    assert caught.value.errors[0].kind == "CallTimeoutError"
    until(tmp_path / "it.left")


@pytest.mark.parametrize(("how", "site"), [("lock", "us"), ("catch", "ca")])
def test_what_cannot_be_stopped_is_named_and_harms_nobody(
    session: Session, tmp_path: Path, lines: list[str], how: str, site: str
) -> None:
    cancel(begin(session, "Wait", how, tmp_path / "it", site))
    end = time.monotonic() + LIMIT
    while not any(line.startswith(f"[{site}]") and "stop.Wait" in line and "did not stop" in line for line in lines):
        assert time.monotonic() < end
        time.sleep(0.05)
    with Pipeline() as pipeline:
        Yield(session.federation.ops.stop.Add(a=1, b=2))
    assert session.run(pipeline).one() == 3
    assert not (tmp_path / "it.left").exists()


def test_a_job_ends_though_a_site_does_not_answer_any_more(tmp_path: Path) -> None:
    """C code that does not let go of the interpreter's lock; `isolation: process` is for that."""
    with Federation.load(FILE).session(homesite="app") as session:
        cancel(begin(session, "Wait", "C", tmp_path / "it", "us"))
