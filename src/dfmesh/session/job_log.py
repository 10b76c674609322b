"""What the adapters of one job have printed and logged."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from dfmesh.engine.line_text import said_text, whose_text
from dfmesh.engine.message_parts import JobLine
from dfmesh.engine.messages import JobLines
from dfmesh.netir import Frame
from dfmesh.shown_text import shown_line

MOST_LINES = 10_000
"""Lines of a job that are kept, the last ones."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that an adapter printed or logged during a call.

    Attributes:
        time: When, in UTC.
        site: Where.
        operation: Name of the operation.
        node: Id of the statement.
        frame: (parameter set, loop index, ...) of the call.
        source: `stdout`, `stderr`, or the level of a log record, such as `WARNING`.
        logger: Name of the logger; empty if the line was printed.
        text: The line, without its end.
    """

    time: datetime
    site: str
    operation: str
    node: str
    frame: Frame
    source: str
    logger: str
    text: str

    def __str__(self) -> str:
        whose = whose_text(self.site, self.operation, self.frame)
        return shown_line(f"[{whose}] {said_text(self.source, self.logger, self.text)}")


class JobLog:
    """The last lines of a job, the oldest first; `print(job.log)` shows them. May be read while the job runs."""

    def __init__(self) -> None:
        self._lines: deque[tuple[str, JobLine]] = deque(maxlen=MOST_LINES)
        self._dropped = 0
        self._lock = threading.Lock()

    @property
    def dropped(self) -> int:
        """How many lines there were besides: more in a second than a site sends, or older ones."""
        return self._dropped

    def add(self, message: JobLines) -> None:
        """Take in lines of a site."""
        with self._lock:
            before = len(self._lines)
            self._lines.extend((message.site, line) for line in message.lines)
            self._dropped += message.dropped + before + len(message.lines) - len(self._lines)

    def __iter__(self) -> Iterator[LogLine]:
        """Give the lines that have come so far."""
        with self._lock:
            lines = list(self._lines)
        return (_shown(site, line) for site, line in lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        return f"<JobLog of {len(self)} lines, {self.dropped} dropped>"


def _shown(site: str, line: JobLine) -> LogLine:
    return LogLine(
        datetime.fromtimestamp(line.time, UTC),
        site,
        line.operation,
        line.node,
        line.frame,
        line.source,
        line.logger,
        line.text,
    )
