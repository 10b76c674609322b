"""What a process of ours prints and logs."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import NoReturn


def write_lines() -> None:
    """Write standard output and error line by line, whatever characters are in them."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]


def log_to_standard_error(level: str) -> None:
    """Show what is logged: from a level that is asked for, else from WARNING on, unless adapters set up logging.

    Args:
        level: Such as `INFO`; empty to leave it to the adapters.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_LogLine("%(levelname)s %(name)s: %(message)s"))
    if level:
        logging.getLogger().addHandler(handler)
        logging.getLogger().setLevel(level)
    else:
        handler.setLevel(logging.WARNING)
        logging.lastResort = handler  # unlike a handler at the root, it leaves `logging.basicConfig` its effect


class _LogLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.name == "root":  # logged without a logger of its own
            record.name = record.module
        return super().format(record)


def leave(code: int) -> NoReturn:
    """Exit without waiting for any thread, whatever adapters have put in the place of the standard streams."""
    try:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # nobody reads it any more, or it is no stream
                stream.flush()
    finally:
        os._exit(code)
