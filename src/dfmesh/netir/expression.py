"""Expressions of a net: how a transition builds its arguments from the tokens on its places.

Expressions are data. They come from a pipeline that somebody else wrote, so they can select and compare but
never look up a Python attribute that is not a field of a value, call anything, or import.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dfmesh import values
from dfmesh.errors import DfmeshError
from dfmesh.values.elements import item_of

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class SelectorError(DfmeshError):
    """A selector does not fit the value it is applied to."""


class Item(msgspec.Struct, frozen=True, tag="item", tag_field="step"):
    """Selects `value[key]`."""

    key: str | int

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class Field(msgspec.Struct, frozen=True, tag="field", tag_field="step"):
    """Selects the data field `value.name` of a dataclass, model or the like."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


Selector = tuple[Item | Field, ...]


class Const(msgspec.Struct, frozen=True, tag="const", tag_field="kind"):
    """A value known when the pipeline was written, as bytes of the value codec."""

    data: bytes


class Input(msgspec.Struct, frozen=True, tag="input", tag_field="kind"):
    """The value on the transition's input place number `index`."""

    index: int
    select: Selector = ()


class ListOf(msgspec.Struct, frozen=True, tag="list", tag_field="kind"):
    """A list of expressions."""

    items: tuple[Expression, ...]


class TupleOf(msgspec.Struct, frozen=True, tag="tuple", tag_field="kind"):
    """A tuple of expressions."""

    items: tuple[Expression, ...]


class DictOf(msgspec.Struct, frozen=True, tag="dict", tag_field="kind"):
    """A dictionary; keys are constants or expressions, in the order written."""

    items: tuple[tuple[Expression, Expression], ...]


class Compare(msgspec.Struct, frozen=True, tag="compare", tag_field="kind"):
    """A comparison; `operator` is a key of `COMPARISONS`."""

    operator: str
    left: Expression
    right: Expression


class Logic(msgspec.Struct, frozen=True, tag="logic", tag_field="kind"):
    """`and` / `or` over any number of operands, `not` over one. The result is True or False."""

    operator: str
    operands: tuple[Expression, ...]


Expression = Const | Input | ListOf | TupleOf | DictOf | Compare | Logic


def constant(value: Any) -> Const:
    """Make the expression of a value that is already known.

    Raises:
        ValueEncodingError: the value may not cross a process boundary.
    """
    return Const(values.to_bytes(value))


def select(value: Any, selector: Selector) -> Any:
    """Apply a selector to a value.

    Raises:
        SelectorError: there is no such item or field.
    """
    for step in selector:
        try:
            value = item_of(value, step.key) if isinstance(step, Item) else _field(value, step.name)
        except Exception as error:  # Whatever the value's own class raises.
            what = (
                f"no {'item' if isinstance(step, Item) else 'field'} {step} in a value of type {type(value).__name__}"
            )
            raise SelectorError(f"{what}{_available(value)}") from error
    return value


def _field(value: Any, name: str) -> Any:
    names = field_names(value)
    if names is None and isinstance(value, Mapping):
        return value[name]
    if names is None or name not in names:
        raise AttributeError(name)
    return getattr(value, name)


def field_names(value: Any) -> list[str] | None:
    """List the data fields of a value; None if it is not a kind of value that has fields."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    model_fields = getattr(type(value), "model_fields", None)
    if isinstance(model_fields, dict):
        return [str(name) for name in model_fields]
    tuple_fields = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and isinstance(tuple_fields, tuple):
        return [str(name) for name in tuple_fields]
    return None


def _available(value: Any) -> str:
    if isinstance(value, Mapping):
        known = [repr(key) for key in list(value)[:8]]
        return f"; it has {', '.join(known)}" if known else "; it is empty"
    if isinstance(value, Sequence):
        return f" of length {len(value)}"
    names = field_names(value)
    return f"; it has {', '.join(names)}" if names else ""


Evaluator = Callable[[Sequence[Any]], Any]


def compile_expression(expression: Expression) -> Evaluator:
    """Turn an expression into a function from the values of the input places to its value.

    Constants are decoded once, here; every evaluation hands out the same object.

    Raises:
        ValueDecodingError: a constant is not a value of the codec.
    """
    match expression:
        case Const(data=data):
            value = values.from_bytes(data)
            return lambda _: value
        case Input(index=index, select=()):
            return operator.itemgetter(index)
        case Input(index=index, select=selector):
            return lambda inputs: select(inputs[index], selector)
        case ListOf(items=items):
            parts = [compile_expression(item) for item in items]
            return lambda inputs: [part(inputs) for part in parts]
        case TupleOf(items=items):
            parts = [compile_expression(item) for item in items]
            return lambda inputs: tuple([part(inputs) for part in parts])
        case DictOf(items=pairs):
            entries = [(compile_expression(key), compile_expression(item)) for key, item in pairs]
            return lambda inputs: {key(inputs): item(inputs) for key, item in entries}
        case Compare(operator=name, left=left, right=right):
            compare, first, second = COMPARISONS[name], compile_expression(left), compile_expression(right)
            return lambda inputs: compare(first(inputs), second(inputs))
        case Logic(operator=name, operands=operands):
            return _compile_logic(name, [compile_expression(operand) for operand in operands])


def inputs_of(expression: Expression) -> Iterator[int]:
    """Iterate over the inputs that an expression reads, as often as it reads them."""
    match expression:
        case Input(index=index):
            yield index
        case ListOf(items=items) | TupleOf(items=items) | Logic(operands=items):
            for item in items:
                yield from inputs_of(item)
        case DictOf(items=pairs):
            for pair in pairs:
                for item in pair:
                    yield from inputs_of(item)
        case Compare(left=left, right=right):
            yield from inputs_of(left)
            yield from inputs_of(right)
        case Const():
            return


def _compile_logic(name: str, parts: list[Evaluator]) -> Evaluator:
    if name == "and":
        return lambda inputs: all(part(inputs) for part in parts)
    if name == "or":
        return lambda inputs: any(part(inputs) for part in parts)
    return lambda inputs: not parts[0](inputs)


def render_expression(expression: Expression) -> str:
    """Write an expression as text, with inputs as `%index`."""
    match expression:
        case Const(data=data):
            text = repr(values.from_bytes(data))
            return text if len(text) <= 60 else f"{text[:57]}..."
        case Input(index=index, select=selector):
            return f"%{index}{''.join(map(str, selector))}"
        case ListOf(items=items):
            return f"[{', '.join(map(render_expression, items))}]"
        case TupleOf(items=items):
            return f"({', '.join(map(render_expression, items))}{',' if len(items) == 1 else ''})"
        case DictOf(items=pairs):
            return f"{{{', '.join(f'{render_expression(k)}: {render_expression(v)}' for k, v in pairs)}}}"
        case Compare(operator=name, left=left, right=right):
            return f"({render_expression(left)} {name} {render_expression(right)})"
        case Logic(operator="not", operands=operands):
            return f"not {render_expression(operands[0])}"
        case Logic(operator=name, operands=operands):
            return f"({f' {name} '.join(map(render_expression, operands))})"
