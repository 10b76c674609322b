"""What a run must not leave behind, and what its processes must not gather."""

from __future__ import annotations

import contextlib
import os
import re
import statistics
from collections.abc import Iterable
from pathlib import Path

MARK = "DFMESH_CHAOS"
"""Environment variable by which all processes of a run are known, those that adapters start too."""

_COMPLAINT = re.compile(r"^(ERROR|CRITICAL) |was never retrieved|was never awaited|^Exception ignored")

_INTERRUPTED = ("KeyboardInterrupt", "asyncio.exceptions.CancelledError")

MOST_GROWTH = {"memory": 64 * 2**20, "shared": 256 * 2**20, "descriptors": 12, "threads": 64}
"""By how much what a process holds in calm phases may grow from the second fifth of the run to the last one.

Shared memory is kept for the next arrays as long as there are any, so that the most that was used at once shows there.
"""

FEWEST_SAMPLES = 40
"""Calm phases before which growth says nothing: allocators and pools still warm up."""


def marked_processes(mark: str) -> dict[int, str]:
    """Find the processes that were started with a mark that begins like this; gives their command lines."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                variables = (entry / "environ").read_bytes().split(b"\0")
                if any(variable.startswith(wanted) for variable in variables):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found[int(entry.name)] = command.strip()
    return found


def shared_memory() -> set[str]:
    """Name what is in the file system of shared memory."""
    with contextlib.suppress(OSError):
        return {path.name for path in Path("/dev/shm").iterdir() if "dfmesh" in path.name or "psm_" in path.name}
    return set()


def open_sockets(directory: Path) -> list[str]:
    """List Unix sockets in a directory that somebody still has open."""
    with contextlib.suppress(OSError), open("/proc/net/unix") as file:
        return [line.split()[-1] for line in file if str(directory) in line]
    return []


def stray_files(directory: Path) -> list[str]:
    """List the files that should not be there at the end of a run.

    Args:
        directory: That of the run, with `tmp`, `runtime`, `cache`, `state` and `scratch` in it.
    """
    stray = [path for name in ("tmp", "runtime") for path in (directory / name).rglob("*") if not path.is_dir()]
    stray += [path for path in (directory / "cache").rglob("*") if ".draft" in path.name or path.suffix == ".tmp"]
    stray += [path for path in (directory / "cache").rglob("*") if path.is_socket()]
    return sorted(str(path.relative_to(directory)) for path in stray)


def complaints(lines: Iterable[str]) -> list[str]:
    """Find what a process says of errors that it did not expect, among the lines that it printed.

    Tracebacks of processes that were interrupted, and what dfmesh warns of, are none.
    """
    found: list[str] = []
    traceback: list[str] = []
    ended = False  # The traceback; another one may follow that was raised meanwhile.
    for line in [*lines, "."]:
        text = re.sub(r"^\[\w+\] ", "", line.rstrip())
        if traceback and not ended:
            traceback.append(text)
            ended = text[:1] not in (" ", "+", "|", "")
        elif text.startswith("Traceback (most recent call last)"):
            traceback.append(text)
            ended = False
        elif traceback and (not text or text.startswith(("During handling of", "The above exception"))):
            continue
        else:
            if traceback and not traceback[-1].startswith(_INTERRUPTED):
                found.append("\n".join(traceback[-8:]))
            traceback = []
            if _COMPLAINT.search(text):
                found.append(text)
    return found


def growth(samples: list[dict[str, float]]) -> list[str]:
    """Say what a process gathers, given what it held in each calm phase."""
    if len(samples) < FEWEST_SAMPLES:
        return []
    fifth = len(samples) // 5
    early, late = samples[fifth : 2 * fifth], samples[-fifth:]
    said = []
    for what, most in MOST_GROWTH.items():
        before, after = (statistics.median(sample[what] for sample in part) for part in (early, late))
        if after > before + most:
            said.append(f"{what} grew from {before:,.0f} to {after:,.0f}")
    return said
