"""The plan check of single transitions: their inputs, expressions and options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dfmesh.netir.expression import (
    COMPARISONS,
    Compare,
    DictOf,
    Expression,
    Input,
    ListOf,
    Logic,
    TupleOf,
)
from dfmesh.netir.net import (
    Action,
    Branch,
    Call,
    Choose,
    Collect,
    Evaluate,
    LookUp,
    Loop,
    Reduce,
    Role,
    Scope,
    SendYield,
    Store,
    Transition,
)


def statement_faults(transition: Transition, scopes: Mapping[int, Scope]) -> Iterator[str]:
    """Look for what is wrong with a transition whatever is around it.

    Args:
        transition: The transition.
        scopes: The scopes of its net, by id.
    """
    yield from _place_faults(transition, scopes)
    yield from _expression_faults(transition)
    yield from _option_faults(transition.action)


def _place_faults(transition: Transition, scopes: Mapping[int, Scope]) -> Iterator[str]:
    inputs = transition.inputs
    action = transition.action
    if isinstance(action, Collect | Reduce):
        body = scopes.get(action.body)
        if body is None or body.parent != transition.scope:
            yield f"gathers from scope s{action.body}, which is no loop beside it"
        if not inputs or inputs[0].scope != action.body or inputs[0].role is not Role.VALUE:
            yield f"gathers from scope s{action.body}, and its first input is no value of that"
        inputs = inputs[1:]
    if all(place.scope != transition.scope for place in inputs):
        yield "has no input of its own scope, so that nothing makes it fire"
    for place in inputs:
        if place.scope != transition.scope and not _encloses(place.scope, transition.scope, scopes):
            yield f"is in scope s{transition.scope} and has an input of s{place.scope}, which is not around it"


def _encloses(outer: int, inner: int, scopes: Mapping[int, Scope]) -> bool:
    current: int | None = inner
    for _ in scopes:  # The scopes of a hostile net may go round in a ring.
        scope = scopes.get(current) if current is not None else None
        if scope is None:
            return False
        if scope.id == outer:
            return True
        current = scope.parent
    return False


def _expression_faults(transition: Transition) -> Iterator[str]:
    inputs = transition.inputs
    gathered = isinstance(transition.action, Collect | Reduce)
    read, problems = _readings(expressions_of(transition.action))
    yield from problems
    for index in sorted(read):
        if not 0 <= index < len(inputs):
            yield f"reads its input {index}, and has {len(inputs)}"
        elif inputs[index].role is not Role.VALUE:
            yield f"reads its input {index}, which is a {inputs[index].role.value}"
        elif gathered and index == 0:
            yield "reads what it gathers"


def expressions_of(action: Action) -> tuple[Expression, ...]:
    """Give the expressions that an action evaluates."""
    match action:
        case Call(arguments=arguments):
            return tuple(arguments.values())
        case Evaluate(expression=expression) | Store(expression=expression) | SendYield(expression=expression):
            return (expression,)
        case Loop(sequence=expression) | Branch(condition=expression) | LookUp(key=expression):
            return (expression,)
        case Choose(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Reduce(arguments=arguments, initial=initial):
            return (*arguments.values(), *(() if initial is None else (initial,)))
        case Collect():
            return ()


def _readings(expressions: Iterable[Expression]) -> tuple[set[int], list[str]]:
    """Give the inputs that are read and what is wrong; without recursion, since a hostile one may be deep."""
    read: set[int] = set()
    problems: list[str] = []
    stack = list(expressions)
    while stack:
        expression = stack.pop()
        match expression:
            case Input(index=index):
                read.add(index)
            case ListOf(items=items) | TupleOf(items=items):
                stack += items
            case DictOf(items=pairs):
                for pair in pairs:
                    stack += pair
            case Compare(operator=operator, left=left, right=right):
                stack += (left, right)
                if operator not in COMPARISONS:
                    problems.append(f"compares with {operator!r:.40}, which is no comparison")
            case Logic(operator=operator, operands=operands):
                stack += operands
                if operator not in ("and", "or", "not") or (operator == "not" and len(operands) != 1):
                    problems.append(f"has a condition {operator!r:.40} over {len(operands)} operands")
    return read, problems


def _option_faults(action: Action) -> Iterator[str]:
    match action:
        case Loop(window=window):
            if window < 1:
                yield f"has a window of {window}: it would never begin an iteration"
        case SendYield(place=place):
            if not place:
                yield "sends results to a place without a name"
        case LookUp(ttl=ttl):
            if ttl is not None and not ttl > 0:
                yield f"looks for entries not older than {ttl} s"
        case Call(retries=retries, timeout=timeout) | Reduce(retries=retries, timeout=timeout):
            if retries < 0:
                yield f"has {retries} retries"
            if timeout is not None and not timeout > 0:
                yield f"has a time-out of {timeout} s"
    if isinstance(action, Reduce):
        names = {action.left, action.right, *action.arguments}
        if len(names) < 2 + len(action.arguments):
            yield "merges by parameters that are named twice"
