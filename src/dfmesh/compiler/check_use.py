"""Warnings of the first pass: what a valid pipeline computes for nobody, and what can never run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dfmesh.api import (
    Block,
    Choose,
    Collect,
    ForEach,
    If,
    NodeId,
    NodeRef,
    Operation,
    Pipeline,
    Reduce,
    Statement,
    TryFromCache,
    Value,
    Yield,
)
from dfmesh.api.conditions import Condition
from dfmesh.errors import Fault
from dfmesh.netir import Port


def use_warnings(pipeline: Pipeline) -> list[Fault]:
    """Find values that nobody uses and statements that are never reached.

    Returns:
        Warnings, in the order of the pipeline.
    """
    used = {reference for statement in pipeline.statements() for reference in _uses(statement)}
    warnings = [_unused(statement) for statement in pipeline.statements() if _is_unused(statement, used)]
    if not any(isinstance(statement, Yield) for statement in pipeline.statements()):
        hint = "give what the client shall get to Yield(...)"
        warnings.append(
            Fault("the pipeline has no Yield, so it has no results", pipeline.location, hint=hint, severity="warning")
        )
    warnings += [
        _warning(statement, f"{statement.label} is never reached: {why}", "leave it out, or change the condition")
        for statement, why in _unreached(pipeline.body)
    ]
    warnings += [fault for statement in pipeline.statements() for fault in _without_effect(statement)]
    warnings += _gathered_elements(pipeline.body)
    return sorted(warnings, key=lambda fault: fault.location.line if fault.location else 0)


def _uses(statement: Statement) -> Iterator[NodeId]:
    yield from statement.after
    for reference in statement.references():
        if isinstance(reference, NodeRef):
            yield reference.node


def _is_unused(statement: Statement, used: set[NodeId]) -> bool:
    return isinstance(statement, Operation | Collect | Reduce | Choose | TryFromCache) and statement.node_id not in used


def _unused(statement: Statement) -> Fault:
    hint = "yield it or pass it on; leave it out if it is not called for what it does besides"
    return _warning(statement, f"the value of {statement.label} is not used", hint)


def _without_effect(statement: Statement) -> Iterator[Fault]:
    if isinstance(statement, If) and not statement.body and not (statement.otherwise and statement.otherwise.body):
        what = "nothing depends on this If: no statement stands in it, and a name for a value is none"
        yield _warning(statement, what, _MAKE_IT)


def _gathered_elements(body: Sequence[Statement]) -> Iterator[Fault]:
    """Iterate over warnings for lists of all elements of a loop with branches, as if a name were a statement."""
    loops: dict[NodeId, ForEach] = {}
    for statement in body:
        if isinstance(statement, ForEach):
            loops[statement.node_id] = statement
        elif isinstance(statement, Collect) and _is_element(statement.value, statement.loop):
            branch = next((inner for inner in _walk(loops.get(statement.loop)) if isinstance(inner, If)), None)
            if branch is not None:
                what = f"this collects every element, whatever the If ({branch.location or branch.node_id}) says"
                yield _warning(statement, what, _MAKE_IT)
        for inner in _blocks(statement):
            yield from _gathered_elements(inner)


_MAKE_IT = "under it write `kept = x.element`, not `kept = x`, where x is the element of a loop"


def _is_element(value: object, loop: NodeId) -> bool:
    return isinstance(value, NodeRef) and (value.node, value.port, value.select) == (loop, Port.ELEMENT, ())


def _blocks(statement: Statement) -> Iterator[list[Statement]]:
    if isinstance(statement, Block):
        yield statement.body
    if isinstance(statement, If) and statement.otherwise is not None:
        yield statement.otherwise.body


def _walk(statement: Statement | None) -> Iterator[Statement]:
    for block in _blocks(statement) if statement is not None else ():
        for inner in block:
            yield inner
            yield from _walk(inner)


def _unreached(body: Sequence[Statement]) -> Iterator[tuple[Statement, str]]:
    """Iterate over the first statement of each block that never runs."""
    for statement in body:
        blocks = [(statement.body, _never(statement))] if isinstance(statement, Block) else []
        for inner, reason in [*blocks, *_else_block(statement)]:
            if reason and inner:
                yield inner[0], reason
            else:
                yield from _unreached(inner)


def _else_block(statement: Statement) -> list[tuple[list[Statement], str]]:
    if not isinstance(statement, If) or statement.otherwise is None:
        return []
    always = _constant(statement.cond) and bool(statement.cond)
    return [(statement.otherwise.body, "the condition is always true" if always else "")]


def _never(statement: Statement) -> str:
    if isinstance(statement, If) and _constant(statement.cond) and not statement.cond:
        return "the condition is always false"
    if isinstance(statement, ForEach) and isinstance(statement.seq, list | tuple | dict) and not statement.seq:
        return "the sequence is empty"
    return ""


def _constant(cond: object) -> bool:
    return not isinstance(cond, Condition | Value) and isinstance(cond, bool | int | float | str | type(None))


def _warning(statement: Statement, message: str, hint: str) -> Fault:
    return Fault(message, statement.location, hint=hint, severity="warning")
