"""What site processes print, on its way to the user: line by line, without ever holding a site up."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from dfmesh.errors import SessionError
from dfmesh.shown_text import shown_line

Output = Literal["stderr", "none"] | Callable[[str, str], None]
"""Where it goes: standard error, nowhere, or a function of site and line."""

MAX_WAITING = 2**20
"""Characters that wait to be shown; while there are as many, further lines are dropped and counted."""

_LINE_OVERHEAD = 64
_CLOSE_SECONDS = 1.0

_log = logging.getLogger("dfmesh.session")


class SiteOutput:
    """Takes lines on the event loop and shows them on a thread of its own, which may be as slow as it likes."""

    def __init__(self, output: Output) -> None:
        """Prepare; the thread starts with the first line.

        Args:
            output: Where the lines go.

        Raises:
            SessionError: it is none of what it may be.
        """
        if output not in ("stderr", "none") and not callable(output):
            raise SessionError(f"output={output!r}; give 'stderr', 'none' or a function of site and line")
        self._show = output if callable(output) else None
        self.wanted = output != "none"
        self._news = threading.Condition()
        self._waiting: list[tuple[str, str]] = []
        self._size = 0
        self._dropped: Counter[str] = Counter()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._complained = False

    def take(self, site: str, line: str) -> None:
        """Show a line, soon. Never blocks: where too much waits already the line is dropped."""
        with self._news:
            # Once lines are dropped, all are until what waits has been shown: one gap instead of many.
            if self._dropped or self._size > MAX_WAITING:
                self._dropped[site] += 1
                return
            self._waiting.append((site, line))
            self._size += len(line) + _LINE_OVERHEAD
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dfmesh-output", daemon=True)
                self._thread.start()
            self._news.notify()

    def close(self) -> None:
        """Show what is there still, unless that takes long: whoever should read it may have stopped."""
        with self._news:
            self._closed = True
            self._news.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        while lines := self._next():
            if self._show is None:
                with suppress(OSError, ValueError):  # Nobody reads standard error any more.
                    _write("".join(f"{shown_line(f'[{site}] {line}')}\n" for site, line in lines))
            else:
                for site, line in lines:
                    self._call(site, line)

    def _next(self) -> list[tuple[str, str]]:
        """Wait for lines; gives none at the end."""
        with self._news:
            while not (self._waiting or self._dropped or self._closed):
                self._news.wait()
            lines, self._waiting, self._size = self._waiting, [], 0
            if not lines:
                lines = [(site, f"... {count:,} lines dropped") for site, count in self._dropped.items()]
                self._dropped.clear()
            return lines

    def _call(self, site: str, line: str) -> None:
        try:
            if self._show is not None:
                self._show(site, line)
        except Exception:  # It is the user's code; the next line may go well.
            if not self._complained:
                self._complained = True
                _log.exception("the function given as output= raised; further errors of it are not shown")


def _write(text: str) -> None:
    stream = sys.stderr
    if stream is None:
        return
    if sys.__stderr__ is None or stream is not sys.__stderr__:
        stream.write(text)  # A notebook, a test, or the live table of the command line, which goes below.
        stream.flush()
        return
    # Not through the stream: a thread that hangs in its lock, since nobody reads, makes the interpreter abort at exit.
    data = text.encode(stream.encoding, "backslashreplace")
    while data:
        data = data[os.write(stream.fileno(), data) :]
