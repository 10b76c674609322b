"""What goes wrong between a site and its adapters."""

from __future__ import annotations

import os
import traceback

from dfmesh.errors import DfmeshError, SourceLocation

_OWN_DIRECTORY = os.path.dirname(__file__)


class AdapterLoadError(DfmeshError):
    """An adapter, provider, site or vault of a federation file cannot be made.

    Attributes:
        path: Dotted path that the file names; empty if it names none.
        location: Where the file names it; None if it does not.
        reason: What went wrong.
    """

    def __init__(self, path: str, reason: str, location: SourceLocation | None = None) -> None:
        self.path = path
        self.reason = reason
        self.location = location
        where = f"{location}: " if location else ""
        what = f"cannot load {path}: " if path else ""
        super().__init__(f"{where}{what}{reason}")


class AdapterArgumentError(DfmeshError):
    """An adapter cannot be called with what it is given."""


class SecretError(DfmeshError, ValueError):
    """A secret that a site needs is not in its vault."""


def raised(error: BaseException) -> str:
    """Tell what an exception in a site's own code was, and in which line of that code.

    Args:
        error: The exception, with its traceback.
    """
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    if isinstance(error, SyntaxError):
        return f"{text} [{error.filename}:{error.lineno}]"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    return f"{text} [{frames[-1].filename}:{frames[-1].lineno}]" if frames else text


def _is_machinery(file: str) -> bool:
    """Whether a file is part of importing and calling the site's code rather than that code."""
    return file.startswith(("<frozen", f"{_OWN_DIRECTORY}{os.sep}")) or f"{os.sep}importlib{os.sep}" in file
