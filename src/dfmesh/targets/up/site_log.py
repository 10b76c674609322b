"""What the sites of a host print, in files of bounded size that are read while they are written.

The files are named after the position of their first byte in all that was ever printed, so positions stay valid while
old files are removed, and from one host of a federation to the next.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE_SIZE = 4 * 2**20
"""Bytes after which another file is begun."""

FILES_KEPT = 2
"""Files that are kept, the one that is written included."""

_SUFFIX = ".log"


class SiteLog:
    """A log that is being written.

    Attributes:
        end: Position behind the last byte that readers can have.
    """

    def __init__(
        self,
        directory: Path,
        soon: Callable[[Callable[[], None]], Any],
        on_written: Callable[[], None],
        file_size: int | None = None,
    ) -> None:
        """Go on with what is in a directory.

        Args:
            directory: Where the files are; made if it is not there.
            soon: Defers a function to the end of the present turn of the event loop.
            on_written: Called when there is more to be read.
            file_size: Bytes after which another file is begun; None for `FILE_SIZE`.

        Raises:
            OSError: it cannot be written.
        """
        self._file_size = file_size or FILE_SIZE
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._soon = soon
        self._on_written = on_written
        self._waiting: list[bytes] = []
        self.end = log_end(directory)
        self._begin = self.end
        self._descriptor = -1
        self._open()

    def take(self, site: str, line: str, printed: float | None = None) -> None:
        """Add a line, which was printed so many seconds after 1970; None for now."""
        when = datetime.now(UTC) if printed is None else datetime.fromtimestamp(printed, UTC)
        now = when.isoformat(timespec="milliseconds").removesuffix("+00:00")
        if not self._waiting:
            self._soon(self._flush)
        self._waiting.append(f"{now}Z {site} {line}\n".encode("utf-8", "replace"))

    def _flush(self) -> None:
        data, self._waiting = b"".join(self._waiting), []
        if self._descriptor < 0 or not data:
            return
        with contextlib.suppress(OSError):  # Nothing that sites print is worth a job.
            self.end += os.write(self._descriptor, data)
            if self.end - self._begin >= self._file_size:
                self._open()
        self._on_written()

    def _open(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        files = _files(self._directory)
        reuse = files and self.end - files[-1][0] < self._file_size
        self._begin = files[-1][0] if reuse else self.end
        path = files[-1][1] if reuse else self._directory / f"{self.end:020d}{_SUFFIX}"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for _, old in _files(self._directory)[:-FILES_KEPT]:
            old.unlink(missing_ok=True)

    def read(self, position: int, most: int) -> tuple[bytes, int]:
        """Give bytes from a position on and the position behind them; what is there no more is passed over."""
        return read_log(self._directory, position, most)

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._flush()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def read_log(directory: Path, position: int, most: int) -> tuple[bytes, int]:
    """Read the log in a directory, whether a host writes it or not.

    Args:
        directory: Where its files are.
        position: Where to begin; what is there no more is passed over.
        most: Bytes to give at most.

    Returns:
        The bytes, none at the end, and the position behind them.
    """
    for begin, path in _files(directory):
        with contextlib.suppress(OSError):  # It was removed meanwhile.
            if position >= begin + path.stat().st_size:
                continue
            with path.open("rb") as file:
                start = max(position, begin)
                file.seek(start - begin)
                data = file.read(most)
                return data, start + len(data)
    return b"", position


def _files(directory: Path) -> list[tuple[int, Path]]:
    found = [(path.name.removesuffix(_SUFFIX), path) for path in directory.glob(f"*{_SUFFIX}")]
    return sorted((int(begin), path) for begin, path in found if begin.isdecimal())


def log_end(directory: Path) -> int:
    """Give the position behind the last byte of the log in a directory; 0 if there is none."""
    files = _files(directory)
    return files[-1][0] + files[-1][1].stat().st_size if files else 0
