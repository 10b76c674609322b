"""Warnings of the first pass: what a valid pipeline computes for nobody, and what can never run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any

from dfmesh.api import (
    Block,
    Choose,
    Collect,
    Comparison,
    Else,
    ForEach,
    If,
    Logic,
    NodeId,
    NodeRef,
    Operation,
    Pipeline,
    Reduce,
    Statement,
    TryFromCache,
    Yield,
    blocks_of,
    find_references,
    statements_in,
)
from dfmesh.errors import Fault
from dfmesh.netir import COMPARISONS, Port


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
        _warning(statement, f"{statement.label} is never reached: {why}", hint)
        for statement, why, hint in _unreached(pipeline.body)
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
    if isinstance(statement, If) and not any(block.body for block in blocks_of(statement)):
        what = "nothing depends on this If: no statement stands in it, and a name for a value is none"
        yield _warning(statement, what, _MAKE_IT)


def _gathered_elements(body: Sequence[Statement]) -> Iterator[Fault]:
    """Iterate over warnings for lists of all elements of a loop with branches, as if a name were a statement."""
    loops: dict[NodeId, ForEach] = {}
    for statement in body:
        if isinstance(statement, ForEach):
            loops[statement.node_id] = statement
        elif isinstance(statement, Collect) and _is_element(statement.value, statement.loop):
            loop = loops.get(statement.loop)
            inside = () if loop is None else statements_in(loop)
            branch = next((inner for inner in inside if isinstance(inner, If)), None)
            if branch is not None:
                what = f"this collects every element, whatever the If ({branch.location or branch.node_id}) says"
                yield _warning(statement, what, _MAKE_IT)
        for block in blocks_of(statement):
            yield from _gathered_elements(block.body)


_MAKE_IT = "under it write `kept = x.element`, not `kept = x`, where x is the element of a loop"


def _is_element(value: object, loop: NodeId) -> bool:
    return isinstance(value, NodeRef) and (value.node, value.port, value.select) == (loop, Port.ELEMENT, ())


def _unreached(body: Sequence[Statement]) -> Iterator[tuple[Statement, str, str]]:
    """Iterate over the first statement of each block that never runs, with why, and what to do."""
    for statement in body:
        for block in blocks_of(statement):
            reason = _never(statement, block)
            if reason and block.body:
                yield block.body[0], *reason
            else:
                yield from _unreached(block.body)


def _never(statement: Statement, block: Block) -> tuple[str, str] | None:
    if isinstance(statement, If):
        outcome = _outcome(statement.cond)
        if outcome is not None and outcome is isinstance(block, Else):
            return f"the condition is always {str(outcome).lower()}", "leave it out, or change the condition"
    if isinstance(statement, ForEach) and _is_empty(statement.seq):
        return "the sequence is empty", "leave it out, or go over a sequence that has elements"
    return None


def _is_empty(sequence: Any) -> bool:
    known = next(find_references(sequence), None) is None
    return known and isinstance(sequence, Sized) and not len(sequence)


def _outcome(cond: Any) -> bool | None:
    """Give what a condition is found to be in each run; None if that depends on the run."""
    if next(find_references(cond), None) is not None:
        return None
    try:
        match cond:
            case Comparison(operator=operator, left=left, right=right):
                return bool(COMPARISONS[operator](left, right))
            case Logic(operator="not", operands=(operand,)):
                inner = _outcome(operand)
                return None if inner is None else not inner
            case Logic(operator=operator, operands=operands):
                inner_outcomes = [_outcome(operand) for operand in operands]
                joined = all(inner_outcomes) if operator == "and" else any(inner_outcomes)
                return None if None in inner_outcomes else joined
        return bool(cond)
    except Exception:  # Whatever the user's values raise; it is an error of the run.
        return None


def _warning(statement: Statement, message: str, hint: str) -> Fault:
    return Fault(message, statement.location, hint=hint, severity="warning")
