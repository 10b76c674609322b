"""What sites print while the command line runs a pipeline: never on its standard output, and above the table."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from cli_process import dfmesh

LOUD = """

import os
import subprocess
import sys


def double(x):
    print(f"doubling {x}\\n", end="", flush=True)
    os.write(1, f"raw {x}\\n".encode())
    subprocess.run(["echo", "child", str(x)], check=True)
    return 2 * x
"""

CLI = "from dfmesh.cli import main; main()"

PRINTED = [f"{word} {number}" for number in range(3) for word in ("doubling", "raw", "child")]


@pytest.fixture
def loud(shop):
    with (shop / "cli_shop.py").open("a", encoding="utf-8") as file:
        file.write(LOUD)
    with (shop / "shopping.py").open("a", encoding="utf-8") as file:
        file.write('\nprint("the pipeline file speaks")\n')
    return shop


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_what_is_printed_keeps_out_of_json(loud, target):
    arguments = ["run", "shop.dfm.yaml", "shopping.py", "--param", "n=3", "--target", target, "--json"]
    done = dfmesh(*arguments, cwd=loud)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "end"
    assert all("event" in json.loads(line) for line in done.stdout.splitlines())
    prefix = "[b] " if target == "local" else ""
    lines = done.stderr.splitlines()
    assert "the pipeline file speaks" in lines
    assert set(lines) == {"the pipeline file speaks", *(f"{prefix}{text}" for text in PRINTED)}


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_what_is_printed_keeps_out_of_the_list_of_files(loud, target):
    done = dfmesh("run", "shop.dfm.yaml", "shopping.py", "--param", "n=3", "--target", target, cwd=loud)
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["doubled", "dfmesh-results/index.json"]


def test_errors_come_as_json_still(loud):
    done = dfmesh("run", "shop.dfm.yaml", "shopping.py", "--target", "inproc", "--json", cwd=loud)
    assert done.returncode == 1
    assert json.loads(done.stdout)["event"] == "error"


def test_who_stops_reading_ends_it_quietly(loud):
    command = f"{sys.executable} -c '{CLI}' run shop.dfm.yaml shopping.py --param n=3"
    done = subprocess.run(
        ["bash", "-c", f"{command} --target inproc --json | true"], cwd=loud, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr


def test_lines_stand_above_the_live_table(loud):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", CLI, "run", "shop.dfm.yaml", "shopping.py", "--param", "n=3"],
        cwd=loud,
        env={**os.environ, "COLUMNS": "100", "LINES": "40", "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the end of a terminal
            break
        shown += data
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert process.stdout is not None
    process.stdout.close()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    lines = [line.rstrip() for line in re.split(r"\r\n|\r|\n", text)]
    for printed in PRINTED:
        assert f"[b] {printed}" in lines
    assert "shop.Double" in text


def test_a_failure_names_the_line_of_the_adapter(shop):
    done = dfmesh("run", "shop.dfm.yaml", "shopping.py:failing", "--target", "inproc", cwd=shop)
    assert "    ValueError: no more bread [cli_shop.py:" in done.stderr
    index = json.loads((shop / "dfmesh-results/index.json").read_text("utf-8"))
    assert index["errors"][0]["raised_at"].startswith("cli_shop.py:")
