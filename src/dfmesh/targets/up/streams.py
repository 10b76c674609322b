"""What a host sends to a client piece by piece, as the client takes it: journals of jobs, and what sites print."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from dfmesh.engine.messages import Message
from dfmesh.targets.up.hosted_job import HostedJob
from dfmesh.targets.up.messages import JournalEnd, JournalPart, LogPart

PART_SIZE = 256 * 1024
"""Bytes that are sent at a time, and wait in memory for a client that does not read."""


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


class Log(Protocol):
    """Text that is read by position.

    Attributes:
        end: Position behind the last byte that readers can have.
    """

    @property
    def end(self) -> int: ...  # noqa: D102
    def read(self, position: int, most: int) -> tuple[bytes, int]: ...  # noqa: D102


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
    """What sites, or the adapters of a job, have printed; if it is followed, also what they print later."""

    def __init__(
        self,
        number: int,
        log: Log,
        job: HostedJob | None,
        on_news: Callable[[], None],
        *,
        follow: bool,
    ) -> None:
        """Begin.

        Args:
            number: What the client calls this stream.
            log: What is printed.
            job: The job with which it ends, if it is followed; None if it has no end then.
            on_news: Called when the job is over.
            follow: Whether to go on.
        """
        self.done = False
        self._number = number
        self._log = log
        self._position = 0
        self._job = job if follow else None
        self._on_news = on_news
        self._end = None if follow else log.end
        if self._job is not None:
            self._job.followers.add(self)

    def news(self) -> None:
        """As `Follower.news`."""
        self._on_news()

    def keep(self) -> None:
        """As `Follower.keep`: the log stays."""

    def part(self) -> Message | None:
        """As `Stream.part`."""
        if self._job is not None and self._job.over:
            self._end = self._log.end
        most = PART_SIZE if self._end is None else min(PART_SIZE, self._end - self._position)
        data, self._position = self._log.read(self._position, most) if most > 0 else (b"", self._position)
        self.done = not data and self._end is not None
        return LogPart("", self._number, data, self.done) if data or self.done else None

    def close(self) -> None:
        """As `Stream.close`."""
        if self._job is not None:
            self._job.followers.discard(self)
