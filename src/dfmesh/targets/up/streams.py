"""What a host sends to a client piece by piece, as the client takes it: journals of jobs, and what sites print."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from dfmesh.engine.messages import Message
from dfmesh.targets.up.hosted_job import HostedJob
from dfmesh.targets.up.messages import JournalEnd, JournalPart, LogPart
from dfmesh.targets.up.site_log import SiteLog

PART_SIZE = 256 * 1024
"""Bytes that are sent at a time, and wait in memory for a client that does not read."""

LINES_GRACE = 0.5
"""Seconds after the end of a job in which lines still come that were printed before; they take another way."""


class Stream(Protocol):
    """Something that a client gets piece by piece.

    Attributes:
        done: Whether nothing more will come.
    """

    done: bool

    def part(self) -> Message | None:
        """Give the next piece; None if there is none at the moment."""
        ...

    def close(self) -> None:
        """Let go of what it reads."""
        ...


class JournalStream:
    """The results of a job, from the first on, and then as they come."""

    def __init__(
        self, job: str, number: int, path: Path, hosted: HostedJob | None, broken: str, on_news: Callable[[], None]
    ) -> None:
        """Open a journal.

        Args:
            job: Id of the job.
            number: What the client calls this stream.
            path: File with the results.
            hosted: The job, if it is going on.
            broken: Why the journal of a job that is over has no end; empty if it has.
            on_news: Called when there is more.

        Raises:
            OSError: the journal cannot be read.
        """
        self.job = job
        self.number = number
        self.done = False
        self._hosted = hosted
        self._broken = broken
        self._on_news = on_news
        self._position = 0
        self._path = path
        self._file = -1
        self._size = 0
        if hosted is not None:
            hosted.followers.add(self)
        else:
            self._open()

    def news(self) -> None:
        """As `Follower.news`."""
        self._on_news()

    def keep(self) -> None:
        """As `Follower.keep`."""
        with suppress(OSError):  # It is tried again when it is read.
            self._open()

    def part(self) -> Message | None:
        """As `Stream.part`."""
        hosted = self._hosted
        end = self._size if hosted is None else hosted.journal.results.size
        try:
            data = self._read(min(PART_SIZE, end - self._position))
        except FileNotFoundError:
            self.done = True
            return JournalEnd(self.job, self.number, "its journal has been removed")
        if data:
            self._position += len(data)
            return JournalPart(self.job, self.number, data)
        self.done = hosted is None or hosted.over
        if not self.done:
            return None
        return JournalEnd(self.job, self.number, self._broken if hosted is None else hosted.broken)

    def _read(self, size: int) -> bytes:
        log = None if self._hosted is None else self._hosted.journal.results
        if log is not None and log.is_open:  # Of a job that is going on the file is open once, for all.
            return log.read(self._position, size)
        if self._file < 0:
            self._open()
        return os.pread(self._file, size, self._position)

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size

    def close(self) -> None:
        """As `Stream.close`. May be called again."""
        if self._hosted is not None:
            self._hosted.followers.discard(self)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class LogStream:
    """What sites print, from a position on; if it is followed, also what they print later."""

    def __init__(
        self,
        number: int,
        log: SiteLog,
        begin: int,
        job: HostedJob | None,
        on_news: Callable[[], None],
        *,
        follow: bool,
    ) -> None:
        """Begin.

        Args:
            number: What the client calls this stream.
            log: What sites print.
            begin: Position of the first byte.
            job: The job with which it ends, if it is followed; None if it has no end then.
            on_news: Called when the job is over.
            follow: Whether to go on.
        """
        self.done = False
        self._number = number
        self._log = log
        self._position = begin
        self._job = job if follow else None
        self._on_news = on_news
        self._end = None if follow else log.end
        self._ending: asyncio.TimerHandle | None = None
        if self._job is not None:
            self._job.followers.add(self)

    def news(self) -> None:
        """As `Follower.news`."""
        self._on_news()

    def keep(self) -> None:
        """As `Follower.keep`: the log stays."""

    def part(self) -> Message | None:
        """As `Stream.part`."""
        if self._job is not None and self._job.over and self._ending is None:
            self._ending = asyncio.get_running_loop().call_later(LINES_GRACE, self._set_end)
        most = PART_SIZE if self._end is None else min(PART_SIZE, self._end - self._position)
        data, self._position = self._log.read(self._position, most) if most > 0 else (b"", self._position)
        self.done = not data and self._end is not None
        return LogPart("", self._number, data, self.done) if data or self.done else None

    def _set_end(self) -> None:
        self._end = self._log.end
        self._on_news()

    def close(self) -> None:
        """As `Stream.close`."""
        if self._job is not None:
            self._job.followers.discard(self)
        if self._ending is not None:
            self._ending.cancel()


class LinesStream:
    """What sites have printed in the time of a job that is over."""

    def __init__(self, number: int, lines: bytes) -> None:
        self.done = False
        self._number = number
        self._lines = lines

    def part(self) -> Message | None:
        """As `Stream.part`."""
        self.done = True
        return LogPart("", self._number, self._lines, True)

    def close(self) -> None:
        """As `Stream.close`."""
