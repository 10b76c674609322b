"""What the user sees when something goes wrong: what, where, what to do; never a traceback of dfmesh."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

from dfmesh.errors import (
    ConfigError,
    DfmeshError,
    Fault,
    JobCancelledError,
    JobError,
    OperationFailure,
    PipelineError,
    SourceLocation,
)
from dfmesh.shown_text import shown, shown_line
from dfmesh.user_lines import is_own

EXIT_FAULTS = 1
EXIT_USAGE = 2
EXIT_JOB_FAILED = 3
EXIT_SESSION = 4
EXIT_INTERRUPTED = 130


class CommandError(DfmeshError):
    """What was asked on the command line cannot be done; the message says why and what to do."""


class UsageError(CommandError):
    """An argument of the command cannot be read, or names something that is not there."""


@contextmanager
def reported(*, as_json: bool = False) -> Iterator[None]:
    """Turn errors into messages and exit codes.

    Args:
        as_json: Whether standard output is for a machine, which gets errors as JSON there.

    Raises:
        SystemExit: with the exit code, if anything went wrong.
    """
    try:
        with _own_warnings_shown():
            yield
    except KeyboardInterrupt:
        _leave("interrupted", EXIT_INTERRUPTED, {"event": "end", "status": "interrupted"}, as_json=as_json)
    except BrokenPipeError:
        # Whoever read the output has gone; Python must not try again to flush it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_INTERRUPTED) from None
    except DfmeshError as error:
        _leave("\n".join(error_lines(error)), exit_code(error), error_event(error), as_json=as_json)


@contextmanager
def _own_warnings_shown() -> Iterator[None]:
    """Show warnings of dfmesh by what they say, without the line of dfmesh that gave them."""
    show_others = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if is_own(filename):
            print(f"warning: {shown(str(message))}", file=file or sys.stderr)
        else:
            show_others(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _leave(text: str, code: int, event: dict[str, Any], *, as_json: bool) -> NoReturn:
    if as_json:
        print(json.dumps(event), flush=True)
    else:
        print_error(text)
    raise SystemExit(code)


def print_error(text: str) -> None:
    """Print text on standard error, the first line in red on a terminal."""
    head, separator, rest = shown(text).partition("\n")
    if sys.stderr.isatty() and "NO_COLOR" not in os.environ:
        head = f"\033[1;31m{head}\033[0m"
    print(f"{head}{separator}{rest}", file=sys.stderr)


def exit_code(error: DfmeshError) -> int:
    """Give the exit code for an error."""
    if isinstance(error, JobCancelledError):
        return EXIT_INTERRUPTED
    if isinstance(error, JobError):
        return EXIT_JOB_FAILED
    if isinstance(error, UsageError):
        return EXIT_USAGE
    if isinstance(error, ConfigError | PipelineError | CommandError):
        return EXIT_FAULTS
    return EXIT_SESSION


def error_lines(error: DfmeshError) -> list[str]:
    """Write an error for people: one line per fault or failure, each beginning with its place."""
    if isinstance(error, ConfigError | PipelineError):
        return [error.summary, *(line for fault in error.faults for line in fault_lines(fault))]
    if isinstance(error, JobError):
        count = len(error.errors)
        head = f"the job failed: {count} error{'s' * (count != 1)}"
        shown = [line for failure in error.errors[:20] for line in failure_lines(failure)]
        more = [f"  ... and {count - 20} more (all of them are in index.json)"] if count > 20 else []
        return [head, *shown, *more]
    if isinstance(error, JobCancelledError):
        return ["interrupted; the job was cancelled, what had come is kept"]
    return str(error).splitlines() or [type(error).__name__]


def fault_lines(fault: Fault) -> list[str]:
    """Write a fault: `file:line:column: path: message`, and what to do about it on a line of its own."""
    parts = [str(part) for part in (fault.location and near(fault.location), fault.path) if part]
    hint = [f"    {shown(near_text(fault.hint), ' ' * 6)}"] if fault.hint else []
    return [f"  {shown(': '.join([*parts, near_text(fault.message)]), ' ' * 6)}", *hint]


def failure_lines(failure: OperationFailure) -> list[str]:
    """Write a failed operation: the user's line, what and where, and the cause."""
    where = f"{near_text(failure.location)}: " if failure.location else ""
    frame = f", frame {', '.join(map(str, failure.frame))}" if failure.frame else ""
    at = f" at site {failure.site}" if failure.site else ""
    what = shown_line(f"{where}{failure.operation} ({failure.node}){at}{frame}")
    return [f"  {what}", f"    {shown(failure.cause_and_place, ' ' * 6)}"]


def near(location: SourceLocation) -> SourceLocation:
    """Give a place with its file relative to the current directory, if it lies below."""
    return SourceLocation(near_text(location.file), location.line, location.column)


def near_text(text: str) -> str:
    """Make a path, or each path in a text, relative to the current directory, if it lies below."""
    here = re.escape(f"{Path.cwd()}{os.sep}")
    return re.sub(rf"(^|[\s('\"]){here}", r"\1", text)


def error_event(error: DfmeshError) -> dict[str, Any]:
    """Give an error as data for machines."""
    event: dict[str, Any] = {"event": "error", "kind": type(error).__name__, "message": str(error)}
    if isinstance(error, ConfigError | PipelineError):
        event["message"] = error.summary
        event["faults"] = [fault_data(fault) for fault in error.faults]
    if isinstance(error, JobError):
        event["errors"] = [failure_data(failure) for failure in error.errors]
    return event


def fault_data(fault: Fault) -> dict[str, Any]:
    """Give a fault as data."""
    place = fault.location
    return {
        "message": fault.message,
        "file": place and place.file,
        "line": place and place.line,
        "column": place and place.column,
        "path": fault.path,
        "hint": fault.hint,
        "severity": fault.severity,
    }


def failure_data(failure: OperationFailure) -> dict[str, Any]:
    """Give a failed operation as data."""
    names = ("site", "operation", "node", "frame", "location", "kind", "message", "raised_at", "caused_by", "traceback")
    return {name: getattr(failure, name) for name in names}
