"""Fixtures of the tests of targets."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stub_federation import STUB, Config, Stubs, Test, shared_files, site_processes

from dfmesh.targets.local.runner import LocalFederationRunner


@pytest.fixture(params=["unix", "tcp"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run_stubs(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Run a test with a federation of stubs, and see to it that nothing is left."""
    before = shared_files()

    def run(test: Test, sites: Iterable[str] = ("a", "b", "c"), transport: str = "unix", **options: Any) -> None:
        async def body() -> None:
            runner = LocalFederationRunner(
                Config(tmp_path / "x.dfm.yaml", sites),  # type: ignore[arg-type]
                "a",
                transport=transport,
                program=STUB,
                **options,
            )
            stubs = Stubs(runner)
            await runner.start(stubs.got.put_nowait, stubs.lost.put_nowait)
            try:
                await test(stubs)
            finally:
                await runner.close()

        asyncio.run(body())

    yield run
    assert [p for p in site_processes() if p.ppid() == os.getpid()] == []
    assert shared_files() == before
    assert "dfmesh.targets.local.site_process" not in sys.modules
