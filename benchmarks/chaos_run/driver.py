"""Starts the clients, kills some of them, and looks at what is left in the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos_run.faults import SILENT_SECONDS
from chaos_run.host_keeper import HostKeeper, OpenJobs
from chaos_run.leftovers import MARK, complaints, marked_processes, open_sockets, shared_memory, stray_files
from chaos_run.tally import Tally

BENCHMARKS = Path(__file__).resolve().parents[1]
ORPHAN_LIMIT = 60.0
"""Seconds within which nothing may be left of a client that was killed."""
END_LIMIT = 360.0
SILENCE_LIMIT = 400.0
"""Seconds after which a client that reports nothing is taken for stuck: longer than any job may take."""


@dataclass(frozen=True)
class Role:
    """A client of the run.

    Attributes:
        profile: What happens to its federation.
        jobs: Jobs at a time.
        transport: How its sites are connected.
        mortal: Whether it is killed now and then.
        hosted: Whether it uses the federation that is up.
    """

    profile: str
    jobs: int
    transport: str
    mortal: bool
    hosted: bool = False


ROLES = {
    "steady": Role("steady", 2, "unix", False),
    "stormy": Role("stormy", 2, "unix", False),
    "mortal": Role("stormy", 2, "tcp", True),
    "guest": Role("hosted", 2, "unix", False, hosted=True),
    "visitor": Role("hosted", 2, "unix", True, hosted=True),
}


class Driver:
    """One run."""

    def __init__(
        self, seed: int, minutes: float, directory: Path, roles: list[str], most_jobs: int | None = None
    ) -> None:
        """Begin.

        Args:
            seed: Of all choices.
            minutes: How long at most.
            directory: Where everything of the run goes.
            roles: Names of the clients.
            most_jobs: After how many jobs to end; None for no such limit.
        """
        self.tally = Tally()
        self._seed = seed
        self._seconds = minutes * 60
        self._directory = directory
        self._roles = roles
        self._most_jobs = most_jobs
        self._over = asyncio.Event()
        self._mark = f"{os.getpid()}-{seed}"
        self._open_jobs = OpenJobs()
        self._records = (directory / "records.jsonl").open("a")

    async def run(self) -> None:
        """Run all of it; `tally` has what came of it."""
        before = shared_memory()
        for name in ("tmp", "runtime", "cache", "state", "scratch"):
            (self._directory / name).mkdir(mode=0o700, exist_ok=True)
        begin = time.monotonic()
        async with asyncio.TaskGroup() as group:
            shown = group.create_task(self._show(begin))
            ending = asyncio.get_running_loop().call_later(self._seconds, self._over.set)
            host = self._make_host() if any(ROLES[name].hosted for name in self._roles) else None
            keeping = None if host is None else group.create_task(host.run())
            await asyncio.gather(*(self._keep_up(name) for name in self._roles))
            ending.cancel()
            if host is not None and keeping is not None:
                host.end()
                await keeping
                self.tally.hosting = host.seconds
            shown.cancel()
            self.tally.minutes = (time.monotonic() - begin) / 60
        for name, said in self.tally.growth():
            self._wrong(name, said)
        await self._check_leftovers(before)
        self._check_output()
        self._records.close()

    async def _show(self, begin: float) -> None:
        while True:
            await asyncio.sleep(30)
            passed, tally = time.monotonic() - begin, self.tally
            print(
                f"{passed:6.0f} s  {tally.jobs.total():6,} jobs  {tally.faults.total():6,} faults"
                f"  {len(tally.wrong)} wrong",
                flush=True,
            )

    def _make_host(self) -> HostKeeper:
        return HostKeeper(
            random.Random(f"{self._seed}/host"),
            self._directory,
            lambda mark: self._environment(f"{self._mark}-{mark}", "unix"),
            lambda kind: self.tally.faults.update([kind]),
            lambda what: self._wrong("host", what),
            lambda mark: self._check_gone("host", f"{self._mark}-{mark}"),
        )

    # Clients

    async def _keep_up(self, name: str) -> None:
        source = random.Random(f"{self._seed}/{name}/driver")
        incarnation = 0
        while not self._over.is_set():
            await self._live(name, incarnation, source)
            incarnation += 1

    async def _live(self, name: str, incarnation: int, source: random.Random) -> None:
        role = ROLES[name]
        mark = f"{self._mark}-{name}-{incarnation}."
        process = await self._start(name, incarnation, mark)
        reading = asyncio.create_task(self._read(name, process))
        pauses = random.Random(f"{self._seed}/{name}/{incarnation}/pauses")
        pausing = asyncio.create_task(self._pause(process, pauses))
        over = asyncio.create_task(self._over.wait())
        life = source.uniform(10, 40) if role.mortal else None
        done, _ = await asyncio.wait([reading, over], timeout=life, return_when=asyncio.FIRST_COMPLETED)
        pausing.cancel()
        over.cancel()
        await asyncio.wait([pausing, over])
        killed = not done
        if reading in done and not self._over.is_set():
            self._wrong(name, f"client ended by itself; see {self._errors(name)}")
        elif killed:
            number = source.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
            self.tally.faults[f"client killed ({number.name})"] += 1
            process.send_signal(number)
        elif process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.gather(reading, process.wait()), END_LIMIT)
        except TimeoutError:
            self._wrong(name, f"client does not end within {END_LIMIT} s")
            process.kill()
            await process.wait()
        if not killed and process.returncode:
            self._wrong(name, f"client ended with code {process.returncode}; see {self._errors(name)}")
        await self._check_gone(name, mark)

    async def _pause(self, process: asyncio.subprocess.Process, source: random.Random) -> None:
        """Stop the client for short times."""
        while True:
            await asyncio.sleep(source.uniform(5, 25))
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGSTOP)
                self.tally.faults["client stopped for a while"] += 1
            try:
                await asyncio.sleep(source.choice([0.1, 0.5, 1.0]))
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)

    async def _start(self, name: str, incarnation: int, mark: str) -> asyncio.subprocess.Process:
        role, directory = ROLES[name], self._directory
        options = {
            "seed": self._seed,
            "client": name,
            "incarnation": incarnation,
            "profile": role.profile,
            "scratch": str(directory / "scratch"),
            "jobs": role.jobs,
            "hosted": role.hosted,
            "adopt": self._open_jobs.of_client(f"{self._seed}/{name}/") if role.hosted else [],
        }
        with self._errors(name).open("a") as errors:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "chaos_run.client",
                json.dumps(options),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=self._environment(mark, role.transport),
                limit=2**24,
            )

    def _environment(self, mark: str, transport: str) -> dict[str, str]:
        path = os.pathsep.join([str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
        return {
            **os.environ,
            MARK: mark,
            "PYTHONPATH": path,
            "DFMESH_LOCAL_TRANSPORT": transport,
            "DFMESH_SILENT_SECONDS": str(SILENT_SECONDS),
            "TMPDIR": str(self._directory / "tmp"),
            "XDG_RUNTIME_DIR": str(self._directory / "runtime"),
            "XDG_CACHE_HOME": str(self._directory / "cache"),
            "XDG_STATE_HOME": str(self._directory / "state"),
        }

    def _errors(self, name: str) -> Path:
        return self._directory / f"{name}.stderr"

    async def _read(self, name: str, process: asyncio.subprocess.Process) -> None:
        if process.stdout is None:
            return
        while True:
            try:
                line = await asyncio.wait_for(process.stdout.readline(), SILENCE_LIMIT)
            except TimeoutError:
                self._wrong(name, f"client says nothing for {SILENCE_LIMIT} s")
                process.kill()
                return
            if not line.endswith(b"\n"):
                return  # The end, or a line that was cut by a kill.
            record = json.loads(line)
            self.tally.take(name, record)
            self._open_jobs.take(record)
            if self._most_jobs is not None and self.tally.jobs.total() >= self._most_jobs:
                self._over.set()
            self._records.write(json.dumps({"client": name, **record}) + "\n")
            if record["kind"] == "wrong":
                _print_wrong(name, record)

    def _wrong(self, name: str, what: str) -> None:
        record = {"kind": "wrong", "job": "", "template": "driver", "wrong": [what]}
        self.tally.take(name, record)
        self._records.write(json.dumps({"client": name, **record}) + "\n")
        _print_wrong(name, record)

    async def _check_gone(self, name: str, mark: str) -> None:
        """Wait until nothing is left of a client that has ended."""
        begin = time.monotonic()
        seen: dict[int, str] = {}
        while left := marked_processes(mark):
            seen = left
            if time.monotonic() - begin > ORPHAN_LIMIT:
                self._wrong(name, f"processes are left of a client that ended {ORPHAN_LIMIT} s ago: {left}")
                for pid in left:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                break
            await asyncio.sleep(0.05)
        self.tally.orphans.append(time.monotonic() - begin)
        if self.tally.orphans[-1] > ORPHAN_LIMIT / 10:
            slow = {"client": name, "kind": "slow end", "seconds": self.tally.orphans[-1], "processes": seen}
            self._records.write(json.dumps(slow) + "\n")

    def _check_output(self) -> None:
        """Look for errors that nobody expected in what clients, hosts and their sites have printed."""
        for path in sorted(self._directory.glob("*.stderr")):
            with path.open(errors="replace") as lines:
                found = complaints(lines)
            if found:
                self._wrong(path.stem, f"{len(found)} complaints in {path}, the first ones:")
                print(*found[:3], sep="\n", flush=True)

    async def _check_leftovers(self, shared_before: set[str]) -> None:
        for what, left in (
            ("processes", marked_processes(self._mark)),
            ("shared memory", sorted(shared_memory() - shared_before)),
            ("sockets", open_sockets(self._directory)),
            ("files", stray_files(self._directory)),
        ):
            if left:
                self._wrong("", f"{what} are left: {left}")


def _print_wrong(name: str, record: dict[str, Any]) -> None:
    print(f"\nWRONG  client {name}, job {record.get('job') or '-'} ({record.get('template')})")
    for line in record["wrong"]:
        print(f"    {line}")
    for key in ("status", "progress", "errors", "planned", "sets"):
        if record.get(key):
            print(f"  {key}: {str(record[key])[:3000]}")
    for line in record.get("history", [])[-40:]:
        print(f"      {line}")
    sys.stdout.flush()
