"""`dfmesh up`, `down`, `jobs`, `attach`, `cancel`, `logs`, and `run --target up`, as users run them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cli_process import dfmesh, start

LOUD = """

def numbers(n):
    print(f"counting to {n}", flush=True)
    return list(range(n))
"""


@pytest.fixture
def place(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The shop, with directories of its own for sockets and jobs; nothing may be left of its hosts."""
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        (shop / name.lower()).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(shop / name.lower()))
    with (shop / "cli_shop.py").open("a", encoding="utf-8") as file:
        file.write(LOUD)
    (shop / "params.json").write_text(json.dumps([{"n": 2}, {"n": 3}]), "utf-8")
    yield shop
    assert list((shop / "xdg_runtime_dir").glob("*/*")) == []


@pytest.fixture
def up(place: Path) -> Iterator[psutil.Process]:
    """The shop, up in the background."""
    done = dfmesh("up", "shop.dfm.yaml", "--detach", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    event = json.loads(done.stdout)
    assert (event["event"], event["homesite"], event["sites"]) == ("up", "app", ["app", "a", "b"])
    host = psutil.Process(event["pid"])
    sites = host.children()
    yield host
    if is_alive(host):
        assert dfmesh("down", cwd=place).returncode == 0
    assert not any(is_alive(process) for process in (host, *sites))


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def jobs(place: Path) -> list[dict[str, object]]:
    return list(json.loads(dfmesh("jobs", "--json", cwd=place).stdout))


@pytest.mark.usefixtures("up")
def test_a_job_is_run_listed_and_met_again(place: Path) -> None:
    arguments = ["shopping.py", "--params", "params.json", "--target", "up"]
    run = dfmesh("run", "shop.dfm.yaml", *arguments, cwd=place)
    assert run.returncode == 0, run.stderr
    assert "dfmesh-results/index.json: 5 results" in run.stdout
    left = dfmesh("run", "shop.dfm.yaml", *arguments, "--detach", cwd=place)
    job = left.stdout.strip()
    met = dfmesh("attach", job[:10], "--out", "met", cwd=place)
    assert met.returncode == 0, met.stderr
    assert "met/index.json: 5 results" in met.stdout
    assert "shopping: finished" in met.stderr
    assert sorted(path.name for path in (place / "met/doubled").iterdir()) == [
        f"{first:04d}-{second:04d}.json" for first, count in ((0, 2), (1, 3)) for second in range(count)
    ]
    assert json.loads((place / "met/index.json").read_text("utf-8"))["job"] == job
    listed = jobs(place)
    assert [(entry["name"], entry["status"], entry["results"]) for entry in listed] == [("shopping", "finished", 5)] * 2
    table = dfmesh("jobs", "shop.dfm.yaml", cwd=place)
    assert "2 jobs, 0 going on" in table.stdout
    assert job[:8] in table.stdout
    logs = dfmesh("logs", "a", "--job", job, cwd=place)
    lines = [line.split(" ", 1)[1] for line in logs.stdout.splitlines()]
    assert all(line.startswith("[a") for line in lines)
    assert sorted(line.partition("] ")[2] for line in lines) == ["counting to 2", "counting to 3"]
    data = [json.loads(line) for line in dfmesh("logs", "--job", job, "--json", cwd=place).stdout.splitlines()]
    assert [f"[{line['site']} {line['operation']} #{line['frame'][0]}] {line['text']}" for line in data] == lines
    assert dfmesh("logs", "b", cwd=place).stdout == ""
    assert len(dfmesh("logs", cwd=place).stdout.splitlines()) == 4
    wrong = dfmesh("logs", "c", cwd=place)
    assert (wrong.returncode, "no site 'c'" in wrong.stderr) == (2, True)
    assert dfmesh("jobs", "--forget", job, cwd=place).stdout == f"{job} is forgotten\n"
    missing = dfmesh("attach", job, cwd=place)
    assert (missing.returncode, "there is no job" in missing.stderr) == (4, True)


@pytest.mark.usefixtures("up")
def test_ctrl_c_detaches_and_cancel_cancels(place: Path) -> None:
    job = dfmesh("run", "shop.dfm.yaml", "shopping.py:waiting", "--target", "up", "--detach", cwd=place).stdout.strip()
    process = start("attach", job, "--json", cwd=place)
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "result":
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out.splitlines()[-1])["status"] == "detached"
    assert [entry["status"] for entry in jobs(place)] == ["running"]
    follower = start("attach", job, cwd=place)  # The directory holds results of the same job, which is fine.
    assert dfmesh("cancel", job, "--file", "shop.dfm.yaml", cwd=place).stdout == f"{job} is cancelled\n"
    out, err = follower.communicate(timeout=60)
    assert follower.returncode == 130
    assert "cancelled (cancelled with `dfmesh cancel`); what had come is kept: 1 result" in err
    assert "index.json: 1 result" in out
    again = dfmesh("cancel", job, cwd=place)
    assert (again.returncode, f"job {job} is over already" in again.stderr) == (4, True)


@pytest.mark.usefixtures("up")
def test_a_failed_job_fails_whoever_looks(place: Path) -> None:
    run = dfmesh("run", "shop.dfm.yaml", "shopping.py:failing", "--target", "up", "--out", "one", cwd=place)
    met = dfmesh("attach", str(jobs(place)[0]["id"]), "--out", "two", cwd=place)
    for done in (run, met):
        assert done.returncode == 3
        assert "shopping.py:17: shop.Fail" in done.stderr
        assert "ValueError: no more bread" in done.stderr


def test_logs_are_followed(place: Path, up: psutil.Process) -> None:
    follower = start("logs", "--follow", cwd=place)
    assert follower.stdout is not None
    for n in (4, 7):
        arguments = ["shopping.py", "--param", f"n={n}", "--target", "up", "--detach"]
        job = dfmesh("run", "shop.dfm.yaml", *arguments, cwd=place).stdout.strip()
        assert follower.stdout.readline().endswith(f"[a] counting to {n}\n")
    up.kill()
    _, err = follower.communicate(timeout=60)
    assert follower.returncode == 4
    assert "is gone" in err
    assert len(dfmesh("logs", "--file", "shop.dfm.yaml", cwd=place).stdout.splitlines()) == 2
    (line,) = dfmesh("logs", "--file", "shop.dfm.yaml", "--job", job[:10], cwd=place).stdout.splitlines()
    assert line.endswith("] counting to 7")
    missing = dfmesh("logs", "--file", "shop.dfm.yaml", "--job", "no", cwd=place)
    assert (missing.returncode, "there is no job 'no'" in missing.stderr) == (4, True)
    gone = dfmesh("down", "shop.dfm.yaml", cwd=place)
    assert (gone.returncode, "is not up" in gone.stderr) == (4, True)


def test_in_the_foreground(place: Path) -> None:
    host = start("up", "shop.dfm.yaml", cwd=place)
    assert host.stdout is not None
    assert host.stdout.readline().startswith("shop is up: host shop-")
    assert host.stdout.readline() == "  sites   app (homesite), a, b\n"
    dfmesh("run", "shop.dfm.yaml", "shopping.py", "--param", "n=1", "--target", "up", cwd=place)
    host.send_signal(signal.SIGINT)
    out, err = host.communicate(timeout=60)
    assert host.returncode == 0
    assert "[a] counting to 1\n" in err
    assert out.endswith("shop is down\n")


def test_what_cannot_be_started(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = dfmesh("jobs", cwd=place)
    assert (none.returncode, "no federation is up; start one with `dfmesh up FILE`" in none.stderr) == (4, True)
    run = dfmesh("run", "shop.dfm.yaml", "shopping.py", "--target", "up", cwd=place)
    assert (run.returncode, "shop.dfm.yaml is not up" in run.stderr) == (4, True)
    wrong = dfmesh("run", "shop.dfm.yaml", "shopping.py", "--detach", cwd=place)
    assert (wrong.returncode, "--target up" in wrong.stderr) == (2, True)
    for arguments in (["--detach"], []):
        site = dfmesh("up", "shop.dfm.yaml", "--homesite", "nowhere", *arguments, cwd=place)
        assert (site.returncode, "--homesite nowhere: no such site" in site.stderr) == (2, True)
    text = (place / "shop.dfm.yaml").read_text("utf-8")
    (place / "shop.dfm.yaml").write_text(text + "  b: {}\n", "utf-8")
    faulty = dfmesh("up", "shop.dfm.yaml", "--detach", cwd=place)
    assert (faulty.returncode, "shop.dfm.yaml has 1 mistake" in faulty.stderr) == (1, True)
    (place / "shop.dfm.yaml").write_text(text, "utf-8")
    monkeypatch.setenv("DFMESH_LOG_LEVEL", "LOUD")
    background = dfmesh("up", "shop.dfm.yaml", "--detach", cwd=place)
    assert (background.returncode, "DFMESH_LOG_LEVEL='LOUD' is no level" in background.stderr) == (4, True)


def test_the_host_in_the_background_is_on_its_own(place: Path, up: psutil.Process) -> None:
    assert os.getsid(up.pid) == up.pid
    (log,) = place.rglob("host.log")
    assert log.stat().st_mode & 0o777 == 0o600
    second = dfmesh("up", "shop.dfm.yaml", "--detach", cwd=place)
    assert (second.returncode, "is up already" in second.stderr) == (4, True)
    dfmesh("run", "shop.dfm.yaml", "shopping.py:waiting", "--target", "up", "--detach", cwd=place)
    down = dfmesh("down", cwd=place)
    assert down.returncode == 0
    assert "1 job was going on and goes on when it is up again" in down.stdout
