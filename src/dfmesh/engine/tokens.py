"""What lies on a place: a value, or one of the two ways of not having one."""

from __future__ import annotations

from typing import Any, Final

from dfmesh.engine.message_parts import Failure


class Failed:
    """The token of something that failed.

    Attributes:
        failure: The origin.
    """

    __slots__ = ("failure",)

    def __init__(self, failure: Failure) -> None:
        self.failure = failure

    def __repr__(self) -> str:
        return f"Failed({self.failure.operation}: {self.failure.message})"


class NotSelected(Failed):
    """The token of a value that a selector did not fit: an error of each statement that reads it, not told of yet."""

    __slots__ = ()


class _Skipped:
    """The token of something that a condition left out."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SKIPPED"


class _Missing:
    """Stands in a slot until the token comes, since None is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


SKIPPED: Final = _Skipped()
MISSING: Final = _Missing()

Token = Any
"""A value, a `Failed` (or `NotSelected`), or `SKIPPED`."""

ABNORMAL: Final = (Failed, _Skipped)


class StreamInput:
    """Stands among the arguments of a call for a stream that it is fed with.

    Attributes:
        index: Input of the transition; names the stream among those of the call.
        parameter: Parameter of the operation that takes it.
    """

    __slots__ = ("index", "parameter")

    def __init__(self, index: int, parameter: str) -> None:
        self.index = index
        self.parameter = parameter
