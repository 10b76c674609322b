"""Pipelines described as plain data, which both dfmesh and the interpreter of these tests can run.

Nothing here knows of dfmesh.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import calc_plain

# Expressions.


class Item(NamedTuple):
    """A step of a selector, `value[key]`."""

    key: Any


class Member(NamedTuple):
    """A step of a selector, `value.field(name)`."""

    name: str


@dataclass(frozen=True)
class Const:
    value: Any


@dataclass(frozen=True)
class Built:
    """A constant that is made when it is needed, since an array cannot be compared as others are.

    Attributes:
        maker: Function of `calc_plain` that makes it.
        n: Its argument.
    """

    maker: str
    n: int

    @property
    def value(self) -> Any:
        return getattr(calc_plain, self.maker)(self.n)


@dataclass(frozen=True)
class Param:
    name: str
    path: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Ref:
    """The value of a statement; of a loop, the element of the current iteration."""

    id: str
    path: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Index:
    """The number of the current iteration of a loop."""

    id: str


@dataclass(frozen=True)
class ListE:
    items: tuple[Any, ...]


@dataclass(frozen=True)
class TupleE:
    items: tuple[Any, ...]


@dataclass(frozen=True)
class DictE:
    items: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Compare:
    operator: str
    left: Any
    right: Any


@dataclass(frozen=True)
class Logic:
    """`and`, `or` over any number of operands, `not` over one."""

    operator: str
    operands: tuple[Any, ...]


# Statements.


@dataclass(frozen=True)
class Call:
    """An operation.

    Attributes:
        site: A site's name, a tuple of names for BestOf, or None.
        after: Ids of statements; of loops and Ifs too.
        retries: How often to call again.
        timeout: Seconds for one call, or None.
    """

    id: str
    operation: str
    arguments: tuple[tuple[str, Any], ...]
    site: str | tuple[str, ...] | None = None
    after: tuple[str, ...] = ()
    retries: int = 0
    timeout: float | None = None


@dataclass(frozen=True)
class Yield:
    place: str
    value: Any
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gather:
    """`collect`, or `reduce` if it has an operation, of a value of the loop's body.

    Attributes:
        initial: None if there is none.
        site: Where to fold; None for anywhere.
        inside: Written inside the block in place of after it.
    """

    id: str
    value: Any
    operation: str | None = None
    initial: Any = None
    site: str | None = None
    inside: bool = False


@dataclass(frozen=True)
class Loop:
    id: str
    sequence: Any
    window: int | None
    body: tuple[Any, ...]
    gathers: tuple[Gather, ...] = ()
    on_error: str = "fail"
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Branch:
    """`If`, with its `Else` unless that is None.

    Attributes:
        id: None if nothing names it.
    """

    condition: Any
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...] | None = None
    id: str | None = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cached:
    """`TryFromCache`.

    Attributes:
        value: What the block stores.
        site: As in Call.
    """

    id: str
    key: Any
    body: tuple[Any, ...]
    value: Any
    site: str | tuple[str, ...] | None = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class SubPipeline:
    """A pipeline to be used in others; its ids and parameters are its own.

    Attributes:
        body: Its statements.
        defaults: Pairs of parameter and default.
    """

    body: tuple[Any, ...]
    defaults: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Sub:
    """A pipeline called in another.

    Attributes:
        id: Tells this call from others; not known to dfmesh.
        arguments: Pairs of parameter and expression.
        outputs: Pairs of a place of the sub-pipeline and the id under which its value is known from here on.
    """

    id: str
    pipeline: SubPipeline
    arguments: tuple[tuple[str, Any], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Chosen:
    """`Choose(condition, then, otherwise)`."""

    id: str
    condition: Any
    then: Any
    otherwise: Any


@dataclass(frozen=True)
class Description:
    """A pipeline with the parameter sets it is run with.

    Attributes:
        body: Statements in the order written.
        defaults: Defaults of parameters, by name.
        parameter_sets: What is given, one dictionary per top-level frame.
    """

    body: tuple[Any, ...]
    defaults: dict[str, Any] = field(default_factory=dict)
    parameter_sets: tuple[dict[str, Any], ...] = ({},)

    def size(self) -> int:
        return sum(1 for _ in walk(self.body))

    def render(self) -> str:
        lines = [f"defaults {self.defaults!r}"] if self.defaults else []
        lines += [f"parameters {given!r}" for given in self.parameter_sets]
        return "\n".join([*lines, *_render(self.body, "")])


def walk(body: tuple[Any, ...]) -> Iterator[Any]:
    """Iterate over all statements, those inside others too."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop | Cached):
            yield from walk(statement.body)
        elif isinstance(statement, Sub):
            yield from walk(statement.pipeline.body)
        elif isinstance(statement, Branch):
            yield from walk(statement.then)
            yield from walk(statement.otherwise or ())


def mentioned(thing: Any) -> Iterator[str]:
    """Iterate over the ids that an expression or statement refers to, at any depth."""
    if isinstance(thing, Ref | Index):
        yield thing.id
    elif isinstance(thing, Param | Const | SubPipeline | str):
        return
    elif isinstance(thing, tuple):
        for item in thing:
            yield from mentioned(item)
    elif hasattr(thing, "__dataclass_fields__"):
        yield from getattr(thing, "after", ())
        for part in fields(thing):
            yield from mentioned(getattr(thing, part.name))


def parameters_of(thing: Any) -> Iterator[str]:
    """Iterate over the names of the parameters in an expression or in statements, at any depth."""
    if isinstance(thing, Param):
        yield thing.name
    elif isinstance(thing, SubPipeline):
        return
    elif isinstance(thing, tuple) or hasattr(thing, "__dataclass_fields__"):
        inner = thing if isinstance(thing, tuple) else [getattr(thing, part.name) for part in fields(thing)]
        for item in inner:
            yield from parameters_of(item)


def only_used_parameters(description: Description) -> Description:
    """Leave out the parameters that no statement takes: dfmesh refuses them."""
    used = set(parameters_of(description.body))
    sets = tuple({name: value for name, value in given.items() if name in used} for given in description.parameter_sets)
    defaults = {name: value for name, value in description.defaults.items() if name in used}
    return replace(description, defaults=defaults, parameter_sets=sets)


def defined(statement: Any) -> set[str]:
    """Give the ids that a statement brings into the block in which it stands."""
    if isinstance(statement, Loop):
        # The id of a loop can be waited for; its element is known inside only.
        return {statement.id, *(gather.id for gather in statement.gathers)}
    if isinstance(statement, Branch):
        inner = (*statement.then, *(statement.otherwise or ()))
        return {name for part in inner for name in defined(part)} | ({statement.id} if statement.id else set())
    if isinstance(statement, Sub):
        return {name for _, name in statement.outputs}
    return {statement.id} if isinstance(statement, Call | Chosen | Cached) else set()


# As text.


def _render(body: tuple[Any, ...], indent: str) -> Iterator[str]:
    for statement in body:
        match statement:
            case Call():
                given = ", ".join(f"{name}={text(value)}" for name, value in statement.arguments)
                options = f" @{statement.site}" if statement.site else ""
                options += f" retries {statement.retries}" if statement.retries else ""
                yield f"{indent}{statement.id} = {statement.operation}({given}){options}{_after(statement)}"
            case Yield():
                yield f"{indent}yield {text(statement.value)} at {statement.place!r}{_after(statement)}"
            case Chosen():
                parts = (statement.condition, statement.then, statement.otherwise)
                yield f"{indent}{statement.id} = choose({', '.join(map(text, parts))})"
            case Loop():
                options = f"window {statement.window} on error {statement.on_error}{_after(statement)}"
                yield f"{indent}for {statement.id} in {text(statement.sequence)} {options}:"
                yield from _render(statement.body, f"{indent}    ")
                for gather in statement.gathers:
                    how = f"reduce {gather.operation} from {gather.initial!r}" if gather.operation else "collect"
                    yield f"{indent}{gather.id} = {how} {text(gather.value)}{' (inside)' if gather.inside else ''}"
            case Branch():
                name = f" as {statement.id}" if statement.id else ""
                yield f"{indent}if {text(statement.condition)}{name}{_after(statement)}:"
                yield from _render(statement.then, f"{indent}    ")
                if statement.otherwise is not None:
                    yield f"{indent}else:"
                    yield from _render(statement.otherwise, f"{indent}    ")
            case Cached():
                site = f" @{statement.site}" if statement.site else ""
                yield f"{indent}{statement.id} = cached {text(statement.key)}{site}{_after(statement)}:"
                yield from _render(statement.body, f"{indent}    ")
                yield f"{indent}    store {text(statement.value)}"
            case Sub():
                given = ", ".join(f"{name}={text(value)}" for name, value in statement.arguments)
                outputs = ", ".join(f"{name} = {place!r}" for place, name in statement.outputs)
                yield f"{indent}{outputs} of sub {statement.id}({given}), defaults {statement.pipeline.defaults}:"
                yield from _render(statement.pipeline.body, f"{indent}    ")


def _after(statement: Any) -> str:
    return f" after {', '.join(statement.after)}" if statement.after else ""


def text(expression: Any) -> str:
    """Write an expression as it would be written in Python."""
    match expression:
        case Const(value=value):
            return repr(value)
        case Built(maker=maker, n=n):
            return f"{maker}({n})"
        case Param(name=name, path=path):
            return f"${name}{_path(path)}"
        case Ref(id=name, path=path):
            return f"{name}{_path(path)}"
        case Index(id=name):
            return f"{name}.index"
        case ListE(items=items):
            return f"[{', '.join(map(text, items))}]"
        case TupleE(items=items):
            return f"({', '.join(map(text, items))},)"
        case DictE(items=items):
            return f"{{{', '.join(f'{text(key)}: {text(value)}' for key, value in items)}}}"
        case Compare(operator=operator, left=left, right=right):
            return f"({text(left)} {operator} {text(right)})"
        case Logic(operator=operator, operands=operands):
            return f"{operator}({', '.join(map(text, operands))})"
    raise TypeError(expression)


def _path(path: tuple[Any, ...]) -> str:
    return "".join(f"[{step.key!r}]" if isinstance(step, Item) else f".{step.name}" for step in path)


__all__ = [
    "Branch",
    "Built",
    "Cached",
    "Call",
    "Chosen",
    "Compare",
    "Const",
    "Description",
    "DictE",
    "Gather",
    "Index",
    "Item",
    "ListE",
    "Logic",
    "Loop",
    "Member",
    "Param",
    "Ref",
    "Sub",
    "SubPipeline",
    "TupleE",
    "Yield",
    "defined",
    "mentioned",
    "only_used_parameters",
    "parameters_of",
    "replace",
    "text",
    "walk",
]
