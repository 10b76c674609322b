"""Other Pythons on this machine, each with an environment that has what a site needs."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from pathlib import Path

NEEDED = ("fsspec", "msgspec", "numpy", "pyyaml")
"""What a site imports that calls plain adapters with arrays."""


def find(version: str) -> str | None:
    """Give the path of an interpreter of a version such as `3.12`; None if there is none that works."""
    places = [*glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python")), f"python{version}"]
    for place in places:
        path = shutil.which(place)
        if path is None:
            continue
        asked = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
        )
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return path
    return None


def environment(python: str, folder: Path) -> tuple[str, str]:
    """Make a virtual environment of an interpreter, unless it is there already.

    Returns:
        Its interpreter, and why it cannot be used; empty if it can.
    """
    own = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        made = subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], capture_output=True, text=True)
        if made.returncode:
            return str(own), made.stderr.strip()
        (libraries,) = glob.glob(str(folder / "lib" / "python*" / "site-packages"))
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        installed = subprocess.run([*command, "--target", libraries, *NEEDED], capture_output=True, text=True)
        if installed.returncode:
            return str(own), installed.stderr.strip()[-300:]
        ready.touch()
    return str(own), ""
