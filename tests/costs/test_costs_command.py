"""`dfmesh costs` and `dfmesh simulate`, as users meet them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest
from typer.testing import CliRunner

from dfmesh import Federation
from dfmesh.cli.app import app

FEDERATION = """
dfm: 1.0.0
info: {name: shop}
operations:
  shop.Numbers: {parameters: {n: {type: integer}}, required: [n]}
  shop.Double: {parameters: {x: {}}, required: [x]}
sites:
  app:
    interface:
      shop.Numbers: {adapter: costs_shop.numbers}
  a:
    interface:
      shop.Double:
        adapter: costs_shop.double
        compute_cost: {fixed_time: 0.25, compute_throughput: 2000000, output_factor: 2}
    providers:
      quick:
        interface:
          shop.Double: {adapter: costs_shop.double}
"""

ADAPTERS = """
def numbers(n):
    return list(range(n))

def double(x):
    return x * 2
"""

PIPELINE = """
from dfmesh import ForEach, Pipeline, PlaceParam, Yield

def build(federation):
    with Pipeline(name="doubles") as pipeline:
        with ForEach(federation.ops.shop.Numbers(n=PlaceParam("n")), node_id="loop") as x:
            Yield(federation.ops.shop.Double(x=x))
    return pipeline
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DFMESH_MEASURE", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.dfm.yaml").write_text(dedent(FEDERATION))
    (tmp_path / "costs_shop.py").write_text(dedent(ADAPTERS))
    (tmp_path / "doubles.py").write_text(dedent(PIPELINE))
    return tmp_path


@pytest.fixture
def after_a_run(folder: Path) -> Path:
    from dfmesh.cli.documents import load_pipeline

    federation = Federation.load("shop.dfm.yaml")
    with federation.session("inproc") as session:
        session.run(load_pipeline("doubles.py", federation), n=6)
    return folder


def dfmesh(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_before_any_run_the_table_shows_what_is_declared(folder: Path) -> None:
    lines = dfmesh("costs", "shop.dfm.yaml").splitlines()
    assert lines[0].split()[:5] == ["operation", "site", "declared", "measured", "loading"]
    assert " ".join(lines[2].split()) == "shop.Double a 250 ms + 2 MB/s - - 2 x input - 0"
    assert " ".join(lines[3].split()) == "shop.Double a, quick - - - - - 0"
    assert lines[-1].startswith("nothing has been measured yet")


def test_after_a_run_it_shows_what_was_measured(after_a_run: Path) -> None:
    shown = json.loads(dfmesh("costs", "shop.dfm.yaml", "--json"))
    rows = {(row["operation"], row["site"], row["provider"]): row for row in shown["operations"]}
    assert rows["shop.Double", "a", None]["seconds"] > 0
    assert rows["shop.Double", "a", "quick"]["seconds"] is None
    assert shown["statements"] == [
        {"pipeline": "doubles", "statement": "loop", "construct": "ForEach", "measured": 6.0, "count": 1}
    ]
    assert "doubles" in dfmesh("costs", "shop.dfm.yaml")
    assert "shop.Numbers" not in dfmesh("costs", "shop.dfm.yaml", "shop.Double")


def test_a_reset_forgets_one_operation_or_all(after_a_run: Path) -> None:
    def known() -> set[str]:
        rows = json.loads(dfmesh("costs", "shop.dfm.yaml", "--json"))["operations"]
        return {row["operation"] for row in rows if row["size"] is not None}

    assert known() == {"shop.Numbers", "shop.Double"}
    assert "forgot the measured costs of shop.Double" in dfmesh("costs", "shop.dfm.yaml", "--reset", "shop.Double")
    assert known() == {"shop.Numbers"}
    assert json.loads(dfmesh("costs", "shop.dfm.yaml", "--reset", "--json"))["reset"] == "all"
    assert known() == set()


def test_an_unknown_operation_is_named_with_those_there_are(folder: Path) -> None:
    result = CliRunner().invoke(app, ["costs", "shop.dfm.yaml", "shop.Duble"])
    assert result.exit_code != 0
    assert "shop.Double" in result.output


def test_simulate_says_what_it_had_to_assume(folder: Path) -> None:
    text = dfmesh("simulate", "shop.dfm.yaml", "doubles.py")
    assert "10 results" in text
    assert "assumed: ForEach loop" in text
    assert "--iterations STATEMENT=N" in text


def test_simulate_takes_figures(folder: Path) -> None:
    text = dfmesh("simulate", "shop.dfm.yaml", "doubles.py", "--iterations", "loop=1000", "--param", "n=3")
    assert "1,000 results" in text
    assert "assumed" not in text
    assert "bottleneck: shop.Double" in text
    data = json.loads(dfmesh("simulate", "shop.dfm.yaml", "doubles.py", "--iterations", "loop=20", "--json"))
    assert data["results"] == 20


def test_simulate_knows_what_a_run_has_measured(after_a_run: Path) -> None:
    text = dfmesh("simulate", "shop.dfm.yaml", "doubles.py", "--cold")
    assert "6 results" in text
    assert "assumed" not in text


@pytest.mark.parametrize("option", ["--iterations", "--share"])
@pytest.mark.parametrize("text", ["loop", "loop=", "=3", "loop=many"])
def test_figures_that_cannot_be_read_are_refused(folder: Path, option: str, text: str) -> None:
    output = CliRunner().invoke(app, ["simulate", "shop.dfm.yaml", "doubles.py", option, text])
    assert output.exit_code != 0
    assert "STATEMENT=NUMBER" in output.output


def test_on_a_terminal_a_long_simulation_says_how_far_it_is_and_ctrl_c_ends_it(folder: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from dfmesh.cli import main; main()", "simulate", "shop.dfm.yaml", "doubles.py"]
    with subprocess.Popen(
        [*command, "--iterations", "loop=100000000"],
        env={**os.environ, "COLUMNS": "100", "LINES": "40", "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # The end of a terminal.
            while data := os.read(ours, 65536):
                if b"of the run," not in shown and b"of the run," in shown + data:
                    process.send_signal(signal.SIGINT)
                shown += data
        os.close(ours)
        printed, _ = process.communicate(timeout=60)
        watchdog.cancel()
    assert process.returncode == 130
    assert printed == b""
    text = shown.decode()
    assert "simulating: " in text
    assert text.rstrip().endswith("interrupted\x1b[0m")
    assert "Traceback" not in text
