"""Checks of what users give to sessions and jobs: what is wrong is said at once, and all of it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable
from numbers import Real


def seconds(timeout: object, name: str = "timeout") -> float | None:
    """Give the seconds that a user wants to wait; None for ever.

    Args:
        timeout: What was given.
        name: What the argument is called.

    Raises:
        TypeError: it is no number.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or math.isnan(timeout):
        raise TypeError(f"{name}={timeout!r:.80} is no time; give seconds, or None to wait for ever")
    wanted = float(timeout)
    return None if wanted > threading.TIMEOUT_MAX else wanted


def refuse(*problems: str) -> None:
    """Refuse arguments.

    Args:
        problems: What is wrong with each; empty for those that are right.

    Raises:
        TypeError: something is wrong.
    """
    found = [problem for problem in problems if problem]
    if found:
        raise TypeError("; ".join(found))


def function_problem(function: object, name: str, takes: str, *, optional: bool = True) -> str:
    """Say what is wrong with something to be called; empty if it can be.

    Args:
        function: What was given.
        name: What the argument is called.
        takes: What it will be called with.
        optional: Whether None is as good.
    """
    if callable(function) or (function is None and optional):
        return ""
    return f"{name}={function!r:.80} cannot be called; give a function that takes {takes}"


def sites_problem(sites: object, name: str) -> str:
    """Say what is wrong with a list of sites; empty if nothing is, or it is None.

    Args:
        sites: What was given.
        name: What the argument is called.
    """
    if sites is None:
        return ""
    if isinstance(sites, str):
        return f"{name}={sites!r:.80} is one text; give a list of names, such as [{sites!r:.80}]"
    if not isinstance(sites, Iterable):
        return f"{name}={sites!r:.80} is no list of names of sites"
    if isinstance(sites, list | tuple | set | frozenset):
        wrong = [site for site in sites if not isinstance(site, str)]
        if wrong:
            return f"{name}: {wrong[0]!r:.80} is no name of a site"
    return ""
