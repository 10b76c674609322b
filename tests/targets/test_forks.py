"""Children that adapters fork off a site are the adapter's: their end is not the site's."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dfmesh import Federation, ForEach, Pipeline, Session, Yield

FILE = Path(__file__).resolve().parents[1] / "federations" / "forking" / "forking.dfm.yaml"


@pytest.fixture(scope="module", params=["local", "inproc"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with Federation.load(FILE).session(target=request.param, homesite="lab") as opened:
        yield opened
    sys.modules.pop("forking_operations", None)


@pytest.mark.parametrize("site", ["lab", "apart"])
@pytest.mark.parametrize("how", ["at once", "when it works"])
def test_a_child_is_terminated(session: Session, how: str, site: str) -> None:
    with Pipeline() as pipeline, ForEach(range(5)):
        Yield(session.federation.ops.fork.Terminate(how=how, site=site))
    assert session.run(pipeline)["yield"] == [[-signal.SIGTERM]] * 5


@pytest.mark.parametrize("site", ["lab", "apart"])
def test_a_pool_is_left(session: Session, site: str) -> None:
    with Pipeline() as pipeline, ForEach(range(3)):
        Yield(session.federation.ops.fork.Terminate(how="pool", site=site))
    assert session.run(pipeline)["yield"] == [[1, 2]] * 3


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize("site", ["lab", "apart"])
def test_a_child_that_outlives_its_site_holds_nothing_of_it(
    site: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DFMESH_LOCAL_TRANSPORT", transport)
    children = []
    try:
        with Federation.load(FILE).session(target="local", homesite="apart") as session:
            with Pipeline() as detach:
                Yield(session.federation.ops.fork.Detach(site=site))
            with Pipeline() as dying:
                Yield(session.federation.ops.fork.Terminate(how="itself", site=site))
            for _ in range(2):
                child, connections = session.run(detach).one()
                children.append(psutil.Process(child))
                assert connections == 0
                job = session.submit(dying)
                assert job.wait(timeout=60)
                assert job.errors[0].kind == ("SiteLost" if site == "lab" else "AdapterProcessError")
        assert all(child.status() == psutil.STATUS_SLEEPING for child in children)
    finally:
        for child in children:
            child.kill()
