"""What adapters print, log and warn of reaches the user, line by line, and holds nobody up."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from speaking_federation import write_federation

import dfmesh
from dfmesh import Pipeline, Yield
from dfmesh.session.site_output import MAX_WAITING, SiteOutput
from dfmesh.targets.local.output_lines import LONGEST_LINE, OutputLines

Heard = list[tuple[str, str]]


@pytest.fixture
def federation(tmp_path: Path) -> Any:
    return dfmesh.Federation.load(write_federation(tmp_path))


def say(session: Any, *hows: str, site: str = "us", count: int = 1) -> None:
    with Pipeline() as p:
        for how in hows:
            Yield(session.federation.ops.talk.Say(how=how, count=count, site=site))
    session.run(p)


@pytest.fixture
def heard_of(federation: Any) -> Callable[..., Heard]:
    def run(*hows: str, site: str = "us") -> Heard:
        heard: Heard = []
        with federation.session(measure=False, output=lambda site, line: heard.append((site, line))) as session:
            say(session, *hows, site=site)
        return heard

    return run


@pytest.mark.parametrize(
    ("how", "lines"),
    [
        ("print", ["careful", "and on stderr"]),
        ("log", ["WARNING speaking: loud"]),
        ("configured", ["my own word"]),
        ("child", ["from a child"]),
        ("part", ["no end"]),
        ("bar", ["100%"]),
        ("bytes", ["café \N{REPLACEMENT CHARACTER}"]),
    ],
)
def test_lines_are_given_and_nothing_else(heard_of: Callable[..., Heard], how: str, lines: list[str]) -> None:
    assert heard_of(how, site="ca") == [("ca", line) for line in lines]


def test_warnings_are_given(heard_of: Callable[..., Heard]) -> None:
    line = heard_of("warn")[0][1]
    assert "UserWarning: mind the gap" in line
    assert "speaking.py" in line


def test_the_level_can_be_asked_for(heard_of: Callable[..., Heard], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFMESH_LOG_LEVEL", "info")
    assert heard_of("log") == [("us", "INFO speaking: quiet"), ("us", "WARNING speaking: loud")]


def test_a_level_that_is_none_is_refused(federation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFMESH_LOG_LEVEL", "loud")
    with pytest.raises(dfmesh.SessionError, match="DFMESH_LOG_LEVEL='LOUD' is no level"):
        federation.session()


def test_an_output_that_is_none_is_refused(federation: Any) -> None:
    with pytest.raises(dfmesh.SessionError, match="output='stdout'"):
        federation.session(output="stdout")


def test_by_default_on_standard_error(federation: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with federation.session(measure=False) as session:
        say(session, "print")
    captured = capsys.readouterr()
    assert captured.err == "[us] careful\n[us] and on stderr\n"
    assert captured.out == ""


def test_not_at_all(federation: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with federation.session(measure=False, output="none") as session:
        say(session, "print")
    assert capfd.readouterr() == ("", "")


def test_a_session_in_which_nobody_speaks_is_quiet(federation: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with federation.session(measure=False) as session:
        say(session, "nothing")
    assert capfd.readouterr() == ("", "")


def test_what_a_start_and_an_end_print_is_not_shown(
    federation: Any, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    noise = "import atexit, sys\nprint('noise', file=sys.stderr)\natexit.register(print, 'more noise')\n"
    (tmp_path / "noisy").mkdir()
    (tmp_path / "noisy" / "sitecustomize.py").write_text(noise, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "noisy"))
    with federation.session(measure=False) as session:
        say(session, "print")
    assert capfd.readouterr() == ("", "[us] careful\n[us] and on stderr\n")


def test_lines_come_while_the_job_runs(federation: Any) -> None:
    came = threading.Event()
    with federation.session(measure=False, output=lambda site, line: came.set()) as session:
        say(session, "print")
        assert came.wait(60)


def test_a_function_that_raises_or_hangs_holds_nobody_up(federation: Any) -> None:
    release = threading.Event()
    calls: Heard = []

    def hang(site: str, line: str) -> None:
        calls.append((site, line))
        release.wait(60)
        raise ValueError("mine")

    with federation.session(measure=False, output=hang) as session:
        say(session, "flood", count=30_000)
        say(session, "print", site="ca")
        assert len(calls) == 1
        release.set()
    assert calls[-1][0] in {"us", "ca"}
    assert {site: line for site, line in calls if "dropped" in line}.keys() == {"us", "ca"}
    dropped = sum(int(line.split()[1].replace(",", "")) for _, line in calls if "dropped" in line)
    assert dropped + sum("dropped" not in line for _, line in calls) == 30_002


def test_dropped_lines_are_counted_once() -> None:
    shown: Heard = []
    holding, release = threading.Event(), threading.Event()

    def show(site: str, line: str) -> None:
        holding.set()
        release.wait(60)
        shown.append((site, line))

    output = SiteOutput(show)
    output.take("us", "first")
    assert holding.wait(60)
    for _ in range(MAX_WAITING // 1000):
        output.take("us", "x" * 2000)
    release.set()
    output.close()
    *lines, note = shown
    assert note == ("us", f"... {MAX_WAITING // 1000 + 1 - len(lines)} lines dropped")
    assert MAX_WAITING < sum(len(line) + 64 for _, line in lines[1:]) < MAX_WAITING + 2100


def test_lines_are_cut() -> None:
    lines = OutputLines()
    assert lines.feed(b"a\nb\r\n\nc") == ["a", "b", ""]
    assert lines.feed(b"d\r") == []
    assert lines.feed(b"\ne\rf") == ["cd"]
    assert lines.feed(b"\n") == ["f"]
    assert lines.end() == []
    pieces = lines.feed(b"x" * (3 * LONGEST_LINE + 1))
    assert [len(piece) for piece in pieces] == [LONGEST_LINE] * 3 + [1]
    assert lines.feed(b"y") == []
    assert lines.end() == ["y"]


CLIENT = """
import sys
sys.path.insert(0, sys.argv[2])
import dfmesh
from dfmesh import Pipeline, Yield

fed = dfmesh.Federation.load(sys.argv[1])
session = fed.session(measure=False).connect()
with Pipeline() as p:
    Yield(fed.ops.talk.Say(how="flood", count=40_000, site="us"))
    Yield(fed.ops.talk.Say(how="flood", count=40_000, site="ca"))
session.run(p)
print("done", flush=True)
if sys.argv[3] == "close":
    session.close()
elif sys.argv[3] == "wait":
    sys.stdin.read()
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(how: str) -> subprocess.Popen[str]:
        file = write_federation(tmp_path)
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CLIENT), str(file), str(Path(dfmesh.__file__).parents[1]), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["close", "leave"])
def test_a_standard_error_that_nobody_reads_holds_nobody_up(client: Any, how: str) -> None:
    process = client(how)
    assert process.stdout.readline() == "done\n"
    assert process.wait(timeout=60) == 0


def test_a_killed_client_leaves_nobody_with_its_streams(client: Any) -> None:
    process = client("wait")
    assert process.stdout.readline() == "done\n"
    process.kill()
    shown = process.stderr.read()  # to its end, which comes only if nobody else has it
    assert shown.startswith("[")
    assert process.stdout.read() == ""


def test_a_standard_error_that_is_gone_holds_nobody_up(client: Any) -> None:
    process = client("close")
    process.stderr.close()
    assert process.stdout.readline() == "done\n"
    assert process.wait(timeout=60) == 0
    process.stderr = open(os.devnull)  # noqa: SIM115 - for communicate()
