"""An append-only file of messages, written in batches that are checked when the file is read after a crash.

A batch is a notice with the size and the checksum of what follows it, then frames as `targets.wire` makes them, with
their large buffers in between. So a reader that trusts the file can be fed with it as with a connection.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct
from typing import Any

from dfmesh.errors import DfmeshError
from dfmesh.targets.wire import FIRST_NOTICE, IN_BAND, Codec, FrameReader, Spot, WireError, notice

CHECK = FIRST_NOTICE
"""Kind of the notice before a batch."""

_CHECK_BODY = Struct("<QI")  # size and checksum of the batch
_NO_CHECK = notice(CHECK, bytes(_CHECK_BODY.size))
_HEAD_SIZE = len(_NO_CHECK) - _CHECK_BODY.size
_BATCH_SIZE = 256 * 1024
_PIECE = 1024 * 1024
_MOST_PARTS = 512


class RecordLog:
    """A log that is being written, and read from its beginning by any number of readers meanwhile.

    Attributes:
        path: The file.
        size: Bytes that readers can have.
    """

    def __init__(
        self,
        path: Path,
        codec: Codec,
        soon: Callable[[Callable[[], None]], Any],
        on_written: Callable[[], None] = lambda: None,
        on_broken: Callable[[OSError], None] = lambda error: None,
        *,
        keep_open: bool = True,
    ) -> None:
        """Open a log, and make it if it is not there.

        Args:
            path: The file.
            codec: Of the messages.
            soon: Defers a function to the end of the present turn of the event loop; batches are written then.
            on_written: Called when there is more to be read.
            on_broken: Called when something cannot be written; it is lost, and nothing more is written.
            keep_open: Whether the file stays open between uses. If not, any number of logs can be written at a time.

        Raises:
            OSError: it cannot be opened.
        """
        self.path = path
        self._codec = codec
        self._soon = soon
        self._on_written = on_written
        self._on_broken = on_broken
        self._keep_open = keep_open
        self._descriptor = -1
        self._closed = False
        with self._opened() as descriptor:
            self.size = os.fstat(descriptor).st_size
        self._parts: list[bytearray | memoryview] = []
        self._tail: bytearray | None = None
        self._waiting = 0
        self._scheduled = False
        self._broken = False

    @property
    def is_open(self) -> bool:
        """Whether it can still be read and written."""
        return not self._closed

    @property
    def complete(self) -> bool:
        """Whether all that was added has been written."""
        return not self._waiting and not self._broken

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Give the descriptor of the file for a moment."""
        if self._descriptor < 0:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            yield self._descriptor
        finally:
            if not self._keep_open:
                self._release()

    def _release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, message: Any) -> None:
        """Add a message; readers get it, with what is added in the same turn, once it is in the file.

        Raises:
            WireError: it cannot be encoded.
        """
        out = self._tail
        if out is None:
            out = self._tail = bytearray() if self._parts else bytearray(_NO_CHECK)
            self._parts.append(out)
        start = len(out)
        attachments = self._codec.begin_frame(message, out)
        if attachments:
            self._codec.end_frame(out, start, [Spot(IN_BAND, 0, len(found.view)) for found in attachments])
            self._parts += [found.view for found in attachments if len(found.view)]
            self._waiting += sum(len(found.view) for found in attachments)
            self._tail = None
        self._waiting += len(out) - start
        if self._waiting >= _BATCH_SIZE:
            self.flush()
        elif not self._scheduled:
            self._scheduled = True
            self._soon(self.flush)

    def flush(self) -> None:
        """Write what was added."""
        self._scheduled = False
        parts, self._parts, self._tail, self._waiting = self._parts, [], None, 0
        if not parts or self._broken or self._closed:
            return
        checksum, size = zlib.crc32(memoryview(parts[0])[len(_NO_CHECK) :]), len(parts[0]) - len(_NO_CHECK)
        for part in parts[1:]:
            checksum = zlib.crc32(part, checksum)
            size += len(part)
        _CHECK_BODY.pack_into(parts[0], _HEAD_SIZE, size, checksum)
        try:
            with self._opened() as descriptor:
                self._write(descriptor, parts)
        except OSError as error:
            self._broken = True
            self._on_broken(error)
            return
        self.size += len(_NO_CHECK) + size
        self._on_written()

    def _write(self, descriptor: int, parts: list[bytearray | memoryview]) -> None:
        try:
            _write(descriptor, parts)
        except OSError:
            # Part of a batch is of no use, and how the job has ended may need the room that it takes.
            with suppress(OSError):
                os.ftruncate(descriptor, self.size)
            raise

    def recovered(self) -> None:
        """Take note that the file was cut to what is whole; nothing may be waiting to be written."""
        self.size = self.path.stat().st_size

    def read(self, position: int, most: int) -> bytes:
        """Give the bytes from a position on, of what has been written; none at the end."""
        with self._opened() as descriptor:
            return os.pread(descriptor, min(most, self.size - position), position)

    def close(self) -> None:
        """Write what is left, and close the file. May be called again."""
        self.flush()
        self._closed = True
        self._release()


def _write(descriptor: int, parts: list[bytearray | memoryview]) -> None:
    waiting = [memoryview(part) for part in parts]
    while waiting:
        written = os.writev(descriptor, waiting[:_MOST_PARTS])
        while waiting and written >= len(waiting[0]):
            written -= len(waiting.pop(0))
        if written:
            waiting[0] = waiting[0][written:]


class RecordLogReader:
    """Reads the messages of a log one after the other, from a position on, holding few of them in memory."""

    def __init__(self, log: RecordLog, codec: Codec, position: int = 0) -> None:
        """Begin.

        Args:
            log: The log.
            codec: Of the messages.
            position: Where a batch begins.
        """
        self._log = log
        self._position = position
        self._ready: list[Any] = []
        self._reader = FrameReader(codec, self._ready.append, ignore_check)

    def next(self) -> Any:
        """Give the next message; None if no more are written.

        Raises:
            WireError: the file holds something else.
        """
        while not self._ready:
            data = self._log.read(self._position, _BATCH_SIZE)
            if not data:
                return None
            self._position += len(data)
            self._reader.feed(data)
            self._ready.reverse()
        return self._ready.pop()


def ignore_check(kind: int, body: bytes) -> None:
    """Pass over the checksum of a batch, for readers that trust the file.

    Raises:
        WireError: it is something else.
    """
    if kind != CHECK or len(body) != _CHECK_BODY.size:
        raise WireError(f"a notice of kind {kind} in a log")


class RecordLogError(DfmeshError):
    """A log is not one of ours."""


def recover(path: Path, codec: Codec, take: Callable[[Any], None]) -> None:
    """Read a log whose writer may have been killed, and cut off what is not whole at its end.

    Args:
        path: The file; need not be there.
        codec: Of the messages.
        take: Gets each message.

    Raises:
        RecordLogError: what was written whole are no messages.
        OSError: the file cannot be read or cut.
    """
    if not path.exists():
        return
    reader = FrameReader(codec, take, ignore_check)
    with path.open("r+b") as file:
        end = 0
        while size := _whole_batch(file, end):
            file.seek(end)
            left = size
            while left:
                data = file.read(min(left, _PIECE))
                left -= len(data)
                try:
                    reader.feed(data)
                except WireError as error:
                    raise RecordLogError(f"{path} cannot be read: {error}") from error
            end += size
        file.truncate(end)


def _whole_batch(file: Any, start: int) -> int:
    """Give the size of the batch at a position, its head included; 0 if it is not whole."""
    file.seek(start)
    head = file.read(len(_NO_CHECK))
    if len(head) < len(_NO_CHECK) or head[:_HEAD_SIZE] != _NO_CHECK[:_HEAD_SIZE]:
        return 0
    size, expected = _CHECK_BODY.unpack_from(head, _HEAD_SIZE)
    checksum, left = 0, size
    while left:
        data = file.read(min(left, _PIECE))
        if not data:
            return 0
        checksum = zlib.crc32(data, checksum)
        left -= len(data)
    return len(head) + size if checksum == expected else 0
