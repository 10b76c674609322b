"""Ctrl-C while a job runs: it cancels the job, wherever the main thread happens to be."""

from __future__ import annotations

import signal
import socket
import threading
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dfmesh.session import Job


class CancelOnInterrupt(AbstractContextManager["CancelOnInterrupt"]):
    """As long as this context is open, the first Ctrl-C cancels the job; a second one raises KeyboardInterrupt.

    Python raises KeyboardInterrupt only when the main thread runs bytecode. A signal that comes just before that thread
    blocks on a lock is not seen until the lock is free, which for a long job is too late. The wake-up descriptor is
    written to in any case, and a thread that reads it can cancel.
    """

    def __init__(self, job: Job) -> None:
        """Prepare.

        Args:
            job: The job to cancel.
        """
        self._job = job
        self._signals = 0
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._thread = threading.Thread(target=self._watch, name="dfmesh-interrupt", daemon=True)

    def __enter__(self) -> CancelOnInterrupt:
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
                self._job.cancel("interrupted with Ctrl-C")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._old_handler)
        signal.set_wakeup_fd(self._old_descriptor)
        self._writer.close()
        self._thread.join()
        self._reader.close()
