"""What the calls of one job print and log at one site, on its way to who submitted it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.engine.message_parts import JobLine
from dfmesh.netir import Frame

MOST_PER_SECOND = 1000
"""Lines of one job at one site that are taken in a second; further ones are counted as dropped."""

LONGEST = 2000
"""Characters of a line that are kept."""

BATCH_SECONDS = 0.1
"""Time that lines are collected before they are sent together."""

CUT = " ..."
"""Stands behind a line that was cut."""

Whose = tuple[str, str, Frame]
"""Operation, statement and frame of a call."""

TakeLines = Callable[[tuple[JobLine, ...], int], None]
"""Gets lines, and how many were dropped since it was called last."""

_Unfinished = tuple[int, str, str]
_NOBODY: Whose = ("", "", ())


class CallLines:
    """Takes text from any thread, makes lines of it, and sends them in batches from the event loop.

    While nothing is said it does nothing. The lock is one that a thread may take twice: a finaliser that prints may
    run while it is held.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        whose: Callable[[int], Whose | None],
        send: TakeLines,
    ) -> None:
        """Begin without lines.

        Args:
            loop: Where they are sent.
            whose: Tells what a call is; None once it is over. Called on any thread.
            send: Sends them.
        """
        self._loop = loop
        self._whose = whose
        self._send = send
        self._lock = threading.RLock()
        self._waiting: list[JobLine] = []
        # Text behind the last end of a line, by call, source and logger.
        self._unfinished: dict[_Unfinished, tuple[Whose, str]] = {}
        # Of which the text behind the last end of a line was passed over.
        self._headless: set[_Unfinished] = set()
        self._dropped = 0
        self._second = 0.0
        self._taken = 0
        self._armed = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def say(self, call: int, source: str, logger: str, text: str) -> None:
        """Take what a call has printed or logged; on any thread.

        Args:
            call: Number of the call.
            source: `stdout`, `stderr`, or the level of a log record.
            logger: Name of the logger; empty if it was printed.
            text: Some lines, the last of which may not be at its end yet.
        """
        key = (call, source, HIDDEN_SECRETS.hide(logger))
        text = HIDDEN_SECRETS.hide(text)
        with self._lock:
            if self._closed:
                return
            ends = text.count("\n")
            if self._taken >= MOST_PER_SECOND and not self._room():
                self._pass_over(key, text, ends)
            elif ends:
                self._take_lines(key, text, ends)
            elif text and key not in self._headless:
                self._go_on(key, text)
            if not self._armed:
                self._arm_soon()

    def _take_lines(self, key: _Unfinished, text: str, ends: int) -> None:
        call, source, logger = key
        before = self._unfinished.pop(key, None)
        whose = self._whose(call) or (_NOBODY if before is None else before[0])
        taken = min(ends, self._room())
        first, *others = text.split("\n", taken)[:taken]
        if key in self._headless:
            self._headless.discard(key)
            self._dropped += 1
        else:
            self._take(whose, source, logger, first if before is None else before[1] + first)
        for line in others:
            self._take(whose, source, logger, line)
        self._dropped += ends - taken
        rest = text[text.rfind("\n") + 1 :]
        if rest:
            self._go_on(key, rest)

    def _go_on(self, key: _Unfinished, text: str) -> None:
        """Keep text that is behind the last end of a line."""
        before = self._unfinished.get(key)
        whose = (self._whose(key[0]) or _NOBODY) if before is None else before[0]
        text = text if before is None else before[1] + text
        # A progress bar overwrites its line; only its last state is of interest.
        self._unfinished[key] = (whose, text[text.rfind("\r", 0, -1) + 1 :][: LONGEST + 1])

    def _pass_over(self, key: _Unfinished, text: str, ends: int) -> None:
        """Count lines of which there are too many, and note whether one has begun, whose end is to be passed over."""
        if ends:
            self._dropped += ends
            self._unfinished.pop(key, None)
            self._headless.discard(key)
        if not text.endswith("\n") and key not in self._unfinished:
            self._headless.add(key)

    def add(self, call: int, lines: tuple[JobLine, ...], dropped: int) -> None:
        """Take lines that a call has said in a process of its own; on the event loop."""
        with self._lock:
            if self._closed:
                return
            operation, node, frame = self._whose(call) or _NOBODY
            for line in lines:
                if self._room():
                    self._taken += 1
                    self._waiting.append(
                        msgspec.structs.replace(line, operation=operation, node=node, frame=frame),
                    )
                else:
                    self._dropped += 1
            self._dropped += dropped
            self._arm_soon()

    def _room(self) -> int:
        now = time.monotonic()
        if now - self._second >= 1.0:
            self._second, self._taken = now, 0
        return max(0, MOST_PER_SECOND - self._taken)

    def _take(self, whose: Whose, source: str, logger: str, line: str) -> None:
        line = HIDDEN_SECRETS.hide(line).rstrip("\r")
        line = line[line.rfind("\r") + 1 :]
        if len(line) > LONGEST:
            line = line[:LONGEST] + CUT
        self._taken += 1
        self._waiting.append(JobLine(time.time(), *whose, source, logger, line))

    def _arm_soon(self) -> None:
        if not self._armed:
            with suppress(RuntimeError):  # The loop has closed; nobody wants lines any more.
                self._loop.call_soon_threadsafe(self._arm)
                self._armed = True

    def _arm(self) -> None:
        if not self._closed and self._timer is None:
            self._timer = self._loop.call_later(BATCH_SECONDS, self.flush)

    def flush(self, *, unfinished: bool = False) -> None:
        """Send what was said; on the event loop.

        Args:
            unfinished: Also lines of calls that go on and have not ended the line.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._armed:
            return
        with self._lock:
            self._armed = False
            ended = [key for key in self._headless if unfinished or self._whose(key[0]) is None]
            self._headless.difference_update(ended)
            self._dropped += len(ended)
            for key, (whose, text) in list(self._unfinished.items()):
                call, source, logger = key
                if unfinished or self._whose(call) is None:
                    del self._unfinished[key]
                    if self._room():
                        self._take(whose, source, logger, text)
                    else:
                        self._dropped += 1
            lines, self._waiting = self._waiting, []
            dropped, self._dropped = self._dropped, 0
        if lines or dropped:
            self._send(tuple(lines), dropped)

    def close(self) -> None:
        """Send what was said, and take no more; on the event loop."""
        with self._lock:
            self._armed = self._armed or bool(self._unfinished)
            self.flush(unfinished=True)
            self._closed = True
            self._whose, self._send = _nobody, _nowhere


def _nobody(_call: int) -> Whose | None:
    return None


def _nowhere(_lines: tuple[JobLine, ...], _dropped: int) -> None:
    pass
