"""Virtual environments of the peers, one for each, made when they are first asked for and kept for later runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

CACHE_VARIABLE = "DFMESH_BENCH_CACHE"
INSTALL_LIMIT_SECONDS = 900.0
MESSAGES_SHOWN = 5
MARK = "installed"


class SetupError(Exception):
    """An environment cannot be made on this machine; the message says why, in a line that fits the table."""


def cache_directory() -> Path:
    """Where environments are kept: `$DFMESH_BENCH_CACHE`, or `~/.cache/dfmesh-bench`."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "dfmesh-bench"


def environment_of(name: str, requirements: tuple[str, ...], pythons: tuple[str, ...] = ()) -> Path:
    """Make the environment unless it is there already.

    Args:
        name: What it is for; part of the directory's name.
        requirements: Pinned requirements. Other ones make another environment.
        pythons: Versions such as `3.12` that all of the requirements support; empty for any.

    Returns:
        The Python in it.

    Raises:
        SetupError: There is no Python that fits, the directory cannot be made, or pip fails.
    """
    interpreter = base_interpreter(pythons)
    home = home_of(name, requirements, interpreter)
    python = home / "bin" / "python"
    if not (home / MARK).exists():
        shutil.rmtree(home, ignore_errors=True)
        try:
            home.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"{home.parent} cannot be made: {error}") from error
        run_quietly(interpreter, "-m", "venv", str(home))
        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:")
        run_quietly(str(python), *install, *requirements)
        (home / MARK).write_text("\n".join(requirements) + "\n")
    return python


def installed_python(name: str, requirements: tuple[str, ...], pythons: tuple[str, ...] = ()) -> Path | None:
    """The Python of an environment that was made before; None if it was not."""
    try:
        home = home_of(name, requirements, base_interpreter(pythons))
    except SetupError:
        return None
    return home / "bin" / "python" if (home / MARK).exists() else None


def home_of(name: str, requirements: tuple[str, ...], interpreter: str) -> Path:
    """The directory of an environment; its name says what is in it."""
    key = hashlib.sha256("\n".join([interpreter, *requirements]).encode()).hexdigest()[:10]
    return cache_directory() / f"{name}-{key}"


def base_interpreter(pythons: tuple[str, ...]) -> str:
    """The Python to make environments with: the one that runs this, if it fits, else one on PATH that does."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not pythons or own in pythons:
        return str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    for version in pythons:
        found = shutil.which(f"python{version}")
        if found is not None and subprocess.run([found, "--version"], capture_output=True).returncode == 0:
            return found
    raise SetupError(f"needs Python {' or '.join(pythons)}, and none is on PATH")


def run_quietly(*command: str) -> None:
    """Run a step of a set-up, and show it on standard error.

    Raises:
        SetupError: It fails, or takes longer than the limit.
    """
    print("setup:", *command, file=sys.stderr, flush=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(str(error)) from error
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        print(*lines[-MESSAGES_SHOWN:], sep="\n", file=sys.stderr, flush=True)
        raise SetupError(f"{Path(command[0]).name} {' '.join(command[1:4])} failed: {(lines or ['no message'])[-1]}")
