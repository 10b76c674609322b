"""Texts and numbers outside of values, as messages can hold them."""

from __future__ import annotations

LARGEST_NUMBER = 2**63 - 1
"""The largest whole number that messages can hold outside of values."""


def is_unicode(text: str) -> bool:
    """Tell whether a text can be sent: Python's may hold lone surrogates, such as names of undecodable files do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def number_fits(number: int) -> bool:
    """Tell whether a whole number has at most 64 bits, as messages can hold outside of values."""
    return -LARGEST_NUMBER - 1 <= number <= LARGEST_NUMBER
