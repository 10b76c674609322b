"""A plain evaluation of described pipelines: straight recursion in one thread, nothing of dfmesh.

The rules that it follows:

* results of a place are in frame order; what is skipped or failed is left out;
* a statement of whose inputs one is skipped is skipped; else if one failed it fails, without being an origin;
* `Choose` of a value that was skipped is an error of its own;
* `after` a statement that failed fails too, after one that was skipped goes on;
* a stream is its list, but one that is yielded itself is as many results as it has items;
* `collect` leaves skipped values out and fails if one failed; `reduce` is a left fold in order over the same list.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import calc_plain

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

Frame = tuple[int, ...]
Guards = tuple[Any, ...]

PLAIN: dict[str, Callable[..., Any]] = {
    "calc.Add": calc_plain.add,
    "calc.Combine": calc_plain.combine,
    "calc.Mix": calc_plain.mix,
    "calc.Pair": calc_plain.pair,
    "calc.Record": calc_plain.record,
    "calc.Numbers": calc_plain.numbers,
    "calc.Stream": lambda n: list(calc_plain.stream(n)),
    "calc.Table": calc_plain.table,
    "calc.Total": calc_plain.total,
    "calc.Concat": calc_plain.concat,
    "calc.Identity": lambda x: x,
    "calc.FailIf": calc_plain.fail_if,
}

COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _Nothing:
    """What stands in place of a value that is not there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


SKIPPED = _Nothing("skipped")
FAILED = _Nothing("failed")


@dataclass
class Expected:
    """What a run gives.

    Attributes:
        results: Place to its values in frame order; places without a value are absent.
        origins: (node id, frame) of each operation that failed by itself.
    """

    results: dict[str, list[Any]] = field(default_factory=dict)
    origins: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)


def interpret(description: Description) -> Expected:
    """Evaluate a pipeline for all its parameter sets."""
    expected = Expected()
    for number, given in enumerate(description.parameter_sets):
        _Evaluation(expected, {**description.defaults, **given}).block(description.body, {}, (), (number,))
    return expected


class _Evaluation:
    """One parameter set."""

    def __init__(self, expected: Expected, parameters: dict[str, Any]) -> None:
        self.expected = expected
        self.parameters = parameters
        self.streams: set[str] = set()

    def block(self, body: tuple[Any, ...], values: dict[str, Any], guards: Guards, frame: Frame) -> None:
        """Run statements, which add to `values`.

        Args:
            body: The statements.
            values: Id to value, of everything that can be seen.
            guards: Outcomes of the conditions around; SKIPPED, FAILED or True.
            frame: Where we are.
        """
        for statement in body:
            match statement:
                case Call():
                    values[statement.id] = self._call(statement, values, guards, frame)
                case Yield():
                    value = self._evaluate(statement.value, values, guards)
                    if not isinstance(value, _Nothing):
                        items = value if self._is_stream(statement.value) else [value]
                        self.expected.results.setdefault(statement.place, []).extend(items)
                case Loop():
                    self._loop(statement, values, guards, frame)
                case Branch():
                    self._branch(statement, values, guards, frame)
                case Chosen():
                    values[statement.id] = self._chosen(statement, values, guards, frame)

    def _is_stream(self, value: Any) -> bool:
        return isinstance(value, Ref) and not value.path and value.id in self.streams

    def _call(self, call: Call, values: dict[str, Any], guards: Guards, frame: Frame) -> Any:
        waits = (*guards, *(values[name] for name in call.after if values[name] is FAILED))
        given = self._evaluate(DictE(tuple((Const(name), value) for name, value in call.arguments)), values, waits)
        if isinstance(given, _Nothing):
            return given
        if call.operation == "calc.Stream":
            self.streams.add(call.id)
        return self._run(call.operation, given, call.id, frame)

    def _run(self, operation: str, given: dict[str, Any], node: str, frame: Frame) -> Any:
        try:
            return PLAIN[operation](**given)
        except ValueError:
            self.expected.origins.add((node, frame))
            return FAILED

    def _loop(self, loop: Loop, values: dict[str, Any], guards: Guards, frame: Frame) -> None:
        sequence = self._evaluate(loop.sequence, values, guards)
        if isinstance(sequence, _Nothing):
            values.update({gather.id: sequence for gather in loop.gathers})
            return
        gathered: dict[str, list[Any]] = {gather.id: [] for gather in loop.gathers}
        for number, element in enumerate(list(sequence)):
            inner = {**values, loop.id: element, f"{loop.id}.index": number}
            # A body runs under no guard of its own: it would not run at all if the loop were skipped.
            self.block(loop.body, inner, (), (*frame, number))
            for gather in loop.gathers:
                gathered[gather.id].append(self._evaluate(gather.value, inner, ()))
        for gather in loop.gathers:
            values[gather.id] = self._gather(gather, gathered[gather.id], frame)

    def _gather(self, gather: Gather, items: list[Any], frame: Frame) -> Any:
        there = [item for item in items if item is not SKIPPED]
        if any(item is FAILED for item in there):
            return FAILED
        if gather.operation is None:
            return there
        if gather.initial is not None:
            there.insert(0, gather.initial)
        if not there:
            self.expected.origins.add((gather.id, frame))
            return FAILED
        left, right = ("a", "b") if gather.operation == "calc.Add" else ("left", "right")
        result = there[0]
        for item in there[1:]:
            result = self._run(gather.operation, {left: result, right: item}, gather.id, frame)
            if result is FAILED:
                break
        return result

    def _branch(self, branch: Branch, values: dict[str, Any], guards: Guards, frame: Frame) -> None:
        outcome = self._evaluate(branch.condition, values, guards)
        if isinstance(outcome, _Nothing):
            then, otherwise = outcome, outcome
        else:
            then, otherwise = (True, SKIPPED) if outcome else (SKIPPED, True)
        self.block(branch.then, values, (then,), frame)
        self.block(branch.otherwise or (), values, (otherwise,), frame)

    def _chosen(self, chosen: Chosen, values: dict[str, Any], guards: Guards, frame: Frame) -> Any:
        outcome = self._evaluate(chosen.condition, values, guards)
        if isinstance(outcome, _Nothing):
            return outcome
        value = self._evaluate(chosen.then if outcome else chosen.otherwise, values, guards)
        if value is SKIPPED:
            self.expected.origins.add((chosen.id, frame))
            return FAILED
        return value

    def _evaluate(self, expression: Any, values: dict[str, Any], waits: Guards = ()) -> Any:
        """Give the value, or SKIPPED or FAILED if one of its inputs or of `waits` is."""
        inputs = [*waits, *self._inputs(expression, values)]
        for missing in (SKIPPED, FAILED):
            if any(value is missing for value in inputs):
                return missing
        return self._compute(expression, values)

    def _inputs(self, expression: Any, values: dict[str, Any]) -> Iterator[Any]:
        match expression:
            case Ref(id=name):
                yield values[name]
            case ListE(items=items) | TupleE(items=items):
                for item in items:
                    yield from self._inputs(item, values)
            case DictE(items=items):
                for key, item in items:
                    yield from self._inputs(key, values)
                    yield from self._inputs(item, values)
            case Compare(left=left, right=right):
                yield from self._inputs(left, values)
                yield from self._inputs(right, values)
            case Logic(operands=operands):
                for operand in operands:
                    yield from self._inputs(operand, values)

    def _compute(self, expression: Any, values: dict[str, Any]) -> Any:
        match expression:
            case Const(value=value):
                return value
            case Param(name=name, path=path):
                return _selected(self.parameters[name], path)
            case Ref(id=name, path=path):
                return _selected(values[name], path)
            case Index(id=name):
                return values[f"{name}.index"]
            case ListE(items=items):
                return [self._compute(item, values) for item in items]
            case TupleE(items=items):
                return tuple(self._compute(item, values) for item in items)
            case DictE(items=items):
                return {self._compute(key, values): self._compute(item, values) for key, item in items}
            case Compare(operator=name, left=left, right=right):
                return COMPARE[name](self._compute(left, values), self._compute(right, values))
            case Logic(operator="not", operands=(operand,)):
                return not self._compute(operand, values)
            case Logic(operator=name, operands=operands):
                outcomes = [bool(self._compute(operand, values)) for operand in operands]
                return all(outcomes) if name == "and" else any(outcomes)
        raise TypeError(expression)


def _selected(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step.key] if isinstance(step, Item) else value[step.name]
    return value
