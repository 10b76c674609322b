"""Quantities as people read them: bytes, seconds, money, numbers of things."""

from __future__ import annotations


def count_text(number: int, noun: str) -> str:
    """Write a number of things: `1 value`, `2 values`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def bytes_text(size: float) -> str:
    """Write a number of bytes for people, in powers of ten."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(size) >= factor * 0.9995:
            return f"{size / factor:.3g} {unit}"
    return f"{size:.0f} B"


def seconds_text(seconds: float) -> str:
    """Write a time for people: `0 s`, `2 ms`, `1.25 s`, `5 min 10 s`."""
    if seconds == 0:
        return "0 s"
    if abs(seconds) < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    if abs(seconds) < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(abs(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if seconds < 0 else ""
    return f"{sign}{hours} h {minutes} min" if hours else f"{sign}{minutes} min {rest} s"


def money_text(amount: float) -> str:
    """Write an amount of money, whatever the currency: `12.5 to pay`."""
    return f"{amount:.4g} to pay"


__all__ = ["bytes_text", "count_text", "money_text", "seconds_text"]
