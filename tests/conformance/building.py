"""Writes described pipelines in the language of dfmesh."""

from __future__ import annotations

from typing import Any

import dfmesh

from .descriptions import (
    Branch,
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
    TupleE,
    Yield,
)
from .interpreter import COMPARE


def build(description: Description, ops: Any) -> Any:
    """Make the dfmesh pipeline of a description."""
    with dfmesh.Pipeline() as pipeline:
        _Builder(ops, description.defaults).block(description.body)
    return pipeline


class _Builder:
    def __init__(self, ops: Any, defaults: dict[str, Any]) -> None:
        self.ops = ops
        self.defaults = defaults
        self.values: dict[str, Any] = {}

    def block(self, body: tuple[Any, ...]) -> None:
        for statement in body:
            match statement:
                case Call():
                    self._call(statement)
                case Yield():
                    dfmesh.Yield(self.value(statement.value), place=statement.place)
                case Loop():
                    self._loop(statement)
                case Branch():
                    with dfmesh.If(self.value(statement.condition)):
                        self.block(statement.then)
                    if statement.otherwise is not None:
                        with dfmesh.Else():
                            self.block(statement.otherwise)
                case Chosen():
                    given = (statement.condition, statement.then, statement.otherwise)
                    self.values[statement.id] = dfmesh.Choose(*map(self.value, given), node_id=statement.id)

    def _operation(self, name: str) -> Any:
        group, _, own = name.partition(".")
        return getattr(getattr(self.ops, group), own)

    def _call(self, call: Call) -> None:
        site: Any = dfmesh.BestOf(list(call.site)) if isinstance(call.site, tuple) else call.site
        # Both ways of naming a statement: by its id, and by the object.
        after = [name if number % 2 else self.values[name] for number, name in enumerate(call.after)]
        self.values[call.id] = self._operation(call.operation)(
            **{name: self.value(value) for name, value in call.arguments},
            **({"after": after} if after else {}),
            site=site,
            node_id=call.id,
        )

    def _loop(self, loop: Loop) -> None:
        sequence = self.value(loop.sequence)
        with dfmesh.ForEach(sequence, window=loop.window, node_id=loop.id) as element:
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
            case Const(value=value):
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
