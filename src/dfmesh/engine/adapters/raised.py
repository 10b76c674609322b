"""What an exception in a site's own code looks like to the user: kind, message, place, cause, traceback."""

from __future__ import annotations

import os
import textwrap
import traceback
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import TracebackType

import msgspec

from dfmesh.config import FederationConfig
from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.errors import DfmeshError

MAX_MESSAGE = 10_000
"""Characters of an exception's message that travel; what is in the middle of a longer one is left out."""

MAX_TRACEBACK = 20_000
"""Characters of a traceback that travel; what is in the middle of a longer one is left out."""

_READ_ONLY = "what an adapter is given others may read, too; change a copy of it: array.copy()"
_MAX_CAUSES = 3
_MAX_CAUSE = 300
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Raised(msgspec.Struct, frozen=True):
    """An exception as text; nothing of it keeps the exception or its frames alive.

    Attributes:
        kind: Name of its class.
        message: What it says.
        traceback: Without dfmesh's own frames before the adapter's; empty for an error of dfmesh itself.
        raised_at: File and line, as `file:line`; empty for an error of dfmesh itself.
        caused_by: What it was raised from, such as `caused by KeyError: 'us' [stations.py:40]`; before that how often
            the operation was called, and what to do about it, where that is known; empty if nothing.
        shows_no_value: As `DfmeshError.shows_no_value`.
    """

    kind: str
    message: str
    traceback: str = ""
    raised_at: str = ""
    caused_by: str = ""
    shows_no_value: bool = False

    def after_calls(self, count: int) -> Raised:
        """Add how often the operation was called, if more than once; this is what the last call raised."""
        if count == 1:
            return self
        more = f"; {self.caused_by}" if self.caused_by else ""
        return msgspec.structs.replace(self, caused_by=f"it was called {count} times{more}")


class RemoteRaised(Exception):  # noqa: N818 - stands for an error, is none of its own
    """An adapter in another process has raised.

    Attributes:
        raised: What.
    """

    def __init__(self, raised: Raised) -> None:
        self.raised = raised
        super().__init__(f"{raised.kind}: {raised.message}")


class OwnCode:
    """Tells the code of a federation's owners, and where in it something happened, from the libraries it uses."""

    def __init__(self, config: FederationConfig, site: str) -> None:
        """Take note of what belongs to a site.

        Args:
            config: The federation; what lies below the directory of its file is own code.
            site: The site; the packages that its adapters are in are own code, wherever they are installed.
        """
        self._directory = os.path.realpath(config.directory)
        own = config.sites[site]
        interfaces = [own.interface, *(provider.interface for provider in own.providers.values())]
        self._packages = {spec.path.partition(".")[0] for interface in interfaces for spec in interface.values()}

    def place(self, trace: TracebackType | None) -> str:
        """Give the last line of own code in a traceback, as `file:line`; empty if there is none."""
        place = ""
        for frame, line in traceback.walk_tb(trace):
            file = frame.f_code.co_filename
            if _is_ours(frame.f_globals.get("__name__")):
                continue
            if self._has(file, frame.f_globals.get("__name__")):
                place = f"{self.near(file)}:{line}"
        return place

    def last(self, trace: TracebackType | None) -> str:
        """Give the last line of a traceback, whose code ever that is."""
        lines = list(traceback.walk_tb(trace))
        return f"{self.near(lines[-1][0].f_code.co_filename)}:{lines[-1][1]}" if lines else ""

    def near(self, file: str) -> str:
        """Write a file relative to the federation file's directory, if it lies below."""
        return _real(file).removeprefix(f"{self._directory}{os.sep}") if os.path.isabs(file) else file

    def _has(self, file: str, module: object) -> bool:
        if isinstance(module, str) and module.partition(".")[0] in self._packages:
            return True
        below = _real(file).startswith(f"{self._directory}{os.sep}")
        return below and not any(part in file for part in _INSTALLED)


def describe(error: BaseException, own: OwnCode) -> Raised:
    """Write down an exception.

    Args:
        error: The exception, with its traceback.
        own: What the place is to be in.
    """
    kind = _text(lambda: type(error).__name__, MAX_MESSAGE)
    message = _message(error)
    place = own.place(error.__traceback__)
    if isinstance(error, DfmeshError) and not place:
        # It says all, its place in the federation file and its cause included.
        return Raised(kind, message, shows_no_value=error.shows_no_value)
    frames = _adapter_frames(error)
    trace = _text(lambda: "".join(traceback.format_exception(type(error), error, frames)), MAX_TRACEBACK)
    place = place or own.last(error.__traceback__)
    origin = ", ".join(_causes(error, own))
    advice = _READ_ONLY if isinstance(error, ValueError) and "read-only" in message else ""
    return Raised(kind, message, trace, place, "; ".join(filter(None, (advice, origin))))


def describe_own(error: DfmeshError) -> Raised:
    """Write down an error of dfmesh itself, which says all without a place or a traceback."""
    return Raised(type(error).__name__, _message(error), shows_no_value=error.shows_no_value)


def _causes(error: BaseException, own: OwnCode) -> Iterator[str]:
    """Say shortly what an exception was raised from, and that from, and so on."""
    for _ in range(_MAX_CAUSES):
        relation, cause = _cause(error)
        if cause is None:
            return
        name = _text(lambda: type(cause).__name__, _MAX_CAUSE)  # noqa: B023 - called at once
        text = textwrap.shorten(f"{name}: {_message(cause)}".rstrip(": "), _MAX_CAUSE, placeholder=" ...")
        place = own.place(cause.__traceback__) or own.last(cause.__traceback__)
        yield f"{relation} {text}" + (f" [{place}]" if place else "")
        error = cause


def _cause(error: BaseException) -> tuple[str, BaseException | None]:
    if error.__cause__ is not None:
        return "caused by", error.__cause__
    if isinstance(error, BaseExceptionGroup):
        count = len(error.exceptions)
        return ("which is" if count == 1 else f"the first of {count} is"), error.exceptions[0]
    return "while handling", None if error.__suppress_context__ else error.__context__


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return _text(lambda: f"the adapter called sys.exit({error.code!r})", MAX_MESSAGE)
    return _text(lambda: str(error), MAX_MESSAGE)


def _text(make: Callable[[], str], limit: int) -> str:
    """Make a text that can travel, whatever the exception's own methods do; the middle of a long one is left out."""
    try:
        text = str(make())
    except BaseException:  # An adapter's exception may raise anything when it is asked for its text.
        text = "(it raised an error itself when it was asked for its text)"
    text = HIDDEN_SECRETS.hide(text)
    if len(text) > limit:
        text = f"{text[: limit // 2]}\n...\n{text[-limit // 2 :]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _adapter_frames(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and _is_ours(trace.tb_frame.f_globals.get("__name__")):
        trace = trace.tb_next
    return trace


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == "dfmesh"


@lru_cache(1024)
def _real(file: str) -> str:
    return os.path.realpath(file)
