"""A plain evaluation of described pipelines: straight recursion in one thread, nothing of dfmesh.

The rules that it follows:

* results of a place are in frame order; what is skipped or failed is left out;
* a statement of whose inputs one is skipped is skipped; else if one failed it fails, without being an origin;
* `Choose` of a value that was skipped is an error of its own;
* `after` a statement that failed fails too, after one that was skipped goes on; after an If or a loop is after all that
  its block holds, at any depth, and a loop that tolerates errors has not failed by them; after a TryFromCache is after
  its value alone;
* a stream is its list, but one that is yielded itself is as many results as it has items;
* a stream that breaks has failed for all who take its list; a yield, a loop and an operation of the scope in which it
  is made take it item by item, and what came before the error counts for them: the yield has sent it (and has not
  failed), the iterations have run (what the loop collects and reduces has failed), the operation has got it (and
  fails with it). In a loop inside that scope there is only the list;
* whether a stream breaks of which nobody wants more is not said: all who would have taken it item by item were left
  out or had failed. One that nobody refers to, or of which somebody takes the list or waits for the end, breaks;
* `collect` leaves skipped values out and fails if one failed; `reduce` is a left fold in order over the same list;
* in a loop with `on_error="skip"` or `"collect"`, and in all that is inside, errors are no failures of the job. What an
  iteration could make in spite of its error counts: its yields are sent, and what it collects is in the list. `skip`
  leaves failed values out; `collect` puts an IterationError in their place, and a reduce leaves them out. That the
  sequence fails, or a stream breaks, is not an error in an iteration;
* the block of a TryFromCache runs or does not, as the cache has its key; if its value fails, it runs for each who asks,
  and nothing is stored. So what is inside is expected on condition, see `Expected`;
* a call that fails is an origin if it fails as often as it may be called.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import calc_plain

from .descriptions import (
    Branch,
    Built,
    Cached,
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
from .expansion import expanded
from .stream_uses import STREAMS, StreamUses, stream_uses

Frame = tuple[int, ...]
Guards = tuple[Any, ...]

PLAIN: dict[str, Callable[..., Any]] = {
    "calc.Add": calc_plain.add,
    "calc.Combine": calc_plain.combine,
    "calc.Mix": calc_plain.mix,
    "calc.Pair": calc_plain.pair,
    "calc.Record": calc_plain.record,
    "calc.Numbers": calc_plain.numbers,
    "calc.Stream": calc_plain.stream,
    "calc.Breaking": calc_plain.breaking,
    "calc.Running": calc_plain.running,
    "calc.Array": calc_plain.array,
    "calc.Grid": calc_plain.grid,
    "calc.Columns": calc_plain.columns,
    "calc.Names": calc_plain.names,
    "calc.Span": calc_plain.span,
    "calc.Unsteady": calc_plain.unsteady,
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


class Failed(_Nothing):
    """What stands in place of a value that failed.

    Attributes:
        error: What a loop that collects errors puts in its place.
    """

    def __init__(self, error: IterationError) -> None:
        super().__init__("failed")
        self.error = error


class Broken(Failed):
    """A stream that ended with an error.

    Attributes:
        items: What came before.
        frame: Frame in which it was made.
    """

    def __init__(self, error: IterationError, items: list[Any], frame: Frame) -> None:
        super().__init__(error)
        self.items = items
        self.frame = frame


@dataclass(frozen=True)
class IterationError:
    """What tells of an error in a list; the canonical form of values knows it by its name.

    Attributes:
        operation: Of which operation or construct.
        kind: Name of the exception's class.
        message: Its text.
    """

    operation: str
    kind: str
    message: str


Run = tuple[str, Frame]
"""A TryFromCache in a frame."""


@dataclass
class Expected:
    """What a run gives.

    Attributes:
        items: (place, frame, value, the blocks of TryFromCache around it, from the outermost) of each result.
        failures: The same of each operation that failed by itself: (node id, frame, blocks).
        groups: Who asks for the same key; if the value is not in the cache already, at least one of them computes.
        computes: Those whose block runs in any case, if they are asked for at all.
    """

    items: list[tuple[str, Frame, Any, tuple[Run, ...]]] = field(default_factory=list)
    failures: list[tuple[str, Frame, tuple[Run, ...]]] = field(default_factory=list)
    groups: dict[str, list[tuple[Run, tuple[Run, ...]]]] = field(default_factory=dict)
    computes: set[Run] = field(default_factory=set)

    def certain(self, blocks: tuple[Run, ...]) -> bool:
        """Tell whether what is inside of these blocks comes in any case."""
        return self.computes.issuperset(blocks)

    @property
    def results(self) -> dict[str, list[Any]]:
        """Place to its values in frame order, as if nothing were cached; places without a value are absent."""
        found: dict[str, list[Any]] = {}
        for place, _, value, _ in sorted(self.items, key=lambda item: item[1]):
            found.setdefault(place, []).append(value)
        return found

    @property
    def origins(self) -> set[tuple[str, Frame]]:
        """(node id, frame) of each operation that failed by itself, as if nothing were cached."""
        return {(node, frame) for node, frame, _ in self.failures}


def interpret(description: Description) -> Expected:
    """Evaluate a pipeline for all its parameter sets."""
    expected = Expected()
    body = expanded(description.body)
    uses = stream_uses(body)
    for number, given in enumerate(description.parameter_sets):
        evaluation = _Evaluation(expected, {**description.defaults, **given}, uses)
        evaluation.block(body, {}, (), (number,))
        evaluation.excuse_unwanted()
    return expected


class _Evaluation:
    """One parameter set."""

    def __init__(self, expected: Expected, parameters: dict[str, Any], uses: StreamUses) -> None:
        self.expected = expected
        self.parameters = parameters
        self.uses = uses
        self.streams: set[str] = set()
        # Who took the items of a broken stream: another stream, or None for what is no stream.
        self.takers: dict[Run, list[Run | None]] = {}
        self.broken: dict[Run, int] = {}
        self.tolerant = 0
        self.blocks: tuple[Run, ...] = ()

    def block(self, body: tuple[Any, ...], values: dict[str, Any], guards: Guards, frame: Frame) -> Any:
        """Run statements, which add to `values`.

        Args:
            body: The statements.
            values: Id to value, of everything that can be seen; `(id,)` to how a block that can be waited for ended.
            guards: Outcomes of the conditions around; SKIPPED, Failed or True.
            frame: Where we are.

        Returns:
            A failure, if anything in it failed.
        """
        failed = None
        for statement in body:
            end = self._statement(statement, values, (*self._failed_before(statement, values), *guards), frame)
            if isinstance(end, Failed):
                failed = failed or end
        return failed

    def _statement(self, statement: Any, values: dict[str, Any], waits: Guards, frame: Frame) -> Any:
        """Run a statement, and give how it ended."""
        match statement:
            case Call():
                end = values[statement.id] = self._call(statement, values, waits, frame)
            case Yield():
                end = self._yield(statement, values, waits, frame)
            case Loop():
                end = values[statement.id,] = self._loop(statement, values, waits, frame)
                ends = (end, *(values[gather.id] for gather in statement.gathers))
                end = next((end for end in ends if isinstance(end, Failed)), None)
            case Branch():
                end = values[statement.id,] = self._branch(statement, values, waits, frame)
            case Chosen():
                end = values[statement.id] = self._chosen(statement, values, waits, frame)
            case Cached():
                end = values[statement.id] = self._cached(statement, values, waits, frame)
        return end

    def _failed_before(self, statement: Any, values: dict[str, Any]) -> Guards:
        ends = [values.get((name,), values.get(name)) for name in getattr(statement, "after", ())]
        return tuple(_listed(end) for end in ends if isinstance(end, Failed))

    def _origin(self, node: str, frame: Frame, operation: str, kind: str = "DfmeshError", message: str = "") -> Failed:
        if not self.tolerant:
            # Ids inside of sub-pipelines are numbers that dfmesh gives.
            name = f"~{operation}" if "/" in node else node
            self.expected.failures.append((name, frame, self.blocks))
        return Failed(IterationError(operation, kind, message))

    def excuse_unwanted(self) -> None:
        """Note which streams need not have broken: all that would have taken them were left out, or failed."""
        for stream, position in self.broken.items():
            if not self._wanted(stream):
                node, frame, blocks = self.expected.failures[position]
                self.expected.failures[position] = (node, frame, (*blocks, ("unwanted " + stream[0], stream[1])))

    def _wanted(self, stream: Run) -> bool:
        if stream[0] not in self.uses.used or stream[0] in self.uses.needed:
            return True
        return any(taker is None or self._wanted(taker) for taker in self.takers.get(stream, ()))

    def _yield(self, statement: Yield, values: dict[str, Any], waits: Guards, frame: Frame) -> Any:
        value = self._taken(statement.value, values, waits, frame)
        if isinstance(value, _Nothing) and not isinstance(value, Broken):
            return value
        if not self._is_stream(statement.value):
            self.expected.items.append((statement.place, frame, value, self.blocks))
            return None
        for number, item in enumerate(value.items if isinstance(value, Broken) else value):
            self.expected.items.append((statement.place, (*frame, number), item, self.blocks))
        return None

    def _is_stream(self, value: Any) -> bool:
        return isinstance(value, Ref) and not value.path and value.id in self.streams

    def _taken(self, expression: Any, values: dict[str, Any], waits: Guards, frame: Frame) -> Any:
        """Evaluate for one who takes streams item by item: Broken stands for a broken stream only if it does so."""
        if self._is_live(expression, values, frame):
            outcome = self._evaluate(Const(None), values, waits)
            if isinstance(outcome, _Nothing):
                return outcome
            self.takers.setdefault((expression.id, frame), []).append(None)
            return values[expression.id]
        return _listed(self._evaluate(expression, values, waits))

    def _is_live(self, expression: Any, values: dict[str, Any], frame: Frame) -> bool:
        """Tell whether an expression is a broken stream of this scope, by itself."""
        if not self._is_stream(expression):
            return False
        value = values[expression.id]
        return isinstance(value, Broken) and value.frame == frame

    def _call(self, call: Call, values: dict[str, Any], waits: Guards, frame: Frame) -> Any:
        if call.operation in STREAMS:
            self.streams.add(call.id)
        live = [value for _, value in call.arguments if self._is_live(value, values, frame)]
        listed = [(Const(name), value) for name, value in call.arguments if value not in live]
        given = self._evaluate(DictE(tuple(listed)), values, waits)
        if isinstance(given, _Nothing):
            return _listed(given)
        if live:
            broken = values[live[0].id]
            taker = (call.id, frame) if call.operation in STREAMS else None
            for stream in live:
                self.takers.setdefault((stream.id, frame), []).append(taker)
            if call.operation not in STREAMS:
                return Failed(broken.error)
            return Broken(broken.error, list(PLAIN[call.operation](broken.items)), frame)
        if call.operation == "calc.Unsteady":
            del given["key"]
        return self._run(call.operation, given, call.id, frame)

    def _run(self, operation: str, given: dict[str, Any], node: str, frame: Frame) -> Any:
        items: list[Any] = []
        try:
            result = PLAIN[operation](**given)
            if operation not in STREAMS:
                return result
            for item in result:
                items.append(item)  # noqa: PERF402 - what came before the error is wanted
        except ValueError as error:
            reported = len(self.expected.failures)
            failed = self._origin(node, frame, operation, "ValueError", str(error))
            if operation in STREAMS and not self.tolerant:
                self.broken[node, frame] = reported
            return Broken(failed.error, items, frame) if operation in STREAMS else failed
        return items

    def _loop(self, loop: Loop, values: dict[str, Any], waits: Guards, frame: Frame) -> Any:
        sequence = self._taken(loop.sequence, values, waits, frame)
        failed = None
        if isinstance(sequence, Broken):
            failed = Failed(sequence.error)
            sequence = sequence.items
        if isinstance(sequence, _Nothing):
            values.update({gather.id: sequence for gather in loop.gathers})
            return sequence
        gathered: dict[str, list[Any]] = {gather.id: [] for gather in loop.gathers}
        tolerant = loop.on_error != "fail"
        self.tolerant += tolerant
        ended = None
        for number, element in enumerate(elements(sequence)):
            inner = {**values, loop.id: element, f"{loop.id}.index": number}
            # A body runs under no guard of its own: it would not run at all if the loop were skipped.
            end = self.block(loop.body, inner, (), (*frame, number))
            ended = ended or (None if tolerant else end)
            for gather in loop.gathers:
                gathered[gather.id].append(self._evaluate(gather.value, inner, ()))
        self.tolerant -= tolerant
        for gather in loop.gathers:
            values[gather.id] = failed or self._gather(gather, loop.on_error, gathered[gather.id], frame)
        return failed or ended

    def _gather(self, gather: Gather, on_error: str, items: list[Any], frame: Frame) -> Any:
        there = [item for item in items if item is not SKIPPED]
        if on_error == "skip" or (on_error == "collect" and gather.operation is not None):
            there = [item for item in there if not isinstance(item, Failed)]
        elif on_error == "collect":
            there = [item.error if isinstance(item, Failed) else item for item in there]
        failed = next((item for item in there if isinstance(item, Failed)), None)
        if failed is not None:
            return _listed(failed)
        if gather.operation is None:
            return there
        if gather.initial is not None:
            there.insert(0, gather.initial)
        if not there:
            return self._origin(gather.id, frame, f"reduce {gather.operation}")
        left, right = ("a", "b") if gather.operation == "calc.Add" else ("left", "right")
        result = there[0]
        for item in there[1:]:
            result = self._run(gather.operation, {left: result, right: item}, gather.id, frame)
            if isinstance(result, Failed):
                break
        return result

    def _branch(self, branch: Branch, values: dict[str, Any], waits: Guards, frame: Frame) -> Any:
        outcome = self._evaluate(branch.condition, values, waits)
        if isinstance(outcome, _Nothing):
            then, otherwise = _listed(outcome), _listed(outcome)
        else:
            then, otherwise = (True, SKIPPED) if outcome else (SKIPPED, True)
        ends = (
            self.block(branch.then, values, (then,), frame),
            self.block(branch.otherwise or (), values, (otherwise,), frame),
        )
        return next((end for end in (outcome, *ends) if isinstance(end, Failed)), None)

    def _chosen(self, chosen: Chosen, values: dict[str, Any], guards: Guards, frame: Frame) -> Any:
        outcome = self._evaluate(chosen.condition, values, guards)
        if isinstance(outcome, _Nothing):
            return _listed(outcome)
        value = self._evaluate(chosen.then if outcome else chosen.otherwise, values, guards)
        if value is SKIPPED:
            return self._origin(chosen.id, frame, "Choose")
        return _listed(value)

    def _cached(self, cached: Cached, values: dict[str, Any], waits: Guards, frame: Frame) -> Any:
        key = self._evaluate(cached.key, values, waits)
        inner = dict(values)
        if isinstance(key, _Nothing):
            self.block(cached.body, inner, (_listed(key),), frame)
            return _listed(key)
        around, run = self.blocks, (cached.id, frame)
        self.blocks = (*around, run)
        self.block(cached.body, inner, (), frame)
        value = self._evaluate(cached.value, inner, ())
        self.blocks = around
        if isinstance(value, _Nothing):
            self.expected.computes.add(run)
            return _listed(value)
        self.expected.groups.setdefault(calc_plain.canonical(key), []).append((run, around))
        return value

    def _evaluate(self, expression: Any, values: dict[str, Any], waits: Guards = ()) -> Any:
        """Give the value, or the skip or failure of one of its inputs or of `waits`."""
        inputs = [*self._inputs(expression, values), *waits]
        if any(value is SKIPPED for value in inputs):
            return SKIPPED
        failed = next((value for value in inputs if isinstance(value, Failed)), None)
        return self._compute(expression, values) if failed is None else failed

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
            case Const(value=value) | Built(value=value):
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


def _listed(value: Any) -> Any:
    """What has failed with a broken stream is no stream."""
    return Failed(value.error) if isinstance(value, Broken) else value


def elements(sequence: Any) -> list[Any]:
    """List what a loop goes over: pairs of dictionaries, rows of tables and arrays."""
    if isinstance(sequence, dict):
        return list(sequence.items())
    if hasattr(sequence, "to_pylist"):
        return list(sequence.to_pylist())
    return list(sequence)
