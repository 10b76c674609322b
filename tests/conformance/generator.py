"""Makes random pipelines as descriptions. The same seed and options give the same pipeline.

The shape of every value is known while the pipeline is made, so that selectors fit and operations get what they
take; what fails, fails on purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

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
    only_used_parameters,
)

# Shapes of values.

INT = "int"
STR = "str"
OPAQUE = "opaque"


@dataclass(frozen=True)
class ListS:
    element: Any
    least: int
    most: int


@dataclass(frozen=True)
class TupleS:
    items: tuple[Any, ...]


@dataclass(frozen=True)
class DictS:
    items: tuple[tuple[Any, Any], ...]


NUMBERS = ListS(INT, 0, 4)
ROW = DictS((("k", INT), ("items", NUMBERS), ("at", TupleS((INT, STR)))))


def weight(shape: Any) -> int:
    """Estimate how large a value of a shape is."""
    match shape:
        case ListS(element=element, most=most):
            return 1 + most * weight(element)
        case TupleS(items=items):
            return 1 + sum(map(weight, items))
        case DictS(items=items):
            return 1 + sum(weight(item) for _, item in items)
    return 1


def parts(shape: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Iterate over what a selector can reach in a value: (path, shape), the value itself first."""
    yield path, shape
    if len(path) == 4:
        return
    match shape:
        case ListS(element=element, least=least):
            for key in (*range(least), *((-1,) if least else ())):
                yield from parts(element, (*path, Item(key)))
        case TupleS(items=items):
            for key, item in enumerate(items):
                yield from parts(item, (*path, Item(key)))
        case DictS(items=items):
            for key, item in items:
                if isinstance(key, str | int):
                    yield from parts(item, (*path, Item(key)))


@dataclass(frozen=True)
class Options:
    """What a random pipeline may hold.

    Attributes:
        operations: The most operations.
        branches: With If, Else and Choose.
        failures: With operations that raise.
        loops: With ForEach.
        odd_names: With node ids and places that are no Python identifiers.
        frames: The most frames of a loop's body in one parameter set.
        whole: With everything that the language has; see `whole_language`.
        tolerant: With loops that leave errors out or collect them.
    """

    operations: int = 30
    branches: bool = False
    failures: bool = False
    loops: bool = True
    odd_names: bool = True
    frames: int = 24
    whole: bool = False
    tolerant: bool = True


SITES = {
    "calc.Add": "abcd",
    "calc.Combine": "abcd",
    "calc.Mix": "abcd",
    "calc.Pair": "ab",
    "calc.Record": "bcd",
    "calc.Numbers": "acd",
    "calc.Stream": "abcd",
    "calc.Table": "bd",
    "calc.Total": "abcd",
    "calc.Concat": "ad",
    "calc.Identity": "abcd",
    "calc.FailIf": "abcd",
    "calc.Array": "abcd",
    "calc.Grid": "ac",
    "calc.Columns": "bd",
    "calc.Names": "abcd",
    "calc.Span": "bc",
    "calc.Breaking": "abcd",
    "calc.Running": "bcd",
    "calc.Unsteady": "abcd",
}

ODD = ["class-{}", "self", "Für_{}", "_frame_", "a b {}", "None", "{}%", "x.y[{}]", "0{}", "yield"]


@dataclass(frozen=True)
class Visible:
    """A value that can be referred to.

    Attributes:
        expression: How.
        shape: What it is.
        statement: Id of the statement that gives it; None for others.
        hidden: It is from a branch that has ended, so that only Choose, collect and reduce may take it.
        branch: Condition and what the two blocks define, if it is from a branch that has just ended.
    """

    expression: Any
    shape: Any
    statement: str | None = None
    hidden: bool = False
    branch: Any = None


def random_pipeline(seed: int, options: Options | None = None) -> Description:
    """Make the pipeline of a seed."""
    options = options or Options()
    if options.whole:
        from .whole_language import WholeMaker

        return WholeMaker(random.Random(seed), options, seed).make()
    return Maker(random.Random(seed), options).make()


class Maker:
    """Makes one pipeline."""

    def __init__(self, rng: random.Random, options: Options) -> None:
        self.rng = rng
        self.options = options
        self.count = 0
        self.left = rng.randint(1, options.operations)
        self.parameters: dict[str, Any] = {}
        self.places = 0
        self.odd_used: set[str] = set()

    # The whole.

    def make(self) -> Description:
        visible = self._parameters()
        body = self._block(visible, depth=0, frames=1, budget=self.left)
        defaults = {name: self._value(shape) for name, shape in self.parameters.items() if self.rng.random() < 0.3}
        sets = tuple(self._parameter_set(defaults) for _ in range(self.rng.choice([1, 1, 1, 2, 3, 5])))
        return only_used_parameters(Description(tuple(body), defaults, sets))

    def _parameters(self) -> list[Visible]:
        shapes = [INT, INT, STR, NUMBERS, ListS(ROW, 0, 3), ListS(NUMBERS, 0, 3), TupleS((INT, NUMBERS)), ROW]
        for number in range(self.rng.randint(0, 3)):
            self.parameters[f"p{number}"] = self.rng.choice(shapes)
        return [Visible(Param(name), shape) for name, shape in self.parameters.items()]

    def _parameter_set(self, defaults: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self._value(shape)
            for name, shape in self.parameters.items()
            if name not in defaults or self.rng.random() < 0.5
        }

    def _value(self, shape: Any) -> Any:
        match shape:
            case ListS(element=element, least=least, most=most):
                return [self._value(element) for _ in range(self.rng.randint(least, most))]
            case TupleS(items=items):
                return tuple(map(self._value, items))
            case DictS(items=items):
                return {key: self._value(item) for key, item in items}
        return self.rng.choice(["", "x", "naïve", "a|b"]) if shape == STR else self.rng.randint(-9, 30)

    def _name(self, prefix: str) -> str:
        self.count += 1
        if self.options.odd_names and self.rng.random() < 0.05:
            name = self.rng.choice(ODD).format(self.count)
            if name not in self.odd_used:
                self.odd_used.add(name)
                return name
        return f"{prefix}{self.count}"

    # Statements.

    def _block(self, visible: list[Visible], depth: int, frames: int, budget: int) -> list[Any]:
        """Make the statements of a block; what it defines is appended to `visible`."""
        body: list[Any] = []
        budget = min(budget, self.left)
        end = self.left - budget
        while self.left > end:
            draw = self.rng.random()
            if draw < 0.15 and self.options.loops and depth < 3:
                body += self._loop(visible, depth, frames)
            elif draw < 0.27 and self.options.branches:
                body.append(self._branch(visible, depth, frames))
            elif draw < 0.32 and self.options.branches:
                body.append(self._chosen(visible))
            elif draw < 0.45:
                body.append(self._yield(visible))
            else:
                body.append(self._call(visible))
        if self.rng.random() < 0.9 or depth == 0:
            body.append(self._yield(visible))
        return body

    def _call(self, visible: list[Visible]) -> Call:
        self.left -= 1
        makers = [self._add, self._add, self._combine, self._mix, self._mix, self._pair, self._record, self._numbers]
        makers += [self._stream, self._table, self._total, self._concat, self._identity]
        if self.options.failures:
            makers += [self._fail_if] * 4
        operation, arguments, shape = self.rng.choice(makers)(visible)
        call = Call(self._name("n"), operation, tuple(arguments.items()), self._site(operation), self._after(visible))
        visible.append(Visible(Ref(call.id), shape, call.id))
        return call

    def _site(self, operation: str) -> str | tuple[str, ...] | None:
        offering = SITES[operation]
        draw = self.rng.random()
        if draw < 0.5:
            return self.rng.choice(offering)
        if draw < 0.65:
            return tuple(self.rng.sample(offering, self.rng.randint(1, len(offering))))
        return None

    def _after(self, visible: list[Visible]) -> tuple[str, ...]:
        known = [item.statement for item in self._open(visible) if item.statement]
        if not known or self.rng.random() < 0.9:
            return ()
        return tuple(self.rng.sample(known, min(len(known), self.rng.randint(1, 2))))

    def _yield(self, visible: list[Visible]) -> Yield:
        self.places += 1
        odd = self.options.odd_names and self.rng.random() < 0.05
        place = f"{self.rng.choice(['class', 'self', 'a-b', 'ö', ''])} {self.places}" if odd else f"y{self.places}"
        whole = [item for item in self._open(visible) if not isinstance(item.expression, Param)]
        value = self._recent(whole).expression if whole and self.rng.random() < 0.8 else self._any(visible)[0]
        return Yield(place, value)

    def _loop(self, visible: list[Visible], depth: int, frames: int) -> list[Any]:
        sequence, shape = self._sequence(visible, max(1, self.options.frames // frames))
        loop = self._name("loop")
        inner = [*visible, Visible(Ref(loop), shape.element), Visible(Index(loop), INT)]
        body = self._block(inner, depth + 1, frames * max(1, shape.most), self.rng.randint(1, 8))
        gathers = tuple(
            self._gather(self._joining(inner), visible, shape) for _ in range(self.rng.choice([0, 1, 1, 2]))
        )
        window = self.rng.choice([None, 1, 1, 2, 3, 4, 5])
        return [Loop(loop, sequence, window, tuple(body), gathers)]

    def _gather(self, inner: list[Visible], visible: list[Visible], shape: ListS) -> Gather:
        name, inside = self._name("g"), self.rng.random() < 0.3
        incomplete = self.options.branches or self.options.failures
        if self.rng.random() < 0.5:
            value, element = self._any(inner)
            least = 0 if incomplete else shape.least
            visible.append(Visible(Ref(name), ListS(element, least, shape.most), name))
            return Gather(name, value, inside=inside)
        operation = self.rng.choice(["calc.Combine", "calc.Combine", "calc.Add"])
        may_be_empty = incomplete or shape.least == 0
        initial = self.rng.randint(0, 9) if may_be_empty or self.rng.random() < 0.5 else None
        visible.append(Visible(Ref(name), INT, name))
        site = self.rng.choice("abcd") if self.rng.random() < 0.3 else None
        return Gather(name, self._int(inner), operation, initial, site, inside)

    def _sequence(self, visible: list[Visible], most: int) -> tuple[Any, ListS]:
        """Make a sequence of at most `most` elements."""
        found = self._find(visible, lambda shape: isinstance(shape, ListS) and shape.most <= most)
        if found and self.rng.random() < 0.75:
            chosen = self._recent(found)
            return chosen.expression, chosen.shape
        length = self.rng.randint(0, min(4, most))
        draw = self.rng.random()
        if draw < 0.4:
            items = tuple(Const(self.rng.randint(0, 9)) for _ in range(length))
            return Const([item.value for item in items]), ListS(INT, length, length)
        if draw < 0.6:
            return Const(tuple(self._value(ROW) for _ in range(length))), ListS(ROW, length, length)
        kind = self.rng.choice([ListE, TupleE])
        return kind(tuple(self._int(visible) for _ in range(length))), ListS(INT, length, length)

    def _branch(self, visible: list[Visible], depth: int, frames: int) -> Branch:
        condition = self._condition(visible)
        then_visible, else_visible = list(visible), list(visible)
        then = self._block(then_visible, depth, frames, self.rng.randint(1, 4))
        otherwise = None
        if self.rng.random() < 0.6:
            otherwise = tuple(self._block(else_visible, depth, frames, self.rng.randint(1, 4)))
        known = len(visible)
        then_new, else_new = then_visible[known:], else_visible[known:]
        # What is hidden deeper inside may be absent also where this branch ran.
        sides = [[item for item in side if not item.hidden] for side in (then_new, else_new)]
        visible += [
            replace(item, hidden=True, branch=None if item.hidden else (condition, *sides))
            for item in then_new + else_new
        ]
        return Branch(condition, tuple(then), otherwise)

    def _chosen(self, visible: list[Visible]) -> Chosen:
        # An operation would not be drawn for ever, so this counts as one.
        self.left -= 1
        name = self._name("c")
        # Mostly what it is for, joining the two sides of an If; else it may choose what is not there, and fail.
        branches = [item.branch for item in visible if item.branch and item.statement]
        if branches and self.rng.random() < 0.7:
            condition, then, otherwise = self.rng.choice(branches)
            chosen = Chosen(name, condition, self._int([*visible, *then]), self._int([*visible, *otherwise]))
        else:
            both = self._joining(visible) if self.options.failures else visible
            chosen = Chosen(name, self._condition(visible), self._int(both), self._int(both))
        visible.append(Visible(Ref(name), INT, name))
        return chosen

    def _condition(self, visible: list[Visible], depth: int = 0) -> Any:
        draw = self.rng.random()
        if depth < 2 and draw < 0.2:
            operands = tuple(self._condition(visible, depth + 1) for _ in range(self.rng.randint(2, 3)))
            return Logic(self.rng.choice(["and", "or"]), operands)
        if depth < 2 and draw < 0.3:
            return Logic("not", (self._condition(visible, depth + 1),))
        found = self._find(visible, lambda shape: shape == INT)
        if not found:
            return Compare("==", Const(1), Const(1)) if self.rng.random() < 0.5 else Compare("<", Const(2), Const(1))
        operator = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        right = Const(self.rng.choice([0, 1, 5, 40, 1000])) if self.rng.random() < 0.6 else self._int(visible)
        return Compare(operator, self._recent(found).expression, right)

    # Operations: name, arguments, shape of the result.

    def _add(self, visible: list[Visible]) -> Any:
        return "calc.Add", {"a": self._int(visible), "b": self._int(visible)}, INT

    def _combine(self, visible: list[Visible]) -> Any:
        return "calc.Combine", {"left": self._int(visible), "right": self._int(visible)}, INT

    def _mix(self, visible: list[Visible]) -> Any:
        return "calc.Mix", {"values": self._structure(visible, 0)[0]}, INT

    def _pair(self, visible: list[Visible]) -> Any:
        value, shape = self._any(visible)
        return "calc.Pair", {"x": value}, TupleS((shape, INT))

    def _record(self, visible: list[Visible]) -> Any:
        value, shape = self._any(visible)
        deep = DictS((("pair", TupleS((INT, ListS(INT, 2, 2)))),))
        result = DictS((("value", shape), ("n", INT), ("deep", deep), (7, STR)))
        return "calc.Record", {"x": value, "n": self._int(visible)}, result

    def _numbers(self, visible: list[Visible]) -> Any:
        return "calc.Numbers", {"n": self._int(visible)}, NUMBERS

    def _stream(self, visible: list[Visible]) -> Any:
        return "calc.Stream", {"n": self._int(visible)}, ListS(INT, 0, 4)

    def _table(self, visible: list[Visible]) -> Any:
        return "calc.Table", {"n": self._int(visible)}, ListS(ROW, 1, 3)

    def _total(self, visible: list[Visible]) -> Any:
        found = self._find(visible, lambda shape: isinstance(shape, ListS) and shape.element == INT)
        if found and self.rng.random() < 0.7:
            return "calc.Total", {"items": self._recent(found).expression}, INT
        items = tuple(self._int(visible) for _ in range(self.rng.randint(0, 4)))
        return "calc.Total", {"items": ListE(items)}, INT

    def _concat(self, visible: list[Visible]) -> Any:
        items = tuple(self._any(visible)[0] for _ in range(self.rng.randint(0, 4)))
        return "calc.Concat", {"parts": ListE(items)}, STR

    def _identity(self, visible: list[Visible]) -> Any:
        value, shape = self._structure(visible, 0)
        return "calc.Identity", {"x": value}, shape

    def _fail_if(self, visible: list[Visible]) -> Any:
        return "calc.FailIf", {"x": self._int(visible), "modulus": Const(self.rng.randint(2, 5))}, INT

    # Expressions.

    def _find(self, visible: list[Visible], fits: Callable[[Any], bool]) -> list[Visible]:
        """List what can be referred to, parts of values too."""
        found = []
        for item in self._open(visible):
            for path, shape in parts(item.shape):
                if fits(shape):
                    found.append(Visible(_select(item.expression, path), shape, item.statement))
        return found

    def _open(self, visible: list[Visible]) -> list[Visible]:
        return [item for item in visible if not item.hidden]

    def _joining(self, visible: list[Visible]) -> list[Visible]:
        """Give what Choose, collect and reduce see: also what is inside branches that have ended."""
        return [replace(item, hidden=False, branch=None) for item in visible]

    def _recent(self, found: list[Visible]) -> Visible:
        return self.rng.choice(found[-8:] if self.rng.random() < 0.6 else found)

    def _int(self, visible: list[Visible]) -> Any:
        found = self._find(visible, lambda shape: shape == INT)
        if found and self.rng.random() < 0.85:
            return self._recent(found).expression
        return Const(self.rng.randint(-5, 20))

    def _any(self, visible: list[Visible]) -> tuple[Any, Any]:
        """Make an expression of some value that is not too large."""
        if self.rng.random() < 0.25:
            return self._structure(visible, 1)
        found = self._find(visible, lambda shape: weight(shape) <= 40)
        if found and self.rng.random() < 0.9:
            chosen = self._recent(found)
            return chosen.expression, chosen.shape
        return Const(self._constant()), OPAQUE

    def _structure(self, visible: list[Visible], depth: int) -> tuple[Any, Any]:
        """Make a list, tuple or dictionary with references inside, at any depth."""
        pairs = [self._structure_item(visible, depth) for _ in range(self.rng.randint(0, 3))]
        items, shapes = tuple(item for item, _ in pairs), tuple(shape for _, shape in pairs)
        if sum(map(weight, shapes)) > 60:
            return Const(self._constant()), OPAQUE
        match self.rng.randint(0, 3):
            case 0:
                return ListE(items), TupleS(shapes)
            case 1:
                return TupleE(items), TupleS(shapes)
            case 2:
                keys = self.rng.sample(["a", "b", "class", 0, 5, (1, 2), None, 2.5], len(items))
                entries = tuple((Const(key), item) for key, item in zip(keys, items, strict=True))
                return DictE(entries), DictS(tuple(zip(keys, shapes, strict=True)))
        return Const(self._constant()), OPAQUE

    def _structure_item(self, visible: list[Visible], depth: int) -> tuple[Any, Any]:
        return self._structure(visible, depth + 1) if depth < 3 and self.rng.random() < 0.3 else self._any(visible)

    def _constant(self, depth: int = 0) -> Any:
        plain = [0, 1, -1, 2**40, True, False, None, 0.0, -2.5, 1e300, "", "text", b"\x00\xff", "ø"]
        draw = self.rng.random()
        if depth > 2 or draw < 0.6:
            return self.rng.choice(plain)
        items = [self._constant(depth + 1) for _ in range(self.rng.randint(0, 3))]
        if draw < 0.75:
            return items
        if draw < 0.9:
            return tuple(items)
        return dict(zip(self.rng.sample(["k", 1, "1", (0,), 1.5], len(items)), items, strict=True))


def _select(expression: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return expression
    kind = type(expression)
    return kind(expression.name if kind is Param else expression.id, (*expression.path, *path))
