#!/usr/bin/env python3
"""Sets up a checkout and runs something in it. Needs Python 3.11 or newer and pip, nothing else.

python3 run.py demo      set up, run the weather day, say where the maps and the page are
python3 run.py test      set up, run the tests, several at a time; further arguments go to pytest (-n 0: one at a time)
python3 run.py check     set up, check format, lint, types
python3 run.py reference set up, write the reference of all public names, from their docstrings, to reference/
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = Path(os.environ.get("DFMESH_VENV", ROOT / ".venv"))
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
REFERENCE = ("-m", "pdoc", "--docformat", "google", "--no-show-source", "dfmesh")


def main(arguments: list[str]) -> int:
    """Run the command that the first argument names; further ones go to it."""
    commands = {"demo": demo, "test": test, "check": check, "reference": reference}
    if sys.version_info < (3, 11):
        print(f"dfmesh needs Python 3.11 or newer, this is {sys.version.split()[0]}", file=sys.stderr)
        return 2
    if not arguments or arguments[0] not in commands:
        print(__doc__)
        return 2
    return commands[arguments[0]](arguments[1:])


def demo(more: list[str]) -> int:
    """Run the weather day."""
    set_up("weather")
    return python("-m", "dfmesh", "demo", "weather", *more)


def test(more: list[str]) -> int:
    """Run the tests; `tests/conftest.py` says how many processes that are."""
    set_up("dev")
    return python("-m", "pytest", "-n", "auto", "--dist", "worksteal", *more)


def check(_more: list[str]) -> int:
    """Check format, lint and types; all of them, also if the first fails."""
    set_up("dev")
    results = [
        python("-m", "ruff", "format", "--check", "."),
        python("-m", "ruff", "check", "."),
        python("-m", "mypy"),
    ]
    return max(results)


def reference(_more: list[str]) -> int:
    """Write the reference."""
    set_up("dev")
    return python(*REFERENCE, "--output-directory", str(ROOT / "reference"))


def set_up(extra: str) -> None:
    """Make the virtual environment and install dfmesh with an extra, unless that was done for this pyproject.toml."""
    mark = ENVIRONMENT / f"dfmesh-{extra}.installed"
    state = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == state:
        return
    if not PYTHON.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    code = python("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", f"{ROOT}[{extra}]")
    if code:
        raise SystemExit(code)
    # pip does this for what it copies; each process of each site would do it again where nobody else may.
    python("-m", "compileall", "-q", str(ROOT / "src"))
    mark.write_text(state)


def python(*arguments: str) -> int:
    """Run Python in the virtual environment and return its exit code."""
    return subprocess.run([str(PYTHON), *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
