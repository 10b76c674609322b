"""The weather day on a federation that is up, with its client and its homesite killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

FEDERATION = Path(__file__).resolve().parents[2] / "examples" / "weather_day" / "weather.dfm.yaml"


@pytest.fixture(autouse=True)
def own_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        (tmp_path / name.lower()).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    yield
    assert list((tmp_path / "xdg_runtime_dir").glob("*/*")) == []


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from dfmesh.cli import main; main()", *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, cwd: Path) -> str:
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return out


def wait_for(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.01)
    return found


def site(host: psutil.Process, name: str) -> psutil.Process | None:
    for child in host.children():
        try:
            if name in child.cmdline():
                return child
        except psutil.NoSuchProcess:  # It is just dying.
            pass
    return None


def test_the_page_is_complete_after_kills_of_client_and_homesite(tmp_path: Path) -> None:
    host = psutil.Process(json.loads(run("up", str(FEDERATION), "--detach", "--json", cwd=tmp_path))["pid"])
    try:
        mexico, homesite = site(host, "mx"), site(host, "app")
        assert mexico is not None
        assert homesite is not None
        client = start("demo", "weather", "--target", "up", "--out", "first", cwd=tmp_path)
        assert client.stdout is not None
        told = client.stdout.readline()
        assert told.startswith("job "), client.communicate(timeout=60)
        job = told.split()[1]
        wait_for(lambda: list((tmp_path / "first").glob("map-*.png")))
        mexico.suspend()  # From now on the day cannot come to its end.

        elsewhere = start("attach", job, "--out", "elsewhere", cwd=tmp_path)
        wait_for(lambda: list((tmp_path / "elsewhere").glob("frame/*.png")))
        elsewhere.send_signal(signal.SIGINT)
        _, err = elsewhere.communicate(timeout=60)
        assert (elsewhere.returncode, f"detached; job {job} goes on" in err) == (130, True)

        client.kill()
        client.communicate()
        homesite.kill()
        wait_for(lambda: (found := site(host, "app")) is not None and found != homesite)
        listed = json.loads(run("jobs", "--json", cwd=tmp_path))
        assert [(entry["id"], entry["status"]) for entry in listed] == [(job, "running")]
        assert 0 < listed[0]["results"] < 24 + 3 * 24
        mexico.resume()

        said = run("demo", "weather", "--target", "up", "--job", job, "--out", "last", cwd=tmp_path)
        assert "24 maps: last/map-00.png to map-23.png" in said
        assert "24,199" in said
        maps = sorted((tmp_path / "last").glob("map-*.png"))
        assert len(maps) == 24
        for early in (tmp_path / "first").glob("map-*.png"):
            if early.stat().st_size:  # The client may have been killed while it wrote its last one.
                assert (tmp_path / "last" / early.name).read_bytes().startswith(early.read_bytes())
        page = (tmp_path / "last" / "index.html").read_text("utf-8")
        assert page.count("data:image/png;base64,") >= 24 or page.count("map-") >= 24

        # Each result once, though some of them were made twice.
        run("attach", job, "--out", "all", cwd=tmp_path)
        index = json.loads((tmp_path / "all" / "index.json").read_text("utf-8"))
        assert index["status"] == "finished"
        keys = [(entry["place"], tuple(entry["frame"]), entry["node"]) for entry in index["results"]]
        assert len(keys) == len(set(keys)) == 24 + 3 * 24
    finally:
        run("down", cwd=tmp_path)
