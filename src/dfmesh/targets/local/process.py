"""One life of one site process, as the client sees it: started, watched, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from dfmesh.errors import SessionError
from dfmesh.processes.ending import EndWatch, kill_group, signal_name
from dfmesh.processes.starting import environment, interpreter
from dfmesh.targets.local.control import SiteArguments
from dfmesh.targets.local.output_lines import OutputLines

SITE_MODULE = ("-m", "dfmesh.targets.local.site_process")

_KEPT_OUTPUT = 64 * 1024
_MOST_READS = 32  # far more than a pipe holds; what escaped from the process group may print for ever
_TOLD_LINES = 6
_CRASHES = {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"}
_CRASH_MARK = "Fatal Python error"
_CULPRIT_MARK = "Current thread"


class SiteProcess:
    """A running site process.

    Attributes:
        pid: Its process id, which is also the id of its process group.
        control: Our end of its control connection; the link that uses it closes it.
    """

    def __init__(
        self,
        federation: Path,
        name: str,
        arguments: SiteArguments,
        on_exit: Callable[[SiteProcess], None],
        program: Sequence[str] = SITE_MODULE,
        on_line: Callable[[str], None] | None = None,
        python: str | None = None,
    ) -> None:
        """Start it.

        Args:
            federation: The federation file.
            name: Name of the site.
            arguments: What it needs to know; the descriptors of control and lifeline are filled in.
            on_exit: Called once, on the event loop, when it has ended and all its output was read.
            program: Python's arguments that say what to run.
            on_line: Gets each line that it prints once `show_output` was called; None if nobody wants them.
            python: Interpreter that is to run it; None for ours.

        Raises:
            SessionError: the system does not let us start a process, or there is no such interpreter.
        """
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._output = bytearray()
        self._on_line = on_line
        self._shows = False
        self._lines = OutputLines()
        command = [*interpreter(python), *program, os.path.abspath(federation), name]
        self.control, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        self._log, log = os.pipe()
        os.set_blocking(self._log, False)
        filled = msgspec.structs.replace(arguments, control=theirs.fileno(), lifeline=lifeline)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [*command, msgspec.json.encode(filled).decode()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(), lifeline, arguments.calls),
                process_group=0,
                env=environment(python),
            )
        except OSError as error:
            self._release()
            self.control.close()
            raise SessionError(f"site {name!r} cannot be started: {error}") from error
        finally:
            theirs.close()
            os.close(lifeline)
            os.close(log)
        self.pid = self._process.pid
        self._loop.add_reader(self._log, self._read_output)
        EndWatch(self._process, self._exited)

    @property
    def running(self) -> bool:
        """Whether its end has not been seen yet."""
        return self._process.returncode is None

    @property
    def output(self) -> str:
        """The last 64 KiB of what it and its adapters printed."""
        return self._output.decode(errors="replace")

    def show_output(self) -> None:
        """Hand on what it prints from now on. What came of its start is in `output` only, for it may be noise."""
        self._drain()
        self._shows = self._on_line is not None

    def reason(self, *, quote: bool = True) -> str:
        """Say how it ended, such as `killed by SIGKILL` or `exited with code 3`, with the last lines it printed.

        Args:
            quote: Whether to give the lines, which may show what adapters had in hand.
        """
        code = self._process.returncode
        if code is None:
            return "still running"
        lines = [line for line in self.output.splitlines() if line.strip()]
        if code >= 0:
            return _with_lines(f"exited with code {code}", lines[-_TOLD_LINES:] if code else [], quote=quote)
        ended_by = signal_name(-code)
        if ended_by not in _CRASHES:
            return f"killed by {ended_by}"
        return _with_lines(f"killed by {ended_by}", _crash_lines(lines), quote=quote)

    def terminate(self) -> None:
        """Ask it to end with SIGTERM."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and all processes that it started, at once."""
        kill_group(self._process)

    def kill_and_wait(self) -> None:
        """As `kill`, without an event loop: at the end of the interpreter."""
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2)

    def _exited(self) -> None:
        self.kill()  # what its adapters started; before its id is free for others
        self._process.wait()
        self._loop.remove_reader(self._log)
        self._drain()
        self._hand_on(self._lines.end())
        self._release()
        self._on_exit(self)

    def _release(self) -> None:
        os.close(self._log)
        os.close(self._lifeline)

    def _drain(self) -> None:
        for _ in range(_MOST_READS):
            if not self._read_output():
                return

    def _read_output(self) -> bool:
        """Read once, so that who prints without end leaves us time for others; gives whether anything was there."""
        try:
            data = os.read(self._log, _KEPT_OUTPUT)
        except BlockingIOError:
            return False
        if not data and self.running:
            self._loop.remove_reader(self._log)  # it closed its output
        self._output += data
        del self._output[:-_KEPT_OUTPUT]
        if self._shows:
            self._hand_on(self._lines.feed(data))
        return bool(data)

    def _hand_on(self, lines: list[str]) -> None:
        if self._on_line is not None:
            for line in lines:
                self._on_line(line)


def _crash_lines(lines: list[str]) -> list[str]:
    """Give what was told of the last crash: what it was, and where the thread was in which it happened."""
    crashes = [index for index, line in enumerate(lines) if _CRASH_MARK in line]
    if not crashes:
        return []
    told = lines[crashes[-1] :]
    # The other threads, of which there may be many, come before it.
    culprit = next((index for index, line in enumerate(told) if line.startswith(_CULPRIT_MARK)), 1)
    return [told[0], *told[culprit:]][:_TOLD_LINES]


def _with_lines(reason: str, lines: list[str], *, quote: bool) -> str:
    if not lines:
        return reason
    if not quote:
        return f"{reason} (what it printed last stays there, since the federation has rules of residency; see its log)"
    return ":\n".join([reason, "\n".join(lines)])
