"""The reference, which pdoc writes from docstrings, has every public name."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import dfmesh

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_has_every_public_name(tmp_path: Path) -> None:
    arguments = runpy.run_path(str(ROOT / "run.py"))["REFERENCE"]
    command = [sys.executable, *arguments, "--output-directory", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "dfmesh.html").read_text(encoding="utf-8")
    assert [name for name in dfmesh.__all__ if f'id="{name}"' not in page and name != "__version__"] == []
    for member in ("Session.run", "Job.results", "Results.one", "ForEach.collect", "JobLog.dropped", "Host.lines"):
        assert f'id="{member}"' in page


def test_every_public_name_says_what_it_is_for() -> None:
    assert [name for name in dfmesh.__all__ if not getattr(dfmesh, name).__doc__] == []
