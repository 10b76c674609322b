"""What cannot stand where a value should: references where nobody looks for them, and statements without a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from dfmesh.api import Block, Operation, Pipeline, Statement, Value
from dfmesh.api.conditions import Condition
from dfmesh.api.subpipeline import SubPipelineValues

_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class MisplacedReference:
    """A reference that the compiler does not see.

    Attributes:
        what: What the user gave.
        hint: What to give instead.
    """

    what: str
    hint: str


def misplaced_references(value: Any) -> Iterator[MisplacedReference]:
    """Find references in sets, named tuples, dataclasses and models, and results of sub-pipelines taken as a whole.

    Args:
        value: What a user gave to a statement.
    """
    yield from _inside(value, "", 0)


def _inside(value: Any, holder: str, depth: int) -> Iterator[MisplacedReference]:
    if isinstance(value, SubPipelineValues):
        places = " or ".join(f"sub(...)[{place!r}]" for place in list(value)[:3])
        hint = f"take one of them: {places}" if places else "that sub-pipeline yields nothing"
        yield MisplacedReference("all results of a sub-pipeline at once", hint)
    elif isinstance(value, Value | Condition):
        if holder:
            hint = (
                "references may stand in lists, tuples and dicts; give one of these, or take it apart in an operation"
            )
            yield MisplacedReference(f"a reference inside a {holder}", hint)
    elif isinstance(value, Block | Statement) or (isinstance(value, type) and issubclass(value, Operation)):
        yield _without_value(value)
    elif depth < _DEEPEST:
        kind = type(value)
        inner = holder if kind in (list, tuple, dict) else kind.__name__
        for part in _parts(value):
            yield from _inside(part, inner, depth + 1)


def _without_value(value: Block | Statement | type[Operation]) -> MisplacedReference:
    if isinstance(value, type):
        return MisplacedReference(f"the operation {value.operation} itself", "call it, and give what it returns")
    if isinstance(value, Pipeline):
        return MisplacedReference("a pipeline", "call it, and take one of its results: other(...)[place]")
    kind = type(value).__name__
    return MisplacedReference(f"this {kind}, which has no value", NO_VALUE.get(kind, "give a value"))


NO_VALUE = {
    "If": "a block has no value; Choose(cond, a, b) gives that of one branch or the other",
    "Else": "a block has no value; Choose(cond, a, b) gives that of one branch or the other",
    "Yield": "a Yield sends a value to the client; use that value itself",
    "WriteToCache": "use the value of the TryFromCache, behind its block",
}
"""What to use instead of a statement that has no value."""


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, str | bytes | bytearray | range | memoryview):
        return
    if isinstance(value, Mapping):
        yield from value.keys()
        yield from value.values()
    elif isinstance(value, Sequence | Set):
        yield from value
    elif not isinstance(value, type) and (hasattr(value, "__dataclass_fields__") or hasattr(value, "model_fields")):
        names = getattr(value, "__dataclass_fields__", None) or type(value).model_fields
        yield from (getattr(value, name, None) for name in names)
