"""Hearing what adapters print and log: `sys.stdout`, `sys.stderr` and the making of log records.

What is printed goes where it would have gone. If that happens within a call, the call is told as well. Text that does
not go through Python's own streams (child processes, C code, `os.write`) is not heard, nor what is printed outside of
any call.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO, cast

from dfmesh.engine.adapters.hidden_secrets import HIDDEN_SECRETS
from dfmesh.engine.adapters.present_call import running_tell

_NAMES = ("stdout", "stderr")
_LOGGING = logging.StreamHandler.emit.__code__.co_filename
_tracebacks = logging.Formatter()
_OUR_LOGGERS = "dfmesh."  # What dfmesh itself logs in the course of a call is for whoever runs the site.


class _Within(threading.local):
    """Whether this thread is within `HeardStream.write`: what the stream itself writes is heard once."""

    write = False


_within = _Within()


class HeardStream:
    """Stands in for `sys.stdout` or `sys.stderr`; all but writing is the stream's own."""

    def __init__(self, stream: TextIO, name: str) -> None:
        """Stand in for a stream.

        Args:
            stream: The stream.
            name: `stdout` or `stderr`.
        """
        self.heard_stream = stream
        self._name = name

    def write(self, text: str) -> int:
        """As the stream does; a call of an adapter that runs here is told."""
        tell = running_tell()
        if tell is None or _within.write:
            return self.heard_stream.write(text)
        _within.write = True
        try:
            self.heard_stream.write(HIDDEN_SECRETS.hide(text))
        finally:
            _within.write = False
        # What a handler of `logging` writes has been heard already, as a record.
        if sys._getframe(1).f_code.co_filename != _LOGGING:
            tell(self._name, "", text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """As the stream does."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.heard_stream, name)


class _HeardRecords:
    """Stands in for the factory of log records."""

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self.make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.make(*args, **kwargs)
        tell = running_tell()
        if tell is not None and record.name and not record.name.startswith(_OUR_LOGGERS):
            text = _text_of(record)
            if text is not None:
                _hide_in(record, text)
                tell(record.levelname, record.name, f"{text}\n")
        return record


def _text_of(record: logging.LogRecord) -> str | None:
    """Give the message and traceback of a record; None if they cannot be made, which its handler will tell."""
    try:
        text = record.getMessage()
        return f"{text}\n{_tracebacks.formatException(record.exc_info)}" if record.exc_info else text
    except Exception:
        return None


def _hide_in(record: logging.LogRecord, text: str) -> None:
    """Keep secrets out of what the handlers of a record will write."""
    if HIDDEN_SECRETS.hide(text) != text:
        record.msg, record.args = HIDDEN_SECRETS.hide(record.getMessage()), None
        if record.exc_info:
            record.exc_text = HIDDEN_SECRETS.hide(_tracebacks.formatException(record.exc_info))


_listeners = 0
_lock = threading.Lock()


def hear() -> None:
    """Begin to hear what the calls in this process print and log; to be ended by `hear_no_more`, as often as begun."""
    global _listeners
    with _lock:
        _listeners += 1
        _stand_in()


def hear_again() -> None:
    """See to it that `hear` still has its effect: somebody may have put other streams in the place of ours."""
    with _lock:
        if _listeners:
            _stand_in()


def _stand_in() -> None:
    for name in _NAMES:
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, HeardStream):
            setattr(sys, name, HeardStream(stream, name))
    make = logging.getLogRecordFactory()
    if not isinstance(make, _HeardRecords):
        logging.setLogRecordFactory(cast(Any, _HeardRecords(make)))


def hear_no_more() -> None:
    """Put back what `hear` has replaced, unless somebody else needs it, or has replaced it in turn."""
    global _listeners
    with _lock:
        _listeners -= 1
        if _listeners:
            return
        for name in _NAMES:
            stream = getattr(sys, name)
            if isinstance(stream, HeardStream):
                setattr(sys, name, stream.heard_stream)
        make = logging.getLogRecordFactory()
        if isinstance(make, _HeardRecords):
            logging.setLogRecordFactory(make.make)
