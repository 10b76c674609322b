"""How a process ends: noticing it at once, and saying it in words."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable


def signal_name(number: int) -> str:
    """Give the name of a signal, such as `SIGKILL`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def describe_end(code: int) -> str:
    """Say how a process ended.

    Args:
        code: As `subprocess.Popen.returncode`.

    Returns:
        Such as `exited with code 3` or `was killed by SIGKILL`.
    """
    return f"exited with code {code}" if code >= 0 else f"was killed by {signal_name(-code)}"


class EndWatch:
    """Tells when a process has ended. It is still there to be reaped then, and its id is not free for others."""

    def __init__(self, process: subprocess.Popen[bytes], on_end: Callable[[], None]) -> None:
        """Begin to watch.

        Args:
            process: A child of ours.
            on_end: Called once, on the event loop.
        """
        self._process = process
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._descriptor = -1
        try:
            self._descriptor = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait, name="dfmesh-process-end", daemon=True).start()
        else:
            self._loop.add_reader(self._descriptor, self._ended)

    def _wait(self) -> None:
        """Wait in a thread, where the system has no process descriptors."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._ended)

    def _ended(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
        self._on_end()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its own group and all that it has started, at once; nothing if it was reaped."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
