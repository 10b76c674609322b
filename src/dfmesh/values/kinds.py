"""The table of kinds: what each type that is not plain is reduced to, and how it is rebuilt.

A kind reduces a value to a *payload*, a simpler value that may hold further values, and rebuilds it from one.
Binary and JSON form share the table. Payloads that arrive come from elsewhere: `rebuild` may raise anything, and the
decoder turns that into `ValueDecodingError`; what it must not do is import, run or allocate on behalf of the payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

# Codes of the kinds that the binary codec handles itself. All codes are part of the format: never reuse one.
TUPLE, PAIRS, SET, FROZENSET, BIG_INT, ODD_TEXT, BUFFER, TUPLES = 1, 2, 3, 4, 5, 6, 7, 127


class Unsendable(Exception):  # noqa: N818 - an internal signal that becomes ValueEncodingError with a path
    """A part of a value may not be sent.

    Attributes:
        reason: What is wrong with the part.
        steps: How to get to the part, innermost first; collected while the encoder unwinds.
        owners: Identities of the containers on that way, innermost first.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []
        self.owners: list[int] = []

    def blame(self, kind: Kind, value: Any) -> None:
        """Rewrite the steps into the payload of a value as steps into the value."""
        shown = kind.shown(self.steps[::-1])
        self.owners = self.owners[: len(shown)]
        self.steps = shown[::-1]
        if self.owners:
            self.owners[-1] = id(value)


class Blob:
    """A run of bytes inside a payload that may travel out of band.

    Attributes:
        data: `bytes`, or a one-dimensional contiguous view of bytes.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data


def flat_view(data: Any) -> memoryview:
    """View any contiguous buffer as a run of bytes."""
    view = memoryview(data)
    if view.format == "B" and view.ndim == 1:
        return view
    return view.cast("B") if view.nbytes else memoryview(b"")


def as_they_are(steps: list[str]) -> list[str]:
    """For payloads that look like the value."""
    return steps


def drop_first(steps: list[str]) -> list[str]:
    """For payloads `[something, contents]`: leave out the step into the list."""
    return steps[1:]


class Kind(msgspec.Struct, frozen=True):
    """How values of one or more types travel.

    Attributes:
        code: MessagePack extension code, 1 to 127.
        tag: Name in the JSON form.
        reduce: Makes the payload of a value. May raise `Unsendable`.
        rebuild: Makes the value of a payload. May raise anything.
        shown: Rewrites the steps below a payload (outermost first) as the user would write them.
    """

    code: int
    tag: str
    reduce: Callable[[Any], Any]
    rebuild: Callable[[Any], Any]
    shown: Callable[[list[str]], list[str]] = as_they_are

    def take_apart(self, value: Any) -> Any:
        """Make the payload of a value.

        Raises:
            Unsendable: it cannot be made.
        """
        try:
            return self.reduce(value)
        except (Unsendable, RecursionError):
            raise
        except Exception as error:
            # Properties, lazy data and functions of the user may fail in any way; the error has to say where.
            what = f"{type(value)} cannot be taken apart"
            raise Unsendable(f"{what}: {type(error).__name__}: {error}") from error


BY_TYPE: dict[type, Kind] = {}
"""Exact type to its kind. Filled here, by libraries when their first value is met, and by registration."""

BY_CODE: dict[int, Kind] = {}
BY_TAG: dict[str, Kind] = {}


def declare(kind: Kind, *types: type) -> Kind:
    """Add a kind to the table, for exact types that exist already."""
    if BY_CODE.setdefault(kind.code, kind) is not kind or BY_TAG.setdefault(kind.tag, kind) is not kind:
        raise ValueError(f"kind {kind.tag!r} (code {kind.code}) is declared twice")
    BY_TYPE.update(dict.fromkeys(types, kind))
    return kind
