"""Writes sub-pipelines out: their statements in place of the call, as if the user had written them there.

The rules that it follows:

* parameters are replaced by the arguments of the call, or their defaults;
* a yield becomes a value of the caller; inside loops, the list of it over all iterations, as `collect` gives it;
* several yields to one place become the list of them.
"""

from __future__ import annotations

from typing import Any

from .descriptions import (
    Branch,
    Cached,
    Call,
    Chosen,
    Compare,
    Const,
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
    replace,
)

Outputs = list[tuple[str, Any]]


def renamed(body: tuple[Any, ...], prefix: str) -> tuple[tuple[Any, ...], Any]:
    """Give statements again under other ids and places, and what rewrites an expression of them so."""
    expansion = _Expansion(prefix, None)
    statements = expansion.block(body)[0]
    return statements, expansion.value


def expanded(body: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give statements without sub-pipelines that mean the same; ids from inside of one contain a `/`."""
    return _Expansion("", None).block(body)[0]


class _Expansion:
    """One pipeline with what its parameters stand for; None leaves them as they are."""

    def __init__(self, prefix: str, parameters: dict[str, Any] | None) -> None:
        self.prefix = prefix
        self.parameters = parameters
        self.known: dict[str, Any] = {}

    def block(self, body: tuple[Any, ...]) -> tuple[tuple[Any, ...], Outputs]:
        """Give the statements, and what they yield if this is a sub-pipeline."""
        statements: list[Any] = []
        outputs: Outputs = []
        for statement in body:
            made, yielded = self._statement(statement)
            statements += made
            outputs += yielded
        return tuple(statements), outputs

    def _statement(self, statement: Any) -> tuple[list[Any], Outputs]:
        match statement:
            case Yield() if self.parameters is not None:
                return [], [(statement.place, self.value(statement.value))]
            case Yield():
                place = f"{self.prefix}{statement.place}"
                return [self._renamed(statement, place=place, value=self.value(statement.value))], []
            case Call():
                given = tuple((name, self.value(value)) for name, value in statement.arguments)
                return [self._renamed(statement, arguments=given)], []
            case Chosen():
                parts = {name: self.value(getattr(statement, name)) for name in ("condition", "then", "otherwise")}
                return [self._renamed(statement, **parts)], []
            case Branch():
                condition = self.value(statement.condition)
                then = self.block(statement.then)[0]
                otherwise = None if statement.otherwise is None else self.block(statement.otherwise)[0]
                return [self._renamed(statement, condition=condition, then=then, otherwise=otherwise)], []
            case Cached():
                key = self.value(statement.key)
                body = self.block(statement.body)[0]
                return [self._renamed(statement, key=key, body=body, value=self.value(statement.value))], []
            case Loop():
                return self._loop(statement)
            case Sub():
                return self._sub(statement), []
        raise TypeError(statement)

    def _renamed(self, statement: Any, **parts: Any) -> Any:
        if getattr(statement, "id", None) is not None:
            parts["id"] = self._name(statement.id)
        if hasattr(statement, "after"):
            parts["after"] = tuple(self.prefix + name for name in statement.after)
        return replace(statement, **parts)

    def _name(self, name: str) -> str:
        self.known[name] = Ref(self.prefix + name)
        return self.prefix + name

    def _loop(self, loop: Loop) -> tuple[list[Any], Outputs]:
        sequence = self.value(loop.sequence)
        name = self._name(loop.id)
        body, yielded = self.block(loop.body)
        gathers = [replace(item, id=self._name(item.id), value=self.value(item.value)) for item in loop.gathers]
        outputs: Outputs = []
        for number, (place, value) in enumerate(yielded):
            gathers.append(Gather(f"{name}/{number}", value))
            outputs.append((place, Ref(f"{name}/{number}")))
        return [self._renamed(loop, sequence=sequence, body=body, gathers=tuple(gathers))], outputs

    def _sub(self, sub: Sub) -> list[Any]:
        given = {name: self.value(value) for name, value in sub.arguments}
        defaults = {name: Const(value) for name, value in sub.pipeline.defaults}
        inner = _Expansion(f"{self.prefix}{sub.id}/", {**defaults, **given})
        statements, yielded = inner.block(sub.pipeline.body)
        for place, name in sub.outputs:
            values = [value for other, value in yielded if other == place]
            self.known[name] = values[0] if len(values) == 1 else ListE(tuple(values))
        return list(statements)

    def value(self, expression: Any) -> Any:
        """Rewrite an expression."""
        match expression:
            case Ref(id=name, path=path):
                return _selected(self.known.get(name, Ref(name)), path)
            case Index(id=name):
                return Index(self.known.get(name, Ref(name)).id)
            case Param(name=name, path=path):
                return expression if self.parameters is None else _selected(self.parameters[name], path)
            case ListE(items=items) | TupleE(items=items):
                return type(expression)(tuple(map(self.value, items)))
            case DictE(items=items):
                return DictE(tuple((self.value(key), self.value(item)) for key, item in items))
            case Compare(operator=operator, left=left, right=right):
                return Compare(operator, self.value(left), self.value(right))
            case Logic(operator=operator, operands=operands):
                return Logic(operator, tuple(map(self.value, operands)))
        return expression


def _selected(expression: Any, path: tuple[Any, ...]) -> Any:
    """Apply a selector while the expression is rewritten, as far as it is known."""
    if not path:
        return expression
    step, rest = path[0], path[1:]
    match expression:
        case Ref() | Param():
            return replace(expression, path=(*expression.path, *path))
        case Index():
            raise TypeError("a number has no parts")
        case ListE(items=items) | TupleE(items=items):
            return _selected(items[step.key], rest)
        case DictE(items=items):
            return _selected(next(item for key, item in items if key == Const(step.key)), rest)
        case Const(value=value):
            return _selected(Const(value[step.key] if isinstance(step, Item) else getattr(value, step.name)), rest)
    raise TypeError(expression)
