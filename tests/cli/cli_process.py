"""Runs `dfmesh` as users do: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start `dfmesh` as a process of its own, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from dfmesh.cli import main; main()", *arguments],
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


def dfmesh(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `dfmesh` as a process of its own and wait for it."""
    process = start(*arguments, cwd=cwd)
    try:
        out, err = process.communicate(timeout=60)
    except BaseException:
        process.kill()
        raise
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)
