"""What is said when something cannot take an `IterationError`: which iteration failed, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from dfmesh.engine.adapters import Raised
from dfmesh.engine.message_parts import Failure
from dfmesh.errors import IterationError

_MOST_ITEMS: Final = 100_000
"""Items of one list or dictionary that are looked at."""

_DEEPEST: Final = 3
"""Lists and dictionaries in one another that are looked into."""

_NAME: Final = IterationError.__name__


def with_failed_iteration(raised: Raised, given: Mapping[str, Any]) -> Raised:
    """Name the first failed iteration in what a call was given, in what it raised.

    If the message speaks of an `IterationError`, that is what it cannot take, and the message says what it is.
    Otherwise it may be the reason, and is added to the origin.

    Args:
        raised: What the call raised.
        given: Its arguments.
    """
    if raised.shows_no_value:
        return raised
    what = failed_iteration_in(given)
    if not what:
        return raised
    if _NAME in raised.message:
        return msgspec.structs.replace(raised, message=f"{what} ({raised.message})")
    return msgspec.structs.replace(raised, caused_by="; ".join(filter(None, (what, raised.caused_by))))


def explained(failure: Failure, given: Sequence[Any]) -> Failure:
    """Name the first failed iteration in what an expression was evaluated on, if its error speaks of one.

    Args:
        failure: The error.
        given: What it was evaluated on.
    """
    if _NAME not in failure.message:
        return failure
    # A `Reader` raises if it is asked for what has failed.
    items = list.__iter__(given) if isinstance(given, list) else iter(given)
    what = next(filter(None, (failed_iteration_in({"the value": item}) for item in items)), "")
    return msgspec.structs.replace(failure, message=f"{what} ({failure.message})") if what else failure


def failed_iteration_in(given: Mapping[str, Any]) -> str:
    """Say which of some values is, or has in it, a failed iteration, and why that failed; empty if none does."""
    path, found = next((pair for name, value in given.items() for pair in _found(name, value)), ("", None))
    if found is None:
        return ""
    # The first entry is the parameter set.
    number = ".".join(map(str, found.frame[1:]))
    which = f"iteration {number}" if number else "an iteration"
    where = f"{found.operation} ({found.location})" if found.location else found.operation
    place = f" [{found.raised_at}]" if found.raised_at else ""
    return f"{path} is the failure of {which} of {where}: {found.kind}: {found.message}{place}"


def _found(path: str, value: Any, depth: int = 0) -> Iterator[tuple[str, IterationError]]:
    if type(value) is IterationError:
        yield path, value
    elif depth < _DEEPEST and isinstance(value, list | tuple):
        for index, item in enumerate(islice(value, _MOST_ITEMS)):
            yield from _found(f"{path}[{index}]", item, depth + 1)
    elif depth < _DEEPEST and isinstance(value, dict):
        for key, item in islice(value.items(), _MOST_ITEMS):
            yield from _found(f"{path}[{key!r}]", item, depth + 1)


__all__ = ["explained", "failed_iteration_in", "with_failed_iteration"]
