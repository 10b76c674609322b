"""Writes described pipelines in the language of dfmesh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dfmesh

from .descriptions import (
    Branch,
    Built,
    Cached,
    Call,
    Chosen,
    Compare,
    Const,
    Description,
    DictE,
    Gather,
    Index,
    Item,
    ListE,
    Logic,
    Loop,
    Param,
    Ref,
    Sub,
    TupleE,
    Yield,
)
from .interpreter import COMPARE


def build(description: Description, ops: Any, salt: str = "") -> Any:
    """Make the dfmesh pipeline of a description.

    Args:
        description: Of what.
        ops: Operations of the federation.
        salt: Goes into the keys of caches, so that what another run has stored is not found.
    """
    # Pipelines are not written inside others, so those that are called in this one are made first.
    subs = {
        id(sub.pipeline): build(Description(sub.pipeline.body, dict(sub.pipeline.defaults)), ops, salt)
        for sub in _subs(description.body)
    }
    with dfmesh.Pipeline() as pipeline:
        _Builder(ops, description.defaults, salt, subs).block(description.body)
    return pipeline


def _subs(body: tuple[Any, ...]) -> Iterator[Sub]:
    for statement in body:
        if isinstance(statement, Sub):
            yield statement
        elif isinstance(statement, Loop | Cached):
            yield from _subs(statement.body)
        elif isinstance(statement, Branch):
            yield from _subs((*statement.then, *(statement.otherwise or ())))


def parameter_sets(description: Description, pipeline: Any) -> list[dict[str, Any]]:
    """Give the parameter sets of a pipeline made from a description.

    A parameter of which only such parts are used as a sub-pipeline leaves out is none: dfmesh would refuse it.
    """
    known = pipeline.parameters()
    return [{name: value for name, value in given.items() if name in known} for given in description.parameter_sets]


class _Builder:
    def __init__(self, ops: Any, defaults: dict[str, Any], salt: str, subs: dict[int, Any]) -> None:
        self.ops = ops
        self.defaults = defaults
        self.salt = salt
        self.values: dict[str, Any] = {}
        self.subs = subs

    def block(self, body: tuple[Any, ...]) -> None:
        for statement in body:
            match statement:
                case Call():
                    self._call(statement)
                case Yield():
                    dfmesh.Yield(self.value(statement.value), place=statement.place, **self._after(statement))
                case Loop():
                    self._loop(statement)
                case Branch():
                    name = {} if statement.id is None else {"node_id": statement.id}
                    with dfmesh.If(self.value(statement.condition), **name, **self._after(statement)) as branch:
                        self.block(statement.then)
                    if statement.id is not None:
                        self.values[statement.id] = branch
                    if statement.otherwise is not None:
                        with dfmesh.Else():
                            self.block(statement.otherwise)
                case Chosen():
                    given = (statement.condition, statement.then, statement.otherwise)
                    self.values[statement.id] = dfmesh.Choose(*map(self.value, given), node_id=statement.id)
                case Cached():
                    self._cached(statement)
                case Sub():
                    self._sub(statement)

    def _operation(self, name: str) -> Any:
        group, _, own = name.partition(".")
        return getattr(getattr(self.ops, group), own)

    def _after(self, statement: Any) -> dict[str, Any]:
        # Both ways of naming a statement: by its id, and by the object.
        after = [name if number % 2 else self.values[name] for number, name in enumerate(statement.after)]
        return {"after": after} if after else {}

    def _site(self, site: str | tuple[str, ...] | None) -> Any:
        return dfmesh.BestOf(list(site)) if isinstance(site, tuple) else site

    def _call(self, call: Call) -> None:
        self.values[call.id] = self._operation(call.operation)(
            **{name: self.value(value) for name, value in call.arguments},
            **self._after(call),
            site=self._site(call.site),
            retries=call.retries,
            timeout=call.timeout,
            node_id=call.id,
        )

    def _cached(self, cached: Cached) -> None:
        key = [self.salt, self.value(cached.key)]
        options = {"site": self._site(cached.site), "node_id": cached.id, **self._after(cached)}
        with dfmesh.TryFromCache(key=key, **options) as block:
            self.block(cached.body)
            block.cache(self.value(cached.value))
        self.values[cached.id] = block

    def _sub(self, sub: Sub) -> None:
        pipeline = self.subs[id(sub.pipeline)]
        given = {name: self.value(value) for name, value in sub.arguments if name in pipeline.parameters()}
        made = pipeline(**given)
        for place, name in sub.outputs:
            self.values[name] = made[place]

    def _loop(self, loop: Loop) -> None:
        sequence = self.value(loop.sequence)
        options = {"window": loop.window, "on_error": loop.on_error, "node_id": loop.id, **self._after(loop)}
        with dfmesh.ForEach(sequence, **options) as element:
            self.values[loop.id] = element
            self.block(loop.body)
            for gather in loop.gathers:
                if gather.inside:
                    self._gather(element, gather)
        for gather in loop.gathers:
            if not gather.inside:
                self._gather(element, gather)

    def _gather(self, element: Any, gather: Gather) -> None:
        value = self.value(gather.value)
        if gather.operation is None:
            self.values[gather.id] = element.collect(value, node_id=gather.id)
            return
        initial = {} if gather.initial is None else {"initial": gather.initial}
        site = {} if gather.site is None else {"site": gather.site}
        operation = self._operation(gather.operation)
        self.values[gather.id] = element.reduce(operation, value, node_id=gather.id, **initial, **site)

    def value(self, expression: Any) -> Any:
        match expression:
            case Const(value=value) | Built(value=value):
                return value
            case Param(name=name, path=path):
                default = {"default": self.defaults[name]} if name in self.defaults else {}
                return _selected(dfmesh.PlaceParam(name, **default), path)
            case Ref(id=name, path=path):
                return _selected(self.values[name], path)
            case Index(id=name):
                return self.values[name].index
            case ListE(items=items):
                return [self.value(item) for item in items]
            case TupleE(items=items):
                return tuple(self.value(item) for item in items)
            case DictE(items=items):
                return {self.value(key): self.value(item) for key, item in items}
            case Compare(operator=operator, left=left, right=right):
                return COMPARE[operator](self.value(left), self.value(right))
            case Logic(operator="not", operands=(operand,)):
                return dfmesh.Not(self.value(operand))
            case Logic(operator=operator, operands=operands):
                joined = dfmesh.And if operator == "and" else dfmesh.Or
                return joined(*map(self.value, operands))
        raise TypeError(expression)


def _selected(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step.key] if isinstance(step, Item) else value.field(step.name)
    return value
