"""Keeps a federation up, kills its host now and then, and remembers which jobs killed clients have left there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos_run.case import HOMESITE
from chaos_run.client import FEDERATION
from chaos_run.faults import LATE, Loss
from chaos_run.hosted_client import SHARED_LOG
from chaos_run.shared_fault_log import SharedFaultLog

STOPPED = "the host was stopped while it ran"
"""What jobs say of the homesite of a host that was killed."""


class OpenJobs:
    """The jobs that clients have submitted and not judged yet."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, Any]] = {}

    def take(self, record: dict[str, Any]) -> None:
        """Take in what a client reports."""
        name = record.get("job", "")
        match record["kind"]:
            case "open":
                fields = {key: record[key] for key in ("job", "id", "begin", "sites")}
                self._entries[name] = {**fields, "taken": False, "cancelled": False}
            case "taken":
                if name in self._entries:
                    self._entries[name]["taken"] = True
            case "cancel":
                if name in self._entries:
                    self._entries[name]["cancelled"] = True
            case "job" | "gone" | "wrong":
                self._entries.pop(name, None)

    def of_client(self, prefix: str) -> list[dict[str, Any]]:
        """Give those of a client, all its incarnations."""
        return [entry for name, entry in self._entries.items() if name.startswith(prefix)]


class HostKeeper:
    """Starts the host again whenever it has ended.

    Attributes:
        seconds: How long each start took.
    """

    def __init__(
        self,
        source: random.Random,
        directory: Path,
        environment: Callable[[str], dict[str, str]],
        count: Callable[[str], None],
        wrong: Callable[[str], None],
        check_gone: Callable[[str], Any],
    ) -> None:
        """Prepare.

        Args:
            source: Of the times of kills.
            directory: That of the run.
            environment: Gives that of a process with a mark.
            count: Counts a fault.
            wrong: Notes what is wrong.
            check_gone: Waits until nothing is left of what has a mark.
        """
        self.seconds: list[float] = []
        self._random = source
        self._directory = directory
        self._environment = environment
        self._count = count
        self._wrong = wrong
        self._check_gone = check_gone
        self._log = SharedFaultLog(directory / "scratch" / SHARED_LOG)
        self._end = asyncio.Event()

    async def run(self) -> None:
        """Keep it up until `end`."""
        incarnation = 0
        while not self._end.is_set():
            await self._live(f"host-{incarnation}.")
            incarnation += 1

    def end(self) -> None:
        """Let the host end in good order."""
        self._end.set()

    async def _live(self, mark: str) -> None:
        with (self._directory / "host.stderr").open("a") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dfmesh", "up", str(FEDERATION), "--json"),
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=self._environment(mark),
            )
        began = time.monotonic()
        if process.stdout is not None:
            await process.stdout.readline()  # It says so when it is up.
            self.seconds.append(time.monotonic() - began)
        ended = asyncio.create_task(process.wait())
        asked = asyncio.create_task(self._end.wait())
        life = self._random.uniform(25, 90)
        await asyncio.wait([ended, asked], timeout=life, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            self._wrong(f"the host ended by itself with code {process.returncode}; see host.stderr")
        elif asked.done():
            await self._stop(process)
        else:
            now = time.monotonic()
            self._log.lose(Loss(HOMESITE, STOPPED, now, now + LATE))
            number = self._random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
            self._count(f"host ended ({number.name})")
            process.send_signal(number)
        await ended
        asked.cancel()
        await self._check_gone(mark)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        """See that no job is left that is not over, then stop the host as users do."""
        listed = await self._command("jobs", str(FEDERATION), "--json")
        going_on = [entry for entry in _entries(listed) if entry.get("status") in ("starting", "running")]
        if going_on:
            self._wrong(f"jobs of clients that have ended are not over: {going_on}")
        await self._command("down", str(FEDERATION))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 30)
        if process.returncode is None:
            self._wrong("the host does not end within 30 s of `dfmesh down`")
            process.kill()
        elif process.returncode:
            self._wrong(f"the host ended with code {process.returncode} after `dfmesh down`")

    async def _command(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dfmesh", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment("command."),
        )
        output = (await process.communicate())[0].decode()
        if process.returncode:
            self._wrong(f"`dfmesh {' '.join(arguments)}` ended with code {process.returncode}: {output[-500:]}")
        return output


def _entries(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            found += value if isinstance(value, list) else value.get("jobs", [value])
    return found
