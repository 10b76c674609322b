"""Foreign text as people may be shown it: nothing in it steers a terminal or stands for something else."""

from __future__ import annotations

import re

_STEERS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, of which C1 begin sequences as ESC does; not tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction in which what follows is read
    "\u2028\u2029"  # end lines for some
    "\ufeff\U000e0000-\U000e007f"  # are not seen
    "\ud800-\udfff"  # cannot be written
    "]"
)


def shown(text: str, indent: str = "") -> str:
    r"""Make a text fit to be shown to people, whoever wrote it.

    Args:
        text: What a site, an adapter, a file or a name says.
        indent: What each further line begins with, so that none looks as if somebody else had said it.

    Returns:
        The text with control characters and marks of direction as escapes, such as `\x1b`.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = _STEERS.sub(_escape, text.replace("\r\n", "\n"))
    return lines.replace("\n", f"\n{indent}") if indent else lines


def shown_line(text: str) -> str:
    """As `shown`, with ends of lines as escapes, too: for names, cells of tables and the like."""
    return shown(text).replace("\n", "\\n")


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "backslashreplace").decode("ascii")


__all__ = ["shown", "shown_line"]
