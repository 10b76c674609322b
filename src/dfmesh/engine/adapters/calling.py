"""What can be found out about an adapter by looking at it."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any


class AdapterKind(Enum):
    """How an adapter gives its result."""

    FUNCTION = "function"
    COROUTINE = "coroutine"
    GENERATOR = "generator"
    ASYNC_GENERATOR = "async generator"


_KIND_BY_RETURN = {
    "Iterator": AdapterKind.GENERATOR,
    "Generator": AdapterKind.GENERATOR,
    "AsyncIterator": AdapterKind.ASYNC_GENERATOR,
    "AsyncGenerator": AdapterKind.ASYNC_GENERATOR,
    "Awaitable": AdapterKind.COROUTINE,
    "Coroutine": AdapterKind.COROUTINE,
}
STREAM_TYPES = frozenset({"Iterator", "Generator", "AsyncIterator", "AsyncGenerator"})


def find_kind(call: Callable[..., Any], is_async: bool | None = None) -> tuple[AdapterKind, bool]:
    """Tell how a callable gives its result.

    Args:
        call: A function, method, partial, decorated function or callable object.
        is_async: What the federation file says; it decides only about decorated functions.

    Returns:
        The kind, and whether that is certain. It is not for a plain function around one of another kind: most
        decorators hand the result through, some do not.
    """
    certain = True
    for function in _layers(call):
        kind = _own_kind(function)
        if kind is not None:
            if not certain and is_async is False:
                return AdapterKind.FUNCTION, True
            return kind, certain
        certain = False
    return _kind_by_annotation(call), True


def _layers(call: Any) -> Iterator[Any]:
    """The function that is called first, then those it wraps."""
    seen: set[int] = set()
    while call is not None and id(call) not in seen:
        seen.add(id(call))
        while isinstance(call, functools.partial):
            call = call.func
        if inspect.ismethod(call):
            call = call.__func__
        elif not inspect.isroutine(call) and not inspect.isclass(call) and not hasattr(call, "__wrapped__"):
            call = getattr(type(call), "__call__", None)  # noqa: B004 - we want the function itself
        yield call
        call = getattr(call, "__wrapped__", None)


def _own_kind(function: Any) -> AdapterKind | None:
    if inspect.isasyncgenfunction(function):
        return AdapterKind.ASYNC_GENERATOR
    if inspect.iscoroutinefunction(function):
        return AdapterKind.COROUTINE
    if inspect.isgeneratorfunction(function):
        return AdapterKind.GENERATOR
    return None


def _kind_by_annotation(call: Callable[..., Any]) -> AdapterKind:
    """A plain function that says it returns an iterator makes a stream as well."""
    return _KIND_BY_RETURN.get(_outer_name(annotations_of(call).get("return")), AdapterKind.FUNCTION)


def awaiting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Make a coroutine function of one that may return an awaitable or a value."""

    async def awaited(**keywords: Any) -> Any:
        result = call(**keywords)
        return await result if inspect.isawaitable(result) else result

    return awaited


def annotations_of(call: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a callable; those that cannot be evaluated stay text."""
    function: Any = list(_layers(call))[-1]
    try:
        return typing.get_type_hints(function, include_extras=False)
    except Exception:  # annotations are any code; names that exist for type checkers only are common
        return dict(getattr(function, "__annotations__", {}))


def is_stream(annotation: Any) -> bool:
    """Whether an annotation asks for an iterator, sync or async, perhaps among other types."""
    if isinstance(annotation, str):
        return any(_outer_name(part.strip()) in STREAM_TYPES for part in annotation.split("|"))
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(is_stream(part) for part in typing.get_args(annotation))
    return _outer_name(annotation) in STREAM_TYPES


def _outer_name(annotation: Any) -> str:
    """`Iterator` for `collections.abc.Iterator[int]`, whether evaluated or text."""
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2].strip()
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and origin.__module__ == collections.abc.__name__:
        return origin.__name__
    return ""


def _parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return [inspect.Parameter("anything", inspect.Parameter.VAR_KEYWORD)]


class Signature:
    """The keywords that a callable takes.

    Attributes:
        names: Those it names, in order.
        needed: Those without default.
        takes_any: Whether it takes any others.
        positional: Parameters that cannot be given by name.
    """

    __slots__ = ("names", "needed", "positional", "takes_any")

    def __init__(self, call: Callable[..., Any]) -> None:
        """Look at a callable; one that cannot be looked at takes anything."""
        parameters = _parameters(call)
        named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.names: tuple[str, ...] = tuple(p.name for p in named)
        self.needed: frozenset[str] = frozenset(p.name for p in named if p.default is p.empty)
        self.positional: tuple[str, ...] = tuple(
            p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.default is p.empty
        )
        self.takes_any: bool = any(p.kind is p.VAR_KEYWORD for p in parameters)

    def takes(self, keyword: str) -> bool:
        """Whether it takes a keyword."""
        return self.takes_any or keyword in self.names

    def __str__(self) -> str:
        return f"({', '.join((*self.names, *(('**',) if self.takes_any else ())))})"
