"""What the commands say: whole sentences, the user's own spelling, numbers that agree with their nouns."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli_process import dfmesh

from dfmesh.cli.progress import JobView

WRITTEN = """
from dfmesh import Pipeline, PlaceParam, Yield


def one(federation):
    with Pipeline() as pipeline:
        Yield(PlaceParam("above"), place="x")
    return pipeline


def nothing(federation):
    with Pipeline() as pipeline:
        federation.ops.shop.Double(x=1)
    return pipeline
"""


@pytest.fixture
def written(shop):
    (shop / "written.py").write_text(WRITTEN)
    return shop


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_summaries_of_commands_are_whole_at_80_columns(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from dfmesh.cli import main; main()", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80"},
    )
    commands = done.stdout.partition("Commands:")[2].strip().splitlines()
    assert commands
    assert all(line.endswith(".") and not line.endswith("...") for line in commands), done.stdout


@pytest.mark.parametrize(("command", "optional"), [("validate", "PIPELINE"), ("jobs", "FILE"), ("logs", "SITE")])
def test_usage_shows_what_may_be_left_out(command, optional, tmp_path):
    usage = dfmesh(command, "--help", cwd=tmp_path).stdout.splitlines()[0]
    assert f" [{optional}]" in usage
    assert "[[" not in usage


def test_a_missing_parameter_is_asked_for_as_an_option(written):
    done = dfmesh("run", "shop.dfm.yaml", "written.py:one", cwd=written)
    assert done.returncode == 1
    assert "give --param above=..." in done.stderr


def test_one_statement(written):
    done = dfmesh("validate", "shop.dfm.yaml", "written.py:one", cwd=written)
    assert "written.py:one is fine: 1 statement, parameters above" in done.stdout


def test_validate_shows_warnings(written):
    done = dfmesh("validate", "shop.dfm.yaml", "written.py:nothing", cwd=written)
    assert done.returncode == 0
    assert "warning:\n  written.py:13: the value of shop.Double is not used\n    yield it" in done.stdout


def test_times_are_counted_from_the_start_of_the_command(written):
    arguments = ["--param", "above=1", "--target", "inproc"]
    done = dfmesh("run", "shop.dfm.yaml", "written.py:one", *arguments, cwd=written)
    assert done.returncode == 0, done.stderr
    assert "s since command start; 1 result, first at" in done.stderr
    assert "dfmesh-results/index.json: 1 result; the end" in done.stdout
    assert "after the command began, the first result after" in done.stdout


def test_a_view_begins_with_the_process():
    assert JobView("x").seconds > 0.01


def test_a_warning_is_what_it_says_and_no_line_of_ours(written, monkeypatch, tmp_path):
    in_the_way = tmp_path / "no-directory"
    in_the_way.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(in_the_way))
    monkeypatch.setenv("DFMESH_MEASURE", "1")
    done = dfmesh("run", "shop.dfm.yaml", "written.py:nothing", "--target", "inproc", cwd=written)
    assert done.returncode == 0, done.stderr
    assert f"warning: measured costs cannot be kept in {in_the_way}" in done.stderr
    assert "RuntimeWarning" not in done.stderr
    assert "cost_store" not in done.stderr
