"""What chaos runs have found, each as small as it can be."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from chaos_run.client import FEDERATION

import dfmesh
from dfmesh import Pipeline, Yield

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
