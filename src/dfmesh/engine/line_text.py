"""How a line that an adapter printed or logged is shown to people: `[us weather.Bin #0.3] WARNING bins: is empty`."""

from __future__ import annotations

from dfmesh.netir import Frame

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
"""Stands between site, operation and frame where a space would end the name of the site."""


def whose_text(site: str, operation: str, frame: Frame) -> str:
    """Name a call, such as `us weather.Bin #0.3`."""
    number = f"#{'.'.join(map(str, frame))}" if frame else ""
    return " ".join(filter(None, (site, operation, number)))


def said_text(source: str, logger: str, text: str) -> str:
    """Give what was said; of a log record with its level and logger."""
    return f"{source} {logger}: {text}" if logger else text
