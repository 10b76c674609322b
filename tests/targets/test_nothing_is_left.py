"""However the client ends, no process, socket file, directory or shared memory stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from stub_federation import shared_files

LIMIT = 60.0
"""Seconds after which something that should happen at once has not happened, however busy the machine is."""

SCRIPT = str(Path(__file__).with_name("script_client.py"))


def start(how: str, tmp_path: Path, transport: str = "unix") -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    environment = {**os.environ, "DFMESH_LOCAL_TRANSPORT": transport}
    client = subprocess.Popen(
        [sys.executable, SCRIPT, how, str(tmp_path / "x.dfm.yaml")], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert client.stdout is not None
    pids = [int(pid) for pid in client.stdout.readline().split()]
    assert len(pids) == 3
    sites = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # Of a client that ends at once.
            sites.append(psutil.Process(pid))
    return client, sites


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "still there"
        time.sleep(0.005)


def gone(processes: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize("how", ["wait", "busy", "hang", "fork"])
def test_client_killed(how: str, transport: str, tmp_path: Path) -> None:
    before = shared_files()
    client, sites = start(how, tmp_path, transport)
    assert client.stdout is not None
    assert client.stdout.readline() == "waiting\n"
    forks = [p for p in psutil.Process(client.pid).children() if p not in sites]
    grandchildren = [child for site in sites for child in site.children()]
    assert bool(grandchildren) == (how == "hang")
    client.kill()
    client.wait()
    try:
        wait_for(lambda: gone([*sites, *grandchildren]))
    finally:
        for fork in forks:
            fork.kill()
    assert client.stdout.read() == "", "nobody holds the client's output open"
    assert shared_files() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["leave", "raise"])
def test_client_ends_without_closing(how: str, tmp_path: Path) -> None:
    client, sites = start(how, tmp_path)
    client.wait(timeout=LIMIT)
    assert gone(sites)


def test_the_lifeline_without_help_of_the_kernel() -> None:
    code = (
        "import sys, time; from dfmesh.processes import lifeline; lifeline._LINUX = False;"
        "lifeline.arm(int(sys.argv[1])); print('armed', flush=True); time.sleep(60)"
    )
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(reader)], pass_fds=[reader], process_group=0, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "armed\n"
    assert process.poll() is None
    os.close(writer)
    assert process.wait(timeout=LIMIT) == -signal.SIGKILL
    process.stdout.close()
    os.close(reader)


def test_client_interrupted(tmp_path: Path) -> None:
    client, sites = start("interrupt", tmp_path)
    client.send_signal(signal.SIGINT)
    client.wait(timeout=LIMIT)
    assert gone(sites)
