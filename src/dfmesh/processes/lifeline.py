"""A process does not outlive the one that started it, however either of them hangs or ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import threading

from dfmesh.processes.readiness import is_readable

_F_SETSIG = 10  # Linux; not in the fcntl module before Python 3.13
_LINUX = hasattr(os, "pidfd_open")


def arm(lifeline: int) -> None:
    """End this process and all others of its group when the other end of a pipe closes.

    On Linux the kernel sends SIGKILL by itself, so it works also while a thread holds the interpreter's lock for
    ever. Elsewhere a thread waits for the end of the pipe.
    """
    os.set_inheritable(lifeline, False)
    if not (_LINUX and _arm_kernel(lifeline)):
        threading.Thread(target=_wait_for_end, args=[lifeline], name="lifeline", daemon=True).start()
    elif is_readable(lifeline):
        die()  # it closed before we asked to be told


def watch_starter(starter: int, loop: asyncio.AbstractEventLoop) -> None:
    """End this process also when its starter is gone while a fork of that still holds the pipe open.

    Args:
        starter: Process id of who started us.
        loop: Our event loop.
    """
    if os.getppid() != starter:
        die()
    if _LINUX:
        try:
            loop.add_reader(os.pidfd_open(starter), die)
        except OSError:
            die()


def die() -> None:
    """End this process and those that its adapters started, at once."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _arm_kernel(lifeline: int) -> bool:
    target = -os.getpgrp() if os.getpgrp() == os.getpid() else os.getpid()
    try:
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, target)
        fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    except OSError:
        return False
    return True


def _wait_for_end(lifeline: int) -> None:
    while True:
        try:
            if not os.read(lifeline, 1):
                die()
        except InterruptedError:
            continue
        except OSError:
            die()
