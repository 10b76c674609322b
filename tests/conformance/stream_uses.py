"""Who takes streams, and how, as far as a pipeline says it before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .descriptions import Branch, Cached, Call, Loop, Ref, Yield

STREAMS = frozenset({"calc.Stream", "calc.Breaking", "calc.Running"})
"""Operations that are generators."""


@dataclass
class StreamUses:
    """Uses of the streams of a pipeline without sub-pipelines.

    Attributes:
        used: Ids of streams that something refers to.
        needed: Ids of those that run to their end in any case: somebody takes the list, or is after them.
    """

    used: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)


def stream_uses(body: tuple[Any, ...]) -> StreamUses:
    """Find out who takes the streams of a pipeline."""
    uses = _Uses()
    uses.block(body, ())
    uses.needed |= {name for waited in uses.after for name in uses.inside.get(waited, {waited})}
    return StreamUses(uses.used, uses.needed)


class _Uses:
    def __init__(self) -> None:
        self.scopes: dict[str, tuple[str, ...]] = {}
        self.inside: dict[str, set[str]] = {}
        self.after: set[str] = set()
        self.used: set[str] = set()
        self.needed: set[str] = set()

    def block(self, body: tuple[Any, ...], scope: tuple[str, ...]) -> set[str]:
        """Note all uses in a block, and give the streams that are made in it."""
        made: set[str] = set()
        for statement in body:
            self.after.update(getattr(statement, "after", ()))
            made |= self._statement(statement, scope)
        return made

    def _statement(self, statement: Any, scope: tuple[str, ...]) -> set[str]:
        match statement:
            case Call(id=name, operation=operation, arguments=arguments):
                self._arguments([value for _, value in arguments], scope)
                if operation in STREAMS:
                    self.scopes[name] = scope
                    return {name}
            case Yield(value=value):
                self._arguments([value], scope)
            case Loop(id=name):
                self._arguments([statement.sequence], scope)
                self.inside[name] = self.block(statement.body, (*scope, name))
                self._listed(tuple(gather.value for gather in statement.gathers))
                return self.inside[name]
            case Branch():
                self._listed(statement.condition)
                made = self.block((*statement.then, *(statement.otherwise or ())), scope)
                if statement.id is not None:
                    self.inside[statement.id] = made
                return made
            case Cached(key=key, value=value):
                self._listed(key)
                self.block(statement.body, scope)
                self._listed(value)
            case _:
                self._listed(statement)
        return set()

    def _arguments(self, values: list[Any], scope: tuple[str, ...]) -> None:
        """Note what takes a stream item by item, if that is an argument by itself and made in the same scope."""
        names = [name for value in values for name in _references(value)]
        for value in values:
            live = isinstance(value, Ref) and not value.path and names.count(value.id) == 1
            if live and self.scopes.get(value.id) == scope:
                self.used.add(value.id)
            else:
                self._listed(value)

    def _listed(self, thing: Any) -> None:
        names = self.scopes.keys() & set(_references(thing))
        self.used |= names
        self.needed |= names


def _references(thing: Any) -> Iterator[str]:
    if isinstance(thing, Ref):
        yield thing.id
    elif isinstance(thing, tuple):
        for item in thing:
            yield from _references(item)
    elif hasattr(thing, "__dataclass_fields__"):
        for name in thing.__dataclass_fields__:
            yield from _references(getattr(thing, name))
