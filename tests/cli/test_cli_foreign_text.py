"""What others say is shown to people as text: it steers no terminal, nor looks as if somebody else had said it."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_process import dfmesh

from dfmesh import Federation, JobError, Pipeline, Yield
from dfmesh.cli.failures import error_lines
from dfmesh.compiler.explain import explain
from dfmesh.errors import OperationFailure
from dfmesh.session.job_log import LogLine
from dfmesh.shown_text import shown, shown_line

HOSTILE = "\x1b]0;title\x07\x9b31m \u202eabc\r\n[s9] said"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a\tb\nc"),
        ("Gr\xfc\xdfe, \u4e16\u754c \U0001f600", "Gr\xfc\xdfe, \u4e16\u754c \U0001f600"),
        ("\x1b[31m\x7f\x9b", "\\x1b[31m\\x7f\\x9b"),
        ("\u202e\u2066\u2028\ufeff\ud800", "\\u202e\\u2066\\u2028\\ufeff\\ud800"),
        ("one\r\ntwo\rthree", "one\ntwo\\rthree"),
    ],
)
def test_text_that_steers_becomes_escapes(text: str, seen: str) -> None:
    assert shown(text) == seen


def test_further_lines_are_indented_or_made_one() -> None:
    assert shown("a\nb\nc", "  ") == "a\n  b\n  c"
    assert shown_line("a\nb") == "a\\nb"


def failure() -> OperationFailure:
    return OperationFailure(
        site="s1", operation="b.Op", node="n\x1b", frame=(0,), location="", kind="ValueError", message=HOSTILE
    )


def test_errors() -> None:
    error = JobError("j", [failure()])
    for text in (str(failure()), str(error), "\n".join(error_lines(error))):
        assert not STEERING.search(text.replace("\n", ""))
        assert "\n      [s9] said" in text
    assert failure().message == HOSTILE, "programs get what was said"


def test_lines_of_a_job() -> None:
    line = LogLine(datetime.now(UTC), "s1", "b.Op", "n", (0,), "stdout", "", HOSTILE)
    assert not STEERING.search(str(line))


def test_explanations(tmp_path: Path) -> None:
    file = tmp_path / "f.dfm.yaml"
    site = {"interface": {"b.Op": "builtins.dict"}}
    file.write_text(json.dumps({"dfm": "1.0.0", "operations": {"b.Op": {}}, "sites": {"s1": site}}))
    federation = Federation.load(file)
    with Pipeline() as p:
        Yield(federation.ops.b.Op())
    plan = explain(federation.compile(p))
    rows = tuple(dataclasses.replace(row, site=HOSTILE, why=HOSTILE) for row in plan.rows)
    hostile = dataclasses.replace(plan, rows=rows)
    for text in (hostile.to_text(), hostile.to_mermaid(), hostile._repr_html_()):
        assert not STEERING.search(text.replace("\n", ""))
        assert "\n[s9]" not in text


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "loud.dfm.yaml").write_text(
        json.dumps(
            {
                "dfm": "1.0.0",
                "operations": {"b.Op": {}},
                "sites": {"s1": {"interface": {"b.Op": "hostile_operations.op"}}},
            }
        )
    )
    (tmp_path / "hostile_operations.py").write_text(
        f"def op():\n    print({HOSTILE!r})\n    raise ValueError({HOSTILE!r})\n"
    )
    (tmp_path / "p.py").write_text(
        "from dfmesh import Pipeline, Yield\ndef build(federation):\n"
        f"    with Pipeline(name={HOSTILE!r}) as p:\n        Yield(federation.ops.b.Op())\n    return p\n"
    )
    done = dfmesh("run", "loud.dfm.yaml", "p.py:build", "--out", "out", cwd=tmp_path)
    assert done.returncode == 3
    assert "\\x1b]0;title\\x07\\x9b31m \\u202eabc" in done.stderr
    assert not STEERING.search((done.stderr + done.stdout).replace("\n", ""))
    said = [line for line in done.stderr.splitlines() if line.startswith("[s9]")]
    assert said == []
