"""What a name that is not known may stand for."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

_MOST_LIKENED = 2000
"""Names among which a misspelled one is looked for, and characters that it may have: both take time."""

_MOST_LISTED = 12


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """Suggest what a misspelled name may stand for, and list what there is.

    Args:
        name: The name that is not known.
        known: The names that are.
    """
    meant = likeliest(name, known)
    if meant is not None:
        return f"did you mean {meant!r}?"
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    return f"there is {', '.join(sorted(known)[:_MOST_LISTED])}{more}" if known else "there is none"


def likeliest(name: str, known: Sequence[str]) -> str | None:
    """Give the name that a misspelled one probably stands for; None if there is none like it.

    Args:
        name: The name that is not known.
        known: The names that are.
    """
    close = get_close_matches(name, known, n=1) if len(name) <= _MOST_LIKENED >= len(known) else []
    return close[0] if close else None
