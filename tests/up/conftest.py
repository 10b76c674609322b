"""A federation that runs on its own, for tests: each has its own directories, and nothing may be left in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from up_host import UpHost, write_federation

from dfmesh import Federation


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a federation, and directories of its own for sockets and jobs."""
    return make_place(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same for all tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        yield make_place(tmp_path_factory.mktemp("up"), patch)


def make_place(directory: Path, patch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        folder = directory / name.lower()
        folder.mkdir(mode=0o700)
        patch.setenv(name, str(folder))
    write_federation(directory)
    return directory


@pytest.fixture
def start_host(place: Path) -> Iterator[Callable[..., UpHost]]:
    """Start hosts of the federation; those that run at the end are stopped, and nothing is left of them."""
    started: list[UpHost] = []

    def start(*arguments: str) -> UpHost:
        started.append(UpHost(place / "up.dfm.yaml", *arguments))
        return started[-1]

    yield start
    for host in started:
        host.stop()
    assert [path.name for path in (place / "xdg_runtime_dir" / "dfmesh").iterdir()] == []


@pytest.fixture(scope="module")
def shared_host(shared_place: Path) -> Iterator[UpHost]:
    """One host for all tests of a module."""
    host = UpHost(shared_place / "up.dfm.yaml")
    yield host
    host.stop()


@pytest.fixture
def federation(place: Path) -> Federation:
    return Federation.load(place / "up.dfm.yaml")


@pytest.fixture(scope="module")
def shared_federation(shared_host: UpHost) -> Federation:
    return Federation.load(shared_host.file)
