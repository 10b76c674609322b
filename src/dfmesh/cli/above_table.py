"""What is printed while a table is live, such as what sites print: it stands above the table, in lines of its own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import IO

from rich.console import Console
from rich.file_proxy import FileProxy


class AboveTable:
    """Takes what is written to `sys.stdout` and `sys.stderr`, from any thread, until it is ended."""

    def __init__(self, console: Console) -> None:
        """Begin.

        Args:
            console: Has the table.
        """
        self._lock = threading.RLock()
        self._taken = sys.stdout, sys.stderr
        sys.stdout = _Locked(console, sys.stdout, self._lock)
        sys.stderr = _Locked(console, sys.stderr, self._lock)

    def end(self, stop: Callable[[], None]) -> None:
        """Stop the table, and take no more.

        Args:
            stop: Draws the table for the last time, in several steps, between which nobody must write.
        """
        with self._lock:
            stop()
            sys.stdout, sys.stderr = self._taken


class _Locked(FileProxy):
    def __init__(self, console: Console, file: IO[str], lock: threading.RLock) -> None:
        super().__init__(console, file)
        self._lock = lock

    def write(self, text: str) -> int:
        """Write, while nobody else does."""
        with self._lock:
            return super().write(text)


__all__ = ["AboveTable"]
