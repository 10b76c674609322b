"""How adapters declare advisors, and how those of an adapter are found."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_MARKS = "__dfmesh_advises__"
_ATTACHED = "__dfmesh_advisors__"


@dataclass(frozen=True)
class _Mark:
    field: str
    order: int


def field_advisor(name: str, order: int = -1) -> Callable[[F], F]:
    """Declare a method of an adapter class to be the advisor of a field.

    The method takes `(value, context)`, or less, and may be async. `value` is what the user gave, `Advise()` if the
    user asks; `context.get(field)` gives fields that were asked about before, and those that the user gave. It returns
    one of the kinds of advice. A value given by the user is checked against what it returns.

    Args:
        name: The field: a keyword of the adapter, or a parameter of the operation.
        order: Fields are asked about in the order 0, 1, ... and then ..., -2, -1; equals in the order written.
    """

    def mark(function: F) -> F:
        setattr(function, _MARKS, (*getattr(function, _MARKS, ()), _Mark(name, order)))
        return function

    return mark


def advisor_of(adapter: Callable[..., Any], name: str, order: int = -1) -> Callable[[F], F]:
    """Declare a function to be the advisor of a field of an adapter that is a plain function (or a class).

    Args:
        adapter: The adapter.
        name: As in `field_advisor`.
        order: As in `field_advisor`.
    """

    def attach(function: F) -> F:
        setattr(adapter, _ATTACHED, (*getattr(adapter, _ATTACHED, ()), (_Mark(name, order), function)))
        return function

    return attach


@dataclass(frozen=True)
class Advisor:
    """An advisor of an adapter, ready to be asked.

    Attributes:
        field: The field as the adapter calls it.
        order: Its place among the advisors.
        call: The bound method, or the function.
    """

    field: str
    order: int
    call: Callable[..., Any]

    def ask(self, value: Any, context: Any, seconds: float) -> Any:
        """Ask it, on the calling thread.

        Args:
            value: What the user gave for the field, or `Advise()`.
            context: What is known of other fields.
            seconds: Time that a coroutine may take; nobody can interrupt a function.
        """
        answer = self.call(*(value, context)[: _positions(self.call)])
        return asyncio.run(_limited(answer, seconds)) if inspect.isawaitable(answer) else answer


def find_advisors(target: Any) -> list[Advisor]:
    """Find the advisors of an adapter, in the order in which they are asked.

    Args:
        target: An instance of an adapter class, or a function.
    """
    found = [*_methods(target), *_attached(target)]
    return sorted(found, key=lambda advisor: (advisor.order < 0, advisor.order))


def _methods(target: Any) -> Iterator[Advisor]:
    if inspect.isroutine(target):
        return
    names = {name: None for cls in reversed(type(target).__mro__) for name in vars(cls)}
    for name in names:
        marks = getattr(inspect.getattr_static(target, name, None), _MARKS, ())
        for mark in marks if isinstance(marks, tuple) else ():
            yield Advisor(mark.field, mark.order, getattr(target, name))


def _attached(target: Any) -> Iterator[Advisor]:
    for mark, function in getattr(target, _ATTACHED, ()):
        yield Advisor(mark.field, mark.order, function)


def _positions(call: Callable[..., Any]) -> int:
    """How many of value and context a callable takes."""
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return 2
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return 2
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


async def _limited(answer: Any, seconds: float) -> Any:
    async with asyncio.timeout(seconds):
        return await answer
