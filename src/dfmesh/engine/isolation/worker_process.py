"""One worker process, as its site sees it: started, spoken with, ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from dfmesh.engine.isolation.channel import NO_VALUE, Channel
from dfmesh.engine.isolation.messages import WorkerArguments
from dfmesh.errors import DfmeshError
from dfmesh.processes.ending import EndWatch, describe_end, kill_group
from dfmesh.processes.starting import environment, import_path, interpreter

TERMINATE_SECONDS = 0.5
"""Time between SIGTERM and SIGKILL."""

_LAST_WORDS_SECONDS = 1.0

_log = logging.getLogger("dfmesh.engine")


class AdapterProcessError(DfmeshError):
    """The process in which an adapter ran has ended, or could not be started.

    Attributes:
        during_call: Whether it ended while it carried out a call.
    """

    def __init__(self, message: str, *, during_call: bool = False) -> None:
        super().__init__(message)
        self.during_call = during_call

    shows_no_value = True


class Listener(Protocol):
    """Who hears what a worker says."""

    def heard(self, word: Any, value: Any) -> None:
        """The worker said something."""
        ...

    def failed(self, error: AdapterProcessError) -> None:
        """The worker has ended."""
        ...


class WorkerProcess:
    """A child of the site, in a process group of its own.

    Attributes:
        listener: Whose call it carries out; None while it is idle.
        alive: Whether it can be spoken with.
    """

    def __init__(self, federation: Path, site: str, on_end: Callable[[WorkerProcess], None]) -> None:
        """Start it.

        Args:
            federation: The federation file.
            site: Name of the site.
            on_end: Called once, on the event loop, when it has ended and the listener knows.

        Raises:
            AdapterProcessError: the system does not let us.
        """
        self.listener: Listener | None = None
        self.alive = True
        self._unheard = False
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._gone = self._loop.create_future()
        command = [*interpreter(), "-m", "dfmesh.engine.isolation.worker"]
        ours, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        arguments = WorkerArguments(
            federation=os.path.abspath(federation),
            site=site,
            starter=os.getpid(),
            connection=theirs.fileno(),
            lifeline=lifeline,
            path=import_path(),
            log_level=_log_level(),
        )
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*command, msgspec.json.encode(arguments).decode()],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), lifeline),
                process_group=0,
                env=environment(),
            )
        except OSError as error:
            os.close(self._lifeline)
            ours.close()
            raise AdapterProcessError(f"a process for the adapter cannot be started: {error}") from error
        finally:
            theirs.close()
            os.close(lifeline)
        self._channel = Channel(ours)
        self._reading = self._loop.create_task(self._read())
        self._winding_up: asyncio.Task[None] | None = None
        EndWatch(self._process, self._ended)

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its process group."""
        return self._process.pid

    def send(self, word: Any, value: Any = NO_VALUE) -> None:
        """Say something to it, if it lives.

        Raises:
            ValueEncodingError: the value cannot leave the process.
        """
        if self.alive:
            self._channel.send(word, value)

    async def _read(self) -> None:
        try:
            while True:
                word, value = await self._channel.receive()
                if self.listener is not None:
                    self.listener.heard(word, value)
        except EOFError:
            # It is about to end by itself, or has closed a descriptor that is not its own.
            self._loop.call_later(_LAST_WORDS_SECONDS, self._end_unheard)
        except Exception as error:
            _log.warning("a process of an adapter is ended: it sent what is no message (%s)", error)
            self.kill()

    def _end_unheard(self) -> None:
        self._unheard = self._process.returncode is None
        self.kill()

    def kill(self) -> None:
        """End it and what it has started, at once."""
        kill_group(self._process)

    async def terminate(self) -> None:
        """End it: by SIGTERM, then by SIGKILL."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)
            await asyncio.wait([self._gone], timeout=TERMINATE_SECONDS)
            self.kill()
        await self.ended()

    async def ended(self) -> None:
        """Wait until it has ended."""
        await asyncio.shield(self._gone)

    def _ended(self) -> None:
        self.kill()  # what it has started; before its id is free for others
        self._process.wait()
        self._winding_up = self._loop.create_task(self._wind_up())

    async def _wind_up(self) -> None:
        await asyncio.wait([self._reading], timeout=_LAST_WORDS_SECONDS)
        self._reading.cancel()
        self.alive = False
        self._channel.close()
        os.close(self._lifeline)
        if self.listener is not None:
            code = self._process.returncode
            what = f"the process of its adapter {describe_end(code)} during the call"
            if self._unheard:
                what = (
                    "the process of its adapter was ended, since it had closed its connection with the site during the"
                    " call; an adapter must close no descriptors but its own"
                )
            elif code == 0:
                what += "; did the adapter call os._exit, or close the connection with the site?"
            elif code == -signal.SIGKILL:
                what += "; was the memory used up?"
            self.listener.failed(AdapterProcessError(what, during_call=True))
            self.listener = None
        self._on_end(self)
        self._gone.set_result(None)


def _log_level() -> str:
    """From which level on this process logs by its own handlers; empty if it has none."""
    root = logging.getLogger()
    level = logging.getLevelName(root.level)
    return level if root.handlers and level in logging.getLevelNamesMapping() else ""
