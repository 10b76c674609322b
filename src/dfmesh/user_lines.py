"""Which lines are a user's rather than dfmesh's, and what they are called."""

from __future__ import annotations

import os
import sys
from itertools import takewhile

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_EXAMPLES = os.path.join(_PACKAGE, "examples", "")  # In a wheel; they are written as users write.
_SHELL = f"{os.sep}IPython{os.sep}"


def is_own(file: str) -> bool:
    """Tell whether a module of dfmesh stands in a file."""
    return file.startswith(_PACKAGE) and not file.startswith(_EXAMPLES)


def shown_file(file: str) -> str:
    """Name a cell of a notebook as its author sees it, `Cell In[3]`; a kernel compiles cells as files of its own."""
    if "ipykernel_" not in file and not file.startswith("<ipython-input"):
        return file
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    name = getattr(getattr(get_shell(), "compile", None), "format_code_name", lambda _: None)(file)
    return " ".join(name) if name else file


def user_traceback(error: BaseException) -> list[str]:
    """Give the traceback of an error as far as it is the user's: down to the line that called dfmesh.

    Args:
        error: What dfmesh raised.

    Returns:
        A title, the user's lines, the outermost first, and what the error says.
    """
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _SHELL not in frame.filename]
    users = takewhile(lambda frame: not is_own(frame.filename), frames)
    kind = type(error).__name__
    return [
        f"{kind:<42}Traceback (most recent call last)",
        *(f"{shown_file(frame.filename)}:{frame.lineno}: {frame.line}" for frame in users),
        "",
        f"{kind}: {error}",
    ]


__all__ = ["is_own", "shown_file", "user_traceback"]
