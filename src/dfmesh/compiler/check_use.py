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
