"""Random pipelines of the whole language: caches, sub-pipelines, tolerant loops, breaking streams and all the rest.

Two things make their outcome certain: the key of a cache holds everything that the block uses, so that equal keys
belong to equal values; and an operation that fails some times and then works is told who it is, so that calls going on
at the same time do not count each other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .descriptions import (
    Branch,
    Built,
    Cached,
    Call,
    Const,
    Description,
    Gather,
    Index,
    ListE,
    Loop,
    Param,
    Ref,
    Sub,
    SubPipeline,
    Yield,
    defined,
    only_used_parameters,
    parameters_of,
    walk,
)
from .expansion import renamed
from .generator import INT, NUMBERS, OPAQUE, STR, DictS, ListS, Maker, Options, TupleS, Visible

SET_NUMBER = Param("set number")
"""Tells parameter sets from each other."""


@dataclass(frozen=True)
class Sequence:
    """Shape of what a loop goes over, and nothing else takes parts of."""

    element: Any
    least: int
    most: int


SEQUENCES = {
    "calc.Array": ("array", Sequence(OPAQUE, 0, 4)),
    "calc.Grid": ("grid", Sequence(Sequence(OPAQUE, 2, 2), 0, 3)),
    "calc.Columns": ("columns", Sequence(DictS((("k", INT), ("name", STR))), 0, 3)),
    "calc.Names": ("names", Sequence(TupleS((STR, INT)), 1, 3)),
    "calc.Span": ("span", Sequence(INT, 0, 4)),
}
"""Operations that give odd sequences: the plain function, and what it gives."""


@dataclass(frozen=True)
class Template:
    """A TryFromCache that may be written again, with the same key, where all that it uses is known.

    Attributes:
        needs: What its key holds.
    """

    cached: Cached
    needs: tuple[Any, ...]
    shape: Any


class WholeMaker(Maker):
    """Makes one pipeline.

    Attributes:
        here: Expressions that together tell one frame from all others.
        waitable: Ids of loops and Ifs that the statements to come may be `after`.
        in_cache: How many blocks of TryFromCache are around.
        quiet: How many blocks are around in which a sub-pipeline must not yield.
        yielded: Inside a sub-pipeline, place and shape of its yields; None outside.
        around: Inside a sub-pipeline, how many iterations its loops around have at most.
    """

    def __init__(self, rng: random.Random, options: Options, seed: int) -> None:
        super().__init__(rng, options)
        self.here: tuple[Any, ...] = (Const(seed), SET_NUMBER)
        self.waitable: list[str] = []
        self.in_cache = 0
        self.quiet = 0
        self.yielded: list[tuple[str, Any]] | None = None
        self.around: tuple[int, ...] = ()
        self.subs = 0
        self.templates: list[Template] = []
        self.known_subs: list[tuple[SubPipeline, list[tuple[str, Any]], list[tuple[str, Any]]]] = []

    def make(self) -> Description:
        description = super().make()
        body = description.body
        if "set number" not in set(parameters_of(body)):
            return description
        sets = tuple({**given, "set number": number} for number, given in enumerate(description.parameter_sets))
        return only_used_parameters(replace(description, parameter_sets=sets))

    # Blocks

    def _block(self, visible: list[Visible], depth: int, frames: int, budget: int) -> list[Any]:
        body: list[Any] = []
        budget = min(budget, self.left)
        end = self.left - budget
        known = len(self.waitable)
        while self.left > end:
            body += self._statements(visible, depth, frames)
        if not self.quiet and (self.rng.random() < 0.9 or depth == 0):
            body.append(self._yield(visible))
        del self.waitable[known:]
        return body

    def _statements(self, visible: list[Visible], depth: int, frames: int) -> list[Any]:
        draw = self.rng.random()
        if draw < 0.15 and depth < 3:
            return self._loop(visible, depth, frames)
        if draw < 0.25:
            return [self._branch(visible, depth, frames)]
        if draw < 0.29:
            return [self._chosen(visible)]
        if draw < 0.39 and self.in_cache < 2:
            return [self._cached(visible, depth, frames)]
        if draw < 0.47 and self.subs < 2:
            return [self._sub(visible, depth, frames)]
        if draw < 0.58 and not self.quiet:
            return [self._yield(visible)]
        return [self._call(visible)]

    def _after(self, visible: list[Visible]) -> tuple[str, ...]:
        # What a block of TryFromCache makes must depend on its key alone.
        known = [item.statement for item in self._open(visible) if item.statement] + self.waitable * 3
        if not known or self.in_cache or self.rng.random() < 0.88:
            return ()
        return tuple(dict.fromkeys(self.rng.choices(known, k=self.rng.randint(1, 2))))

    def _yield(self, visible: list[Visible]) -> Yield:
        if self.yielded is None:
            return replace(super()._yield(visible), after=self._after(visible))
        self.places += 1
        again = self.yielded and self.rng.random() < 0.1
        place = self.rng.choice(self.yielded)[0] if again else f"y{self.places}"
        value, shape = self._any(visible)
        for most in reversed(self.around):
            shape = ListS(shape, 0, most)
        self.yielded.append((place, shape))
        return Yield(place, value)

    def _branch(self, visible: list[Visible], depth: int, frames: int) -> Branch:
        after = self._after(visible)
        self.quiet += self.yielded is not None
        branch = super()._branch(visible, depth, frames)
        self.quiet -= self.yielded is not None
        name = self._name("if") if self.rng.random() < 0.5 else None
        if name is not None:
            self.waitable.append(name)
        return replace(branch, id=name, after=after)

    def _loop(self, visible: list[Visible], depth: int, frames: int) -> list[Any]:
        after = self._after(visible)
        sequence, shape = self._sequence(visible, max(1, self.options.frames // frames))
        loop = self._name("loop")
        on_error = self.rng.choice(["fail", "fail", "fail", *(["skip", "collect"] if self.options.tolerant else [])])
        inner = [*visible, Visible(Ref(loop), shape.element), Visible(Index(loop), INT)]
        here, around = self.here, self.around
        self.here, self.around = (*here, Index(loop)), (*around, shape.most)
        body = self._block(inner, depth + 1, frames * max(1, shape.most), self.rng.randint(1, 8))
        self.here, self.around = here, around
        gathers = tuple(
            self._gathered(self._joining(inner), visible, shape, on_error) for _ in range(self.rng.choice([0, 1, 1, 2]))
        )
        window = self.rng.choice([None, 1, 1, 2, 3, 4, 5])
        self.waitable.append(loop)
        return [Loop(loop, sequence, window, tuple(body), gathers, on_error, after)]

    def _gathered(self, inner: list[Visible], visible: list[Visible], shape: Any, on_error: str) -> Gather:
        gather = self._gather(inner, visible, shape)
        if on_error == "collect" and gather.operation is None:  # Any of them may be an error.
            visible[-1] = replace(visible[-1], shape=ListS(OPAQUE, 0, shape.most))
        return gather

    def _sequence(self, visible: list[Visible], most: int) -> tuple[Any, Any]:
        draw = self.rng.random()
        if draw < 0.12:
            maker, shape = self.rng.choice(list(SEQUENCES.values()))
            if shape.most <= most:
                return Built(maker, self.rng.randint(0, 4)), shape
        if draw < 0.45:
            found = self._find(visible, lambda shape: isinstance(shape, Sequence | DictS) and _length(shape) <= most)
            if found:
                chosen = self._recent(found)
                return chosen.expression, _looped(chosen.shape)
        return super()._sequence(visible, most)

    # Caches

    def _cached(self, visible: list[Visible], depth: int, frames: int) -> Cached:
        self.left -= 1
        after = self._after(visible)
        there = {item.expression for item in self._open(visible)}
        fitting = [template for template in self.templates if there.issuperset(template.needs)]
        if fitting and self.rng.random() < 0.5:
            return self._cached_again(self.rng.choice(fitting), visible, after)
        name = self._name("cached")
        # What a Choose takes from a branch that has ended could not stand in the key.
        inner = self._open(visible)
        known = len(inner)
        self.in_cache += 1
        self.quiet += self.yielded is not None
        body = tuple(self._block(inner, depth, frames, self.rng.randint(1, 4)))
        self.quiet -= self.yielded is not None
        self.in_cache -= 1
        made = [item for item in inner[known:] if not item.hidden]
        chosen = self._recent(made) if made and self.rng.random() < 0.7 else None
        value, shape = (chosen.expression, chosen.shape) if chosen else self._any(inner)
        needs = tuple(_free(body, value))
        cached = Cached(name, ListE((Const(name), *needs)), body, value, self._cache_site(), after)
        visible.append(Visible(Ref(name), shape, name))
        operations = {statement.operation for statement in walk(body) if isinstance(statement, Call)}
        if "calc.Unsteady" not in operations and not any(isinstance(statement, Sub) for statement in walk(body)):
            self.templates.append(Template(cached, needs, shape))
        return cached

    def _cached_again(self, template: Template, visible: list[Visible], after: tuple[str, ...]) -> Cached:
        """Write a block with the key of another, and so the same value."""
        name = self._name("again")
        body, rewrite = renamed(template.cached.body, f"{name}.")
        value = rewrite(template.cached.value)
        visible.append(Visible(Ref(name), template.shape, name))
        return replace(template.cached, id=name, body=body, value=value, site=self._cache_site(), after=after)

    def _cache_site(self) -> str | tuple[str, ...] | None:
        return self.rng.choice([None, None, "a", "b", "c", "d", "app", ("a", "c"), ("d", "b")])

    # Sub-pipelines

    def _sub(self, visible: list[Visible], depth: int, frames: int) -> Sub:
        name = self._name("sub")
        here = ListE((Const(name), *self.here))
        if self.known_subs and self.rng.random() < 0.3:
            pipeline, parameters, yielded = self.rng.choice(self.known_subs)
            arguments = [(parameter, self._like(shape, visible)) for parameter, shape in parameters]
            if all(value is not None for _, value in arguments):
                self.left -= 1
                return self._sub_call(name, pipeline, [*arguments, ("here", here)], yielded, visible)
        parameters, arguments, defaults = [], [], []
        for _ in range(self.rng.randint(1, 3)):
            parameter = self._name("q")
            value, shape = (self._int(visible), INT) if self.rng.random() < 0.4 else self._any(visible)
            parameters.append((parameter, shape))
            if shape == INT and self.rng.random() < 0.3:
                defaults.append((parameter, self.rng.randint(0, 9)))
            if not defaults or defaults[-1][0] != parameter or self.rng.random() < 0.5:
                arguments.append((parameter, value))
        body, yielded = self._sub_body(parameters, depth, frames)
        used = set(parameters_of(body))
        pipeline = SubPipeline(body, tuple(pair for pair in defaults if pair[0] in used))
        self.known_subs.append((pipeline, parameters, yielded))
        return self._sub_call(name, pipeline, [*arguments, ("here", here)], yielded, visible)

    def _sub_body(
        self, parameters: list[tuple[str, Any]], depth: int, frames: int
    ) -> tuple[tuple[Any, ...], list[tuple[str, Any]]]:
        kept = self.here, self.waitable, self.quiet, self.yielded, self.around, self.templates
        self.here, self.waitable, self.quiet, self.yielded, self.around = (Param("here"),), [], 0, [], ()
        self.templates = []
        self.subs += 1
        inner = [Visible(Param(name), shape) for name, shape in parameters]
        body = self._block(inner, depth, frames, self.rng.randint(1, 6))
        if not self.yielded:
            body.append(self._yield(inner))
        yielded = self.yielded
        self.subs -= 1
        self.here, self.waitable, self.quiet, self.yielded, self.around, self.templates = kept
        return tuple(body), yielded

    def _sub_call(
        self,
        name: str,
        pipeline: SubPipeline,
        arguments: list[tuple[str, Any]],
        yielded: list[tuple[str, Any]],
        visible: list[Visible],
    ) -> Sub:
        used = set(parameters_of(pipeline.body))
        outputs = []
        for place in dict.fromkeys(place for place, _ in yielded):
            shapes = tuple(shape for other, shape in yielded if other == place)
            output = self._name("o")
            outputs.append((place, output))
            # An output may be a structure or a constant, which nothing can be after.
            visible.append(Visible(Ref(output), shapes[0] if len(shapes) == 1 else TupleS(shapes)))
        given = tuple((parameter, value) for parameter, value in arguments if parameter in used)
        return Sub(name, pipeline, given, tuple(outputs))

    def _like(self, shape: Any, visible: list[Visible]) -> Any:
        found = self._find(visible, lambda other: other == shape)
        return self._recent(found).expression if found else None

    # Operations

    def _call(self, visible: list[Visible]) -> Call:
        self.left -= 1
        makers = [self._add, self._combine, self._mix, self._pair, self._record, self._numbers, self._stream]
        makers += [self._table, self._total, self._concat, self._identity, self._odd_sequence, self._running]
        makers += [self._fail_if, self._fail_if, self._breaking, self._unsteady]
        operation, arguments, shape = self.rng.choice(makers)(visible)
        call = Call(self._name("n"), operation, tuple(arguments.items()), self._site(operation), self._after(visible))
        if operation == "calc.Unsteady":
            attempts, times = self.rng.randint(1, 3), self.rng.randint(0, 2)
            key = ListE((Const(call.id), *self.here))
            given = (("key", key), *call.arguments, ("times", Const(times)), ("attempts", Const(attempts)))
            call = replace(call, arguments=given, retries=attempts - 1)
        if self.rng.random() < 0.1:
            call = replace(call, timeout=60.0)
        visible.append(Visible(Ref(call.id), shape, call.id))
        return call

    def _odd_sequence(self, visible: list[Visible]) -> Any:
        operation = self.rng.choice(list(SEQUENCES))
        n = Const(self.rng.randint(0, 4)) if operation == "calc.Array" else self._int(visible)
        return operation, {"n": n}, SEQUENCES[operation][1]

    def _breaking(self, visible: list[Visible]) -> Any:
        return "calc.Breaking", {"n": self._int(visible)}, NUMBERS

    def _running(self, visible: list[Visible]) -> Any:
        found = self._find(visible, lambda shape: isinstance(shape, ListS) and shape.element == INT)
        if not found:
            return self._stream(visible)
        chosen = self._recent(found)
        return "calc.Running", {"items": chosen.expression}, chosen.shape

    def _unsteady(self, visible: list[Visible]) -> Any:
        return "calc.Unsteady", {"x": self._int(visible)}, INT


def _length(shape: Any) -> int:
    return len(shape.items) if isinstance(shape, DictS) else shape.most


def _looped(shape: Any) -> Any:
    """Give the shape of a sequence for a loop, which takes pairs from a dictionary."""
    if not isinstance(shape, DictS):
        return shape
    shapes = {item for _, item in shape.items}
    common = shapes.pop() if len(shapes) == 1 else OPAQUE
    return Sequence(TupleS((OPAQUE, common)), len(shape.items), len(shape.items))


def _free(body: tuple[Any, ...], value: Any) -> Iterator[Any]:
    """Iterate over what statements and a value use of what is around them: whole values, each once."""
    inside = {name for statement in walk(body) for name in (*defined(statement), getattr(statement, "id", None))}
    seen: set[Any] = set()
    for used in _used((body, value)):
        whole = used if isinstance(used, Index) else replace(used, path=())
        if whole not in seen and (isinstance(whole, Param) or whole.id not in inside):
            seen.add(whole)
            yield whole


def _used(thing: Any) -> Iterator[Any]:
    if isinstance(thing, Ref | Index | Param):
        yield thing
    elif isinstance(thing, tuple) and not isinstance(thing, str):
        for item in thing:
            yield from _used(item)
    elif hasattr(thing, "__dataclass_fields__") and not isinstance(thing, Const | Built | SubPipeline):
        for name in thing.__dataclass_fields__:
            yield from _used(getattr(thing, name))
