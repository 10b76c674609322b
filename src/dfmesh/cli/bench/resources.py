"""What processes use, read from Linux's /proc: processor time, memory, wake-ups.

Only the standard library is imported here, because the benchmarks use it in environments without dfmesh's dependencies.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

RUN_VARIABLE = "DFMESH_BENCH_RUN"
"""Environment variable that marks the processes of one measurement, also those that leave their parent."""

_PROC = Path("/proc")
_RESET_PEAK = "5"  # proc(5), clear_refs: sets the peak resident size to what is resident now
_KILOBYTE = 1024


def available() -> bool:
    """Say whether this system has what is read here."""
    return (_PROC / "self" / "schedstat").exists() and (_PROC / "self" / "smaps_rollup").exists()


def processes_of_run() -> set[int]:
    """Find the processes of the measurement: this one, those below it, those that carry its mark."""
    mark = os.environ.get(RUN_VARIABLE)
    found = {os.getpid()} | descendants(os.getpid())
    return found | marked_processes(mark) if mark else found


def descendants(pid: int) -> set[int]:
    """Find the processes below another."""
    children = _children()
    found: set[int] = set()
    todo = [pid]
    while todo:
        more = children.get(todo.pop(), set()) - found
        todo += more
        found |= more
    return found


def marked_processes(mark: str) -> set[int]:
    """Find the processes that were started with this value of `RUN_VARIABLE`."""
    wanted = f"{RUN_VARIABLE}={mark}".encode()
    found = set()
    for pid in _pids():
        with contextlib.suppress(OSError):
            if wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    return found


def _pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def _children() -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for pid in _pids():
        with contextlib.suppress(OSError):
            parent = int(_after_name(pid)[1])
            found.setdefault(parent, set()).add(pid)
    return found


def _after_name(pid: int) -> list[str]:
    """Give the fields of `stat` behind the process's name, which may hold anything."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def command_line(pid: int) -> list[str]:
    """Give a process's arguments; empty if it has ended."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def cpu_seconds(pids: Iterable[int]) -> float:
    """Add up the processor time of all threads of processes that live, to the nanosecond."""
    return sum(_cpu_nanoseconds(pid) for pid in pids) / 1e9


def _cpu_nanoseconds(pid: int) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                total += int((thread / "schedstat").read_text().split()[0])
    return total


def wake_ups(pids: Iterable[int]) -> int:
    """Count how often threads of processes went to sleep of their own will so far, and hence were woken."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in (_PROC / str(pid) / "task").iterdir():
                with contextlib.suppress(OSError):
                    total += _status_number((thread / "status").read_text(), "voluntary_ctxt_switches:")
    return total


def resident_bytes(pid: int) -> int:
    """Give the resident memory of a process, shared memory that it has touched included; 0 if it has ended."""
    return _status_bytes(pid, "VmRSS:")


def private_bytes(pid: int) -> int:
    """Give the resident memory of a process without shared memory and files; 0 if it has ended."""
    return _status_bytes(pid, "RssAnon:")


def peak_bytes(pid: int) -> int:
    """Give the highest resident memory of a process since `reset_peak`, or since its start; 0 if it has ended."""
    return _status_bytes(pid, "VmHWM:")


def reset_peak(pid: int) -> None:
    """Count a process's peak from now on."""
    with contextlib.suppress(OSError):
        (_PROC / str(pid) / "clear_refs").write_text(_RESET_PEAK)


def proportional_bytes(pids: Iterable[int]) -> int:
    """Add up the memory of processes, with what several of them share counted once among them."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += _KILOBYTE * _status_number((_PROC / str(pid) / "smaps_rollup").read_text(), "Pss:")
    return total


def _status_bytes(pid: int, name: str) -> int:
    try:
        return _KILOBYTE * _status_number((_PROC / str(pid) / "status").read_text(), name)
    except OSError:
        return 0


def _status_number(text: str, name: str) -> int:
    for line in text.splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0
