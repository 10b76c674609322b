"""What the tests of discovery share: the sky federation, and a session on it per target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dfmesh

SKY = Path(__file__).parent / "federation" / "sky.dfm.yaml"


@pytest.fixture(scope="session")
def fed() -> Any:
    return dfmesh.Federation.load(SKY)


@pytest.fixture(scope="session")
def ops(fed: Any) -> Any:
    return fed.ops


@pytest.fixture(scope="session", params=["inproc", "local"])
def session(request: pytest.FixtureRequest, fed: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    log = tmp_path_factory.mktemp("sky") / "ran"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKY_LOG", str(log))
        with fed.session(target=request.param, homesite="app") as session:
            session.ran = log
            yield session
