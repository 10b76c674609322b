"""Sites that live and do not answer: those that do nothing are ended, those that work are told of."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from stub_federation import Config, Stubs

from dfmesh.errors import SessionError
from dfmesh.targets.local.runner import LocalFederationRunner

Run = Callable[..., None]
SILENT = 1.2
REASON = f"lost b: ended by dfmesh: its event loop stood still for {SILENT:g} s and its process did nothing"


@pytest.mark.parametrize("how", ["stopped", "blocked"])
def test_a_site_that_hangs_is_ended_and_restarted(run_stubs: Run, how: str) -> None:
    async def test(stubs: Stubs) -> None:
        stubs.tell("echo")  # or the homesite does not know us
        await stubs.hear()
        if how == "stopped":
            os.kill(stubs.runner.processes["b"], signal.SIGSTOP)
        else:
            assert await stubs.ask("hang_loop", to="b") == "hanging"
        heard = {await stubs.hear_text(), await stubs.hear_text()}
        assert all(text.startswith(REASON) for text in heard), heard
        assert await stubs.ask("flood", "b", 1000, to="c") == "b got 1000 from c, 0 out of order"

    run_stubs(test, silent_seconds=SILENT)


@pytest.mark.parametrize("system_tells", [True, False])
def test_a_site_that_works_is_told_of(run_stubs: Run, monkeypatch: pytest.MonkeyPatch, system_tells: bool) -> None:
    """Also where the system does not tell how much a process works, nobody is ended for nothing."""
    if not system_tells:
        monkeypatch.setattr("dfmesh.targets.local.heartbeats.cpu_seconds", lambda pid: None)
    lines: list[tuple[str, str]] = []

    async def test(stubs: Stubs) -> None:
        process = stubs.runner.processes["b"]
        assert await stubs.ask("hang_hard", to="b") == "hanging"
        async with asyncio.timeout(60):
            while not any("its process works" in line for _, line in lines):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await asyncio.sleep(1.5 * SILENT)
        assert stubs.runner.processes["b"] == process
        assert [site for site, line in lines if "has stood still" in line] == ["b"]

    run_stubs(test, silent_seconds=SILENT, on_output=lambda site, line: lines.append((site, line)))


def test_that_we_stood_still_ourselves_is_not_held_against_sites(run_stubs: Run) -> None:
    """As when the machine is suspended: all processes stand still, and the clock does not."""

    async def test(stubs: Stubs) -> None:
        processes = stubs.runner.processes
        for process in processes.values():
            os.kill(process, signal.SIGSTOP)
        time.sleep(2 * SILENT)  # noqa: ASYNC251 - our own loop is to stand still
        for process in processes.values():
            os.kill(process, signal.SIGCONT)
        assert await stubs.ask("flood", "b", 1000, to="c") == "b got 1000 from c, 0 out of order"
        await asyncio.sleep(SILENT / 2)
        assert stubs.runner.processes == processes

    run_stubs(test, silent_seconds=SILENT)


@pytest.mark.parametrize("text", ["soon", "-1", "inf"])
def test_wrong_number_of_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, text: str) -> None:
    monkeypatch.setenv("DFMESH_SILENT_SECONDS", text)
    with pytest.raises(SessionError, match="is no number of seconds"):
        LocalFederationRunner(Config(tmp_path / "x.dfm.yaml", "a"), "a")  # type: ignore[arg-type]
