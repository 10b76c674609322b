"""Starting and ending hosts for tests, and pipelines that stop until a test lets them go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from dfmesh import Federation, ForEach, Job, Pipeline, PlaceParam, Yield

FEDERATION = """
dfm: 1.0.0
operations:
  up.Numbers:
    parameters: {n: {type: integer}}
    required: [n]
    idempotent: true
  up.Hold:
    description: Gives x as soon as there is a file called gate-x, or one called gate-all.
    parameters: {x: {type: integer}, gates: {type: string}}
    required: [x, gates]
    idempotent: true
  up.HoldOnce:
    description: The same, not to be called twice.
    parameters: {x: {type: integer}, gates: {type: string}}
    required: [x, gates]
  up.Double:
    parameters: {x: {type: integer}}
    required: [x]
    idempotent: true
  up.Fail:
    parameters: {x: {type: integer}}
    required: [x]
  up.Blob:
    description: An array of so many bytes.
    parameters: {size: {type: integer}}
    required: [size]
    idempotent: true
  up.Say:
    parameters: {text: {type: string}}
    required: [text]
sites:
  app:
    interface:
      up.Numbers: up_operations.numbers
      up.HoldOnce: up_operations.hold
      up.Blob: up_operations.blob
  a:
    interface:
      up.Hold: up_operations.hold
      up.Double: up_operations.double
      up.Say: up_operations.say
  b:
    interface:
      up.Double: up_operations.double
      up.Fail: up_operations.fail
"""

OPERATIONS = """
import asyncio
import os

import numpy as np


def numbers(n):
    return list(range(n))


async def hold(x, gates):
    while not (os.path.exists(f"{gates}/gate-{x}") or os.path.exists(f"{gates}/gate-all")):
        await asyncio.sleep(0.01)
    return x


def double(x):
    return 2 * x


def fail(x):
    raise ValueError(f"no more {x}")


def blob(size):
    return np.arange(size, dtype=np.uint8)


def say(text):
    print(text, flush=True)
    return text
"""

CLI = "from dfmesh.cli import main; main()"


def write_federation(directory: Path) -> None:
    (directory / "up.dfm.yaml").write_text(FEDERATION, "utf-8")
    (directory / "up_operations.py").write_text(OPERATIONS, "utf-8")


class UpHost:
    """A running `dfmesh up`."""

    def __init__(self, file: Path, *arguments: str) -> None:
        self.file = file
        self._process = subprocess.Popen(
            [sys.executable, "-c", CLI, "up", str(file), "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.record: dict[str, Any] = json.loads(line) if line else {}
        if not self.record or self.record["event"] != "up":
            said = self._process.stderr.read() if self._process.stderr is not None else ""
            self._end()
            raise AssertionError(f"the host did not start: {line} {said}")
        self.process = psutil.Process(self._process.pid)

    def site(self, name: str) -> psutil.Process:
        """The process of a site; there is a moment after a death in which there is none."""
        return wait_for(lambda: self._site(name))

    def _site(self, name: str) -> psutil.Process | None:
        for process in self.process.children():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and name in process.cmdline():
                    return process
            except psutil.NoSuchProcess:
                pass
        return None

    def kill(self) -> None:
        """SIGKILL, and wait until its sites are gone too."""
        sites = self.process.children()
        self._process.kill()
        self._end()
        wait_for(lambda: not any(is_alive(site) for site in sites))

    def stop(self) -> None:
        """Ctrl-C; does nothing if it has ended."""
        if self._process.returncode is None:
            sites = self.process.children(recursive=True)
            self._process.send_signal(signal.SIGINT)
            self._end()
            assert not any(is_alive(site) for site in sites)

    def _end(self) -> None:
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            raise
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Wait until something is so, and give it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.01)
    return found


def holding(federation: Federation, gates: Path, operation: str = "Hold") -> Pipeline:
    """Yield the numbers up to n, each as soon as its gate is open."""
    up = federation.ops.up
    with Pipeline(name="holding") as pipeline, ForEach(up.Numbers(n=PlaceParam("n")), window=100) as number:
        Yield(getattr(up, operation)(x=number, gates=str(gates)), place="number")
    return pipeline


def doubling(federation: Federation) -> Pipeline:
    up = federation.ops.up
    with Pipeline(name="doubling") as pipeline, ForEach(up.Numbers(n=PlaceParam("n"))) as number:
        Yield(up.Double(x=number, site="b"), place="doubled")
    return pipeline


def one(federation: Federation) -> Pipeline:
    """One operation per parameter set."""
    with Pipeline(name="one") as pipeline:
        Yield(federation.ops.up.Double(x=PlaceParam("x"), site="a"), place="doubled")
    return pipeline


def open_gate(gates: Path, name: int | str = "all") -> None:
    (gates / f"gate-{name}").touch()


def values_of(job: Job, place: str) -> list[Any]:
    return [item.value for item in job.results(place)]
