"""Twenty jobs of chaos: what `benchmarks/chaos.py --minutes 30` does for half an hour."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).resolve().parents[2] / "benchmarks" / "chaos.py"


@pytest.mark.timeout(300)
def test_a_short_run(tmp_path: Path) -> None:
    figures, directory = tmp_path / "figures.json", tmp_path / "run"
    command = [str(CHAOS), "--minutes", "3", "--jobs", "20", "--seed", "11", "--clients", "stormy"]
    run = subprocess.run(
        [sys.executable, *command, "--json", str(figures), "--directory", str(directory)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5_000:]
    found = json.loads(figures.read_text())
    assert found["wrong"] == []
    assert sum(found["jobs"].values()) >= 20
    assert found["fault_count"] >= 5
