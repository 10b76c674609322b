"""What the adapters of one job have printed and logged, as its host keeps it: as text, and among its results.

As text it is read by `dfmesh logs --job`, from files of bounded size. Among the results it comes to who attaches to the
job: the first lines as they come, and of what is too much the last ones, when the job ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from dfmesh.engine.line_text import NO_BREAK_SPACE, said_text, whose_text
from dfmesh.engine.message_parts import JobLine
from dfmesh.engine.messages import JobLines
from dfmesh.targets.up.site_log import SiteLog, log_end, read_log

FILE_SIZE = 512 * 1024
"""Bytes of text in each of the two files that are kept of a job."""

MOST_AT_ONCE = 9_000
"""Lines of a job that stand among its results where they came."""

MOST_AT_END = 1_000
"""Lines that stand at the end of its results, if there were more."""


class JobText:
    """The lines of a job as text, `time site text` each; `site` names operation and frame, too, without a space."""

    def __init__(
        self,
        directory: Path,
        soon: Callable[[Callable[[], None]], Any] | None = None,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        """Look at what is there; nothing is made before there is a line.

        Args:
            directory: Where the files are, or will be.
            soon: As for `SiteLog`; None for who reads only.
            on_written: Called when there is more to be read.
        """
        self._directory = directory
        self._soon = soon
        self._on_written = on_written
        self._log: SiteLog | None = None

    @property
    def end(self) -> int:
        """Position behind the last byte that readers can have."""
        return log_end(self._directory) if self._log is None else self._log.end

    def take(self, message: JobLines) -> None:
        """Add lines. Where they cannot be written they are lost: they are not worth a job."""
        if self._log is None and self._soon is not None:
            with suppress(OSError):
                self._log = SiteLog(self._directory, self._soon, self._on_written, FILE_SIZE)
        if self._log is None:
            return
        for line in message.lines:
            whose = whose_text(message.site, line.operation, line.frame).replace(" ", NO_BREAK_SPACE)
            self._log.take(whose, said_text(line.source, line.logger, line.text), line.time)
        if message.dropped:
            self._log.take(message.site, f"... {message.dropped:,} lines dropped")

    def read(self, position: int, most: int) -> tuple[bytes, int]:
        """Give bytes from a position on and the position behind them; what is there no more is passed over."""
        return read_log(self._directory, position, most)

    def close(self) -> None:
        """Write what is left, and close the file. May be called again."""
        if self._log is not None:
            self._log.close()


class LinesAmongResults:
    """Decides which lines stand among the results of a job."""

    def __init__(self) -> None:
        self._room = MOST_AT_ONCE
        self._last: deque[tuple[str, JobLine]] = deque(maxlen=MOST_AT_END)
        self._others = 0

    def restore(self, message: JobLines) -> None:
        """Count lines that stand there already."""
        self._room -= len(message.lines)

    def take(self, message: JobLines) -> JobLines | None:
        """Give what is to stand there now; None for nothing."""
        if self._room > 0:
            self._room -= len(message.lines)
            return message
        self._others += message.dropped + len(message.lines)
        self._last.extend((message.site, line) for line in message.lines)
        return None

    def rest(self, job: str) -> list[JobLines]:
        """Give what is to stand at the end."""
        left_out = self._others - len(self._last)
        rest: list[JobLines] = []
        for site, group in groupby(self._last, itemgetter(0)):
            rest.append(JobLines(job, site, tuple(line for _, line in group), 0 if rest else left_out))
        return rest
