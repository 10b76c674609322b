"""What an option may be, such as `retries=` and `window=`, and how one that may not is shown."""

from __future__ import annotations

from typing import Any

from dfmesh.api import LARGEST_NUMBER, number_fits


def is_int(value: Any) -> bool:
    """Tell whether an option is a whole number that a message can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and number_fits(value)


def at_most(value: Any) -> str:
    """Say how large an option may be, if it is a whole number that is too large; else nothing."""
    if isinstance(value, int) and not isinstance(value, bool) and value > LARGEST_NUMBER:
        return f", at most {LARGEST_NUMBER:,}"
    return ""


def is_number(value: Any) -> bool:
    """Tell whether an option is a number that a message can hold."""
    return isinstance(value, float) or is_int(value)


def shown(option: Any) -> str:
    """Show an option in a message, cut to a readable length."""
    # Python writes no whole number of more than 4300 digits.
    return "a huge number" if isinstance(option, int) and abs(option) > 10**80 else f"{option!r:.80}"
