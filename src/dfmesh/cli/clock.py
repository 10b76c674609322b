"""When this command began, start of the interpreter included."""

from __future__ import annotations

import os
import time
from pathlib import Path

_LOADED = time.monotonic()


def seconds_since_start() -> float:
    """Give the seconds since the process was started, or, where the system does not say, since dfmesh was loaded."""
    try:
        # Everything behind the last parenthesis: the program's name may hold spaces and parentheses itself.
        fields = Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic() - _LOADED
