"""Measurements of one contestant in a process of its own, each with a hard time limit."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from contestants import BENCHMARKS, Contestant

from dfmesh.cli.bench import child
from dfmesh.cli.bench.resources import RUN_VARIABLE, descendants, marked_processes

MESSAGES_SHOWN = 20
START_LIMIT_SECONDS = 60.0
STOP_LIMIT_SECONDS = 30.0
READ_SIZE = 1 << 16
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


@dataclass(frozen=True)
class Case:
    """One measurement: what the contestant's child is asked for, and how long it may take."""

    name: str
    measure: str
    parameters: Mapping[str, Any]
    limit_seconds: float

    def order(self) -> dict[str, Any]:
        return {"case": self.name, "measure": self.measure, "parameters": dict(self.parameters)}


def measured(contestant: Contestant, cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    """Measure cases; gives a line for each of them, whatever happens.

    A case that takes too long, or ends the child, is failed; those behind it get another child.
    """
    left = list(cases)
    while left:
        lines, problem = run_child(contestant, left)
        for line in lines:
            yield line
            left = [case for case in left if case.name != line["case"]]
        if left:
            yield {"case": left.pop(0).name, "failed": problem}


def run_child(contestant: Contestant, cases: Sequence[Case]) -> tuple[list[dict[str, Any]], str]:
    """Let one child measure; gives its lines, and what went wrong if there are fewer of them than cases."""
    mark = secrets.token_hex(8)
    command = [*contestant.command, json.dumps([case.order() for case in cases])]
    before = descendants(os.getpid())
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=child.starting_now({**contestant.environment, RUN_VARIABLE: mark}),
            cwd=BENCHMARKS,
            start_new_session=True,
        )
        try:
            lines, problem = read_lines(process, cases)
        finally:
            end_all(process, mark, before)
        return lines, problem or failure(errors, process.returncode)


def read_lines(process: subprocess.Popen[bytes], cases: Sequence[Case]) -> tuple[list[dict[str, Any]], str]:
    """Read the lines of a child until it ends or takes too long; gives them, and what took too long."""
    limits = [case.limit_seconds for case in cases]
    limits = [limits[0] + START_LIMIT_SECONDS, *limits[1:], STOP_LIMIT_SECONDS]
    written = b""
    found: list[dict[str, Any]] = []
    assert process.stdout is not None
    with process.stdout as output, selectors.DefaultSelector() as selector:
        ended = os.pidfd_open(process.pid)
        try:
            selector.register(output, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            deadline = time.monotonic() + limits[0]
            while ready := {key.fd for key, _ in selector.select(max(0.0, deadline - time.monotonic()))}:
                more = os.read(output.fileno(), READ_SIZE) if output.fileno() in ready else b""
                written += more
                whole = written.rpartition(b"\n")[0]
                before, found = len(found), child.lines(whole.decode(errors="replace"))
                if len(found) > before:
                    deadline = time.monotonic() + limits[min(len(found), len(cases))]
                if not more and ended in ready:  # who was started by the child may still hold the pipe
                    return found, ""
                if not more:
                    selector.unregister(output)
        finally:
            os.close(ended)
    return found, f"timed out after {limits[min(len(found), len(cases))]:.3g} s"


def adopt_orphans() -> None:
    """Become the parent of whatever is left by a child that ends, instead of the machine's first process."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_all(process: subprocess.Popen[bytes], mark: str, before: set[int]) -> None:
    """End the child and whatever of the run is left.

    What has left the child still carries its mark, or, where a program writes its title over its environment, is below
    us since we adopted it.

    Args:
        process: The child.
        mark: Its mark.
        before: Processes below us when it was started.
    """
    while left := descendants(os.getpid()) - before | marked_processes(mark):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def failure(errors: IO[bytes], exit_code: int) -> str:
    """What is said of a child that ended too soon: the last of its messages; the end of them is shown."""
    errors.seek(0)
    lines = [line.rstrip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    if exit_code:
        print(*lines[-MESSAGES_SHOWN:], sep="\n", file=sys.stderr, flush=True)
    return f"failed: {lines[-1].strip() if lines else f'exit code {exit_code}'}"
