"""A federation of stub sites in real processes, as tests and their scripts drive it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import psutil

from dfmesh.engine.messages import FailureReport, SiteLost, StartJob
from dfmesh.targets.local.runner import LocalFederationRunner

STUB = (str(Path(__file__).with_name("stub_site.py")),)


class Config:
    """As much of a `FederationConfig` as the target looks at."""

    def __init__(self, path: Path, sites: Iterable[str]) -> None:
        self.path = path
        self.sites = dict.fromkeys(sites)
        self.has_residency = False


class Stubs:
    """A running federation of stubs and what the client hears of it."""

    def __init__(self, runner: LocalFederationRunner) -> None:
        self.runner = runner
        self.got: asyncio.Queue[Any] = asyncio.Queue()
        self.lost: asyncio.Queue[SiteLost] = asyncio.Queue()

    def tell(self, *command: Any, to: str = "a", job: str = "job") -> None:
        words = command if to == "a" else ("via", to, *command)
        self.runner.send(StartJob(job, msgspec.json.encode(words)))

    async def hear(self) -> Any:
        try:
            return await asyncio.wait_for(self.got.get(), 60)
        except TimeoutError:
            output = {name: self.runner.output(name)[-2000:] for name in self.runner._config.sites}
            raise AssertionError(f"nothing was heard; {self.runner.processes}; they printed {output}") from None

    async def hear_text(self) -> str:
        message = await self.hear()
        assert isinstance(message, FailureReport), message
        return message.failure.message

    async def ask(self, *command: Any, to: str = "a", job: str = "job") -> str:
        self.tell(*command, to=to, job=job)
        return await self.hear_text()

    async def memory_is_free(self, site: str) -> bool:
        """Whether a site gets all its shared memory back; that takes another way than our question."""
        for _ in range(100):
            if (await self.ask("memory", to=site)).split()[1] == "0":
                return True
        return False


Test = Callable[[Stubs], Awaitable[None]]


def shared_files() -> set[str]:
    """Whatever processes like ours could leave in a file system; the directories are those of this process of tests."""
    own = {str(path) for name in ("TMPDIR", "XDG_RUNTIME_DIR") for path in Path(os.environ[name]).iterdir()}
    return own | {str(path) for path in Path("/dev/shm").glob("*dfmesh*")}


def site_processes() -> list[psutil.Process]:
    """Stub sites that run, whoever started them."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if STUB[0] in (process.info["cmdline"] or []) and process.status() != psutil.STATUS_ZOMBIE
    ]
