"""The errors that a user of dfmesh meets. Everything raised on purpose is a `DfmeshError`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dfmesh.shown_text import shown, shown_line
from dfmesh.user_lines import user_traceback

_FURTHER_LINES = " " * 6
"""What the further lines of a message of somebody's code begin with."""


class DfmeshError(Exception):
    """Base of all errors that dfmesh raises on purpose.

    Attributes:
        shows_no_value: Whether its text is free of what it was about, so that no rule of residency keeps it at a site.
    """

    shows_no_value = False

    def _render_traceback_(self) -> list[str]:
        """Tell IPython what to show of it: the user's lines, not those of dfmesh."""
        return user_traceback(self)


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A position in a file of the user: a Python script, a federation file, a JSON document.

    Attributes:
        file: Path as the user would write it, or a name such as `<string>`.
        line: Line, counted from 1.
        column: Column, counted from 1; None where only the line is known.
    """

    file: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        """Give `file:line` or `file:line:column`, which editors and terminals make clickable."""
        column = "" if self.column is None else f":{self.column}"
        return f"{self.file}:{self.line}{column}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake in something that a user wrote.

    Attributes:
        message: What is wrong, in one sentence.
        location: Where it stands; None if it stands nowhere (a missing file).
        path: Key path inside the document, such as `sites.us.interface`; empty if there is none.
        hint: What to do about it; empty if the message says it all.
        severity: Warnings do not stop a run.
    """

    message: str
    location: SourceLocation | None = None
    path: str = ""
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        """Give `file:line:column: key.path: message (hint)` with the parts that are known."""
        parts = [str(part) for part in (self.location, self.path) if part]
        hint = f" ({self.hint})" if self.hint else ""
        return ": ".join([*parts, self.message]) + hint


class _FaultyDocument(DfmeshError):  # noqa: N818 - a base, never raised itself
    """An error that carries all faults of one document."""

    def __init__(self, summary: str, faults: Iterable[Fault]) -> None:
        self.summary = summary
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__(
            "\n".join([shown(summary), *(f"  {shown(str(fault), _FURTHER_LINES)}" for fault in self.faults)])
        )


class ConfigError(_FaultyDocument):
    """A federation file cannot be used. `faults` lists every mistake in it."""


class PipelineError(_FaultyDocument):
    """A pipeline, or the parameters given to it, cannot be used. `faults` lists every mistake."""


class ValueEncodingError(DfmeshError):
    """A value is of a kind that may not cross a process boundary."""


class ValueDecodingError(DfmeshError):
    """Bytes that came from elsewhere are not a value that dfmesh knows."""


class UnknownClassError(ValueDecodingError):
    """An instance of a class arrived that is not registered where it arrived.

    Attributes:
        name: What the class is called between sites.
        advice: What to do.
    """

    shows_no_value = True

    def __init__(self, name: str, advice: str, where: str = "in this process") -> None:
        self.name = name
        self.advice = advice
        super().__init__(f"an instance of {name!r} arrived, and no such class is registered {where}; {advice}")

    def at(self, where: str) -> UnknownClassError:
        """Give the same, saying where it is."""
        return UnknownClassError(self.name, self.advice, where)


class SessionError(DfmeshError):
    """A session cannot do what was asked: not connected, closed, its sites did not start."""


class SessionClosedError(SessionError):
    """The session was closed before or while something was asked of it."""


class OperationFailure(DfmeshError):  # noqa: N818 - one of the `errors` of a JobError
    """One operation of a job failed. It is a value: it travels, and is listed in `JobError.errors`.

    Attributes:
        site: Site at which it happened.
        operation: Name of the operation, such as `weather.Bin`; a construct's name for other statements.
        node: Id of the statement in the pipeline.
        frame: Frame in which it happened, `(parameter set, loop index, ...)`; empty if before any frame.
        location: The user's file and line, as `file:line`; empty if unknown (a pipeline read from JSON).
        kind: Name of the exception's class, such as `ValueError`, or a reason such as `SiteLost`.
        message: What the exception said.
        traceback: Traceback at the site as text; empty where there is none.
        raised_at: Line of the adapter's code that raised, as `file:line`, the file relative to the federation file's
            directory if it lies below; empty where no adapter raised.
        caused_by: What the exception was raised from, such as `caused by KeyError: 'us' [stations.py:40]`; before that
            how often the operation was called, if more than once, and what to do, where that is known; else empty.
    """

    def __init__(
        self,
        *,
        site: str,
        operation: str,
        node: str,
        frame: tuple[int, ...],
        location: str,
        kind: str,
        message: str,
        traceback: str = "",
        raised_at: str = "",
        caused_by: str = "",
    ) -> None:
        self.site = site
        self.operation = operation
        self.node = node
        self.frame = frame
        self.location = location
        self.kind = kind
        self.message = message
        self.traceback = traceback
        self.raised_at = raised_at
        self.caused_by = caused_by
        where = f"{location}: " if location else ""
        at = f" at site {site!r}" if site else ""
        in_frame = f", frame {frame}" if frame else ""
        what = shown_line(f"{where}{operation} ({node}){at}{in_frame}")
        super().__init__(f"{what}: {shown(self.cause_and_place, _FURTHER_LINES)}")

    @property
    def cause(self) -> str:
        """The exception at the site as `Kind: message`."""
        return f"{self.kind}: {self.message}"

    @property
    def cause_and_place(self) -> str:
        """The exception, its place in the adapter and its origin: `Kind: message [file:line] (caused by ...)`."""
        place = f" [{self.raised_at}]" if self.raised_at else ""
        origin = f" ({self.caused_by})" if self.caused_by else ""
        return f"{self.cause}{place}{origin}"


@dataclass(frozen=True, slots=True)
class IterationError:
    """Stands in the list that a loop with `on_error="collect"` gathers, where an iteration failed.

    Attributes:
        site: Site at which it happened.
        operation: Name of the operation.
        node: Id of the statement.
        frame: Frame in which it happened.
        location: The user's `file:line`.
        kind: Name of the exception's class.
        message: What the exception said.
        raised_at: Line of the adapter's code that raised, as `file:line`; empty where no adapter raised.
    """

    site: str
    operation: str
    node: str
    frame: tuple[int, ...]
    location: str
    kind: str
    message: str
    raised_at: str = ""


class JobError(DfmeshError):
    """A job failed. `errors` lists the origins, not their consequences.

    Attributes:
        job_id: Id of the job.
        errors: What failed, in frame order.
    """

    def __init__(self, job_id: str, errors: Iterable[OperationFailure]) -> None:
        self.job_id = job_id
        self.errors: tuple[OperationFailure, ...] = tuple(errors)
        count = len(self.errors)
        shown = [f"  {error}" for error in self.errors[:10]]
        if count > 10:
            shown.append(f"  ... and {count - 10} more (see .errors)")
        traced = next((index for index, error in enumerate(self.errors) if error.traceback), None)
        if traced is not None:
            shown.append(f"  full traceback: errors[{traced}].traceback of this error")
        super().__init__("\n".join([f"job {job_id} failed: {count} error{'s' * (count != 1)}", *shown]))


class JobCancelledError(DfmeshError):
    """The result of a cancelled job was asked for."""
