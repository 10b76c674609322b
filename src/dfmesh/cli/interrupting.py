"""Ctrl-C while a job runs: it cancels the job or detaches from it, wherever the main thread happens to be."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self

from dfmesh.errors import SessionError
from dfmesh.processes.forking import give_back_in_forks

if TYPE_CHECKING:
    from dfmesh.session import Job


class _OnInterrupt(AbstractContextManager["_OnInterrupt"]):
    """As long as this context is open, the first Ctrl-C does something; a second one raises KeyboardInterrupt.

    Python raises KeyboardInterrupt only when the main thread runs bytecode. A signal that comes just before that thread
    blocks on a lock is not seen until the lock is free, which for a long job is too late. The wake-up descriptor is
    written to in any case, and a thread that reads it can act.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._signals = 0
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._thread = threading.Thread(target=self._watch, name="dfmesh-interrupt", daemon=True)

    def __enter__(self) -> Self:
        give_back_in_forks(signal.SIGINT)
        self._old_descriptor = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._old_handler = signal.signal(signal.SIGINT, self._handle)
        self._thread.start()
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 1:
            raise KeyboardInterrupt

    def _watch(self) -> None:
        while received := self._reader.recv(1):
            if received[0] == signal.SIGINT:
                self._act()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._old_handler)
        signal.set_wakeup_fd(self._old_descriptor)
        self._writer.close()
        self._thread.join()
        self._reader.close()


class CancelOnInterrupt(_OnInterrupt):
    """As long as this context is open, the first Ctrl-C cancels the job; a second one raises KeyboardInterrupt."""

    def __init__(self, job: Job) -> None:
        """Prepare.

        Args:
            job: The job to cancel.
        """
        super().__init__(lambda: job.cancel("interrupted with Ctrl-C"))


class DetachOnInterrupt(_OnInterrupt):
    """As long as this context is open, the first Ctrl-C detaches from the job; a second raises KeyboardInterrupt."""

    def __init__(self, job: Job) -> None:
        """Prepare.

        Args:
            job: The job to leave to its host.
        """
        super().__init__(lambda: _detach(job))


def _detach(job: Job) -> None:
    with suppress(SessionError):  # The host is gone, which ends the job here as well.
        job.detach()
