"""What chaos runs have found, each as small as it can be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chaos_run.client import FEDERATION

import dfmesh
from dfmesh import Pipeline, Yield
from dfmesh.processes.starting import environment

LIMIT = 30.0


@pytest.fixture(scope="module")
def session() -> Iterator[dfmesh.Session]:
    with dfmesh.Federation.load(FEDERATION).session(output="none") as session:
        yield session


def kill(session: Any, site: str) -> None:
    os.kill(session._connection._runner.processes[site], signal.SIGKILL)


def test_a_job_that_loses_one_site_after_the_other_ends(session: dfmesh.Session) -> None:
    """The homesite heard once that it was at rest itself, and waited for that again after the second loss."""
    ops: Any = dfmesh.Federation(session.federation).ops.chaos
    with Pipeline() as p:
        for site in ("north", "south"):
            Yield(ops.StreamOnce(n=1_000, seed=1, pause=0.1, site=site), place=site)
        Yield(ops.Affine(x=1, a=1, b=1, site="home"), place="home")
    job = session.submit(p)
    came: dict[str, int] = {}
    for item in job:
        came[item.place] = came.get(item.place, 0) + 1
        if item.place == "south" and came["south"] == 3:
            kill(session, "north")
        if item.place == "south" and came["south"] == 12:
            kill(session, "south")
            break
    assert job.wait(LIMIT)
    assert sorted((error.kind, error.site) for error in job.errors) == [("SiteLost", "north"), ("SiteLost", "south")]


def test_a_site_that_hangs_while_it_starts_again_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats looked only at sites that were ready; all jobs waited for ever for one that was stopped before."""
    monkeypatch.setenv("DFMESH_SILENT_SECONDS", "3")
    federation = dfmesh.Federation.load(FEDERATION)
    with Pipeline() as p:
        Yield(federation.ops.chaos.Affine(x=1, a=2, b=3, site="north"))
    with federation.session(output="none") as session:
        runner: Any = session._connection._runner
        before = runner.processes["north"]
        kill(session, "north")
        while runner.processes.get("north", before) == before:
            pass
        os.kill(runner.processes["north"], signal.SIGSTOP)
        assert session.submit(p).result(LIMIT)["yield"] == [5]


def test_a_session_whose_host_is_gone_takes_no_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took them, and they never ended."""
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir(mode=0o700)
    federation = dfmesh.Federation.load(FEDERATION)
    with Pipeline() as p:
        Yield(federation.ops.chaos.Wait(seconds=30, x=1, site="home"))
    command = [sys.executable, "-m", "dfmesh", "up", str(FEDERATION), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        assert b"up" in host.stdout.readline()
        session = federation.session("up").connect()
        job = session.submit(p)
        session.jobs()
        host.kill()
        assert job.wait(LIMIT)
        assert [error.kind for error in job.errors] == ["HostLost"]
        with pytest.raises(dfmesh.SessionError, match="is gone"):
            session.submit(p)
        session.close()


def test_what_a_site_keeps_of_freed_arrays_does_not_grow_with_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread had an arena of its own: 16 on two cores, each with up to 40 MB."""
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert environment()["MALLOC_ARENA_MAX"] == "2"
    monkeypatch.setenv("MALLOC_ARENA_MAX", "5")
    assert environment()["MALLOC_ARENA_MAX"] == "5"
