"""From the bytes that a site process prints to lines."""

from __future__ import annotations

LONGEST_LINE = 8 * 1024
"""Bytes after which a line that does not end is given in pieces."""


class OutputLines:
    """Cuts a stream of bytes into lines of text; what is no UTF-8 is replaced."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Take bytes, and give the lines that end in them."""
        *lines, rest = (self._rest + data).split(b"\n")
        # A progress bar overwrites its line; until it ends only its last state is of interest.
        self._rest = rest[rest.rfind(b"\r", 0, -1) + 1 :]
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        return [piece for line in lines for piece in _pieces(line)]

    def end(self) -> list[str]:
        """Give what stands behind the last end of a line."""
        rest, self._rest = self._rest, b""
        return _pieces(rest) if rest else []


def _pieces(line: bytes) -> list[str]:
    line = line.rstrip(b"\r")
    shown = line[line.rfind(b"\r") + 1 :].decode("utf-8", "replace")
    return [shown[start : start + LONGEST_LINE] for start in range(0, max(1, len(shown)), LONGEST_LINE)]
