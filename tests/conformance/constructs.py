"""Every construct of the language as a small pipeline, and each of the blocks inside each other."""

from __future__ import annotations

from collections.abc import Callable
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
    Sub,
    SubPipeline,
    TupleE,
    Yield,
)

X = Param("x")


def call(name: str, operation: str, **arguments: Any) -> Call:
    """Write a call of an operation; what is no expression is a constant."""
    given = tuple((key, _expression(value)) for key, value in arguments.items())
    return Call(name, f"calc.{operation}", given)


def at(statement: Call, site: str | tuple[str, ...] | None = None, **options: Any) -> Call:
    """Give a call options."""
    return Call(statement.id, statement.operation, statement.arguments, site, **options)


def _expression(value: Any) -> Any:
    return value if hasattr(value, "__dataclass_fields__") else Const(value)


def out(*names: str) -> tuple[Yield, ...]:
    """Yield statements under their own names."""
    return tuple(Yield(name, Ref(name)) for name in names)


def pipeline(*body: Any, sets: tuple[dict[str, Any], ...] = ({"x": 2}, {"x": 5}), **defaults: Any) -> Description:
    """Write a pipeline; the parameter `x` is given unless it is not used."""
    used = "Param(name='x'" in repr(body)
    return Description(tuple(body), defaults, sets if used else ({},))


def over(sequence: Any) -> Description:
    """Write a loop over a sequence that yields and collects what it has."""
    value = ListE((Index("i"), Ref("i")))
    mix = call("m", "Mix", values=value)
    loop = Loop("i", sequence, 2, (mix, Yield("each", value)), (Gather("g", Ref("m")), Gather("r", Ref("i"))))
    return pipeline(loop, *out("g", "r"))


def produced(operation: str) -> Description:
    """Write a loop over what an operation gives."""
    made = call("s", operation, n=X)
    return pipeline(made, *over(Ref("s")).body)


def tolerant(on_error: str, *, inner: str | None = None) -> Description:
    """Write a loop of which some iterations fail, with everything that may come out of it."""
    failing = call("f", "FailIf", x=Ref("i"), modulus=X)
    double = call("d", "Combine", left=Ref("f"), right=Index("i"))
    body: tuple[Any, ...] = (failing, double, Yield("element", Ref("i")), Yield("double", Ref("d")))
    if inner is not None:
        deep = call("n", "FailIf", x=Ref("j"), modulus=4)
        loop = Loop("j", ListE((Ref("i"), Ref("d"))), None, (deep,), (Gather("deep", Ref("n")),), on_error=inner)
        body = (*body, loop, Yield("deep", Ref("deep")))
    gathers = (
        Gather("all", Ref("d")),
        Gather("elements", Ref("i")),
        Gather("sum", Ref("d"), "calc.Combine", 1),
        *((Gather("lists", Ref("deep")),) if inner else ()),
    )
    ended = at(call("behind", "Add", a=1, b=1), after=("i",))
    mixed = call("mixed", "Mix", values=Ref("all"))
    names = ("all", "elements", "sum", "behind", "mixed", *(("lists",) if inner else ()))
    return pipeline(Loop("i", Const([1, 2, 3, 4, 5]), 2, body, gathers, on_error), ended, mixed, *out(*names))


def stream_takers(source: Call) -> Description:
    """Write a stream that is taken in every way at several sites."""
    takers: list[Any] = [source, Yield("stream", Ref("s")), Yield("list", ListE((Ref("s"),)))]
    for site in "abcd":
        takers.append(at(call(f"total {site}", "Total", items=Ref("s")), site))
        takers.append(Loop(f"loop {site}", Ref("s"), 1, _stream_body(site), (Gather(f"got {site}", Ref(f"e{site}")),)))
    for site in "bcd":
        takers.append(at(call(f"running {site}", "Running", items=Ref("s")), site))
        takers.append(Yield(f"running {site}", Ref(f"running {site}")))
    again = at(call("again", "Running", items=Ref("running b")), "d")
    inside = Loop("k", Const([0, 1]), None, (Yield("inside", Ref("s")),))
    names = [f"{what} {site}" for what in ("total", "got") for site in "abcd"]
    return pipeline(*takers, again, inside, Yield("again", Ref("again")), *out(*names))


def _stream_body(site: str) -> tuple[Any, ...]:
    return (at(call(f"e{site}", "Add", a=Ref(f"loop {site}"), b=1), site), Yield(f"item {site}", Ref(f"e{site}")))


def cached(key: Any, *, name: str = "c", site: Any = None, value: Any = None, modulus: int = 0) -> Cached:
    """Write a block that computes something from `x`, and fails for some values of it if there is a modulus."""
    compute = call(f"{name}1", "Combine", left=X, right=7)
    body: tuple[Any, ...] = (compute,)
    if modulus:
        body = (compute, call(f"{name}2", "FailIf", x=X, modulus=modulus))
    stored = Ref(body[-1].id) if value is None else value
    return Cached(name, _expression(key), (*body, Yield(f"computed {name}", Ref(body[0].id))), stored, site)


SETS = ({"x": 2}, {"x": 5}, {"x": 2}, {"x": 2})
DOUBLE = SubPipeline((call("d", "Add", a=Param("n"), b=Param("n")), Yield("out", Ref("d"))), (("n", 21),))
LOOPING = SubPipeline(
    (
        call("numbers", "Numbers", n=Param("n")),
        Loop(
            "i", Ref("numbers"), None, (call("d", "Combine", left=Ref("i"), right=Param("n")), Yield("all", Ref("d")))
        ),
        Loop("j", Const([1, 2]), None, (Loop("k", Ref("numbers"), 1, (Yield("deep", ListE((Ref("j"), Ref("k")))),)),)),
        Yield("two", Ref("numbers")),
        Yield("two", Param("n")),
    )
)


def unsteady(times: int, retries: int) -> Call:
    """Write an operation that fails some times."""
    key = ListE((Const(f"unsteady {times} {retries}"), X))
    made = call("u", "Unsteady", key=key, x=X, times=times, attempts=retries + 1)
    return at(made, retries=retries)


def _sub(name: str, which: SubPipeline, *places: str, **arguments: Any) -> Sub:
    given = tuple((key, _expression(value)) for key, value in arguments.items())
    return Sub(name, which, given, tuple((place, f"{name} {place}") for place in places))


THREE = Compare(">", X, Const(3))

CONSTRUCTS: dict[str, Callable[[], Description]] = {
    "operation": lambda: pipeline(call("y", "Add", a=X, b=1), *out("y")),
    "site": lambda: pipeline(at(call("y", "Add", a=X, b=1), "c"), *out("y")),
    "BestOf": lambda: pipeline(at(call("y", "Add", a=X, b=1), ("b", "d")), *out("y")),
    "references in structures": lambda: pipeline(
        call("n", "Add", a=X, b=1),
        call("y", "Mix", values=DictE(((Const("k"), TupleE((Ref("n"), ListE((X,))))), (Const(0), Ref("n"))))),
        *out("y"),
    ),
    "selectors": lambda: pipeline(
        call("t", "Table", n=X),
        Yield("y", Ref("t", (Item(0), Item("at"), Item(1)))),
        call("z", "Total", items=Ref("t", (Item(-1), Item("items")))),
        *out("z"),
    ),
    "yield": lambda: pipeline(Yield("constant", Const((1, {"a": b"b"}))), Yield("parameter", X)),
    "PlaceParam": lambda: pipeline(Yield("y", ListE((X, Param("z")))), z=(7, None)),
    "retries that suffice": lambda: pipeline(unsteady(1, 1), *out("u")),
    "retries that do not": lambda: pipeline(unsteady(2, 1), *out("u")),
    "timeout": lambda: pipeline(at(call("y", "Add", a=X, b=1), timeout=60.0), *out("y")),
    "after a statement": lambda: pipeline(
        call("f", "FailIf", x=X, modulus=5), at(call("y", "Add", a=1, b=1), after=("f",)), *out("y")
    ),
    "after If": lambda: pipeline(
        Branch(THREE, (call("f", "FailIf", x=X, modulus=5),), (call("g", "Add", a=1, b=1),), "if"),
        at(call("y", "Add", a=1, b=1), after=("if",)),
        Yield("z", Const(1), ("if",)),
        *out("y"),
    ),
    "after ForEach": lambda: pipeline(
        Loop("i", Const([1, 2, 3]), None, (call("f", "FailIf", x=Ref("i"), modulus=X),)),
        at(call("y", "Add", a=1, b=1), after=("i",)),
        Loop("j", Const([1, 2]), None, (Yield("j", Ref("j")),), after=("i",)),
        Branch(THREE, (Yield("branch", Const(1)),), None, None, ("i",)),
        Cached("c", X, (), Const("kept"), None, ("i",)),
        *out("y", "c"),
    ),
    "after ForEach in ForEach and If": lambda: pipeline(
        Loop(
            "i",
            Const([4, 6]),
            1,
            (
                Loop("j", Const([1, 2]), None, (Branch(THREE, (call("f", "FailIf", x=Ref("i"), modulus=3),)),)),
                at(call("y", "Add", a=Ref("i"), b=1), after=("j",)),
                Yield("y", Ref("y")),
            ),
        )
    ),
    "If": lambda: pipeline(Branch(THREE, (call("a", "Add", a=X, b=1), *out("a")))),
    "Else": lambda: pipeline(Branch(THREE, (Yield("y", Const("then")),), (call("b", "Add", a=X, b=9), *out("b")))),
    "And Or Not": lambda: pipeline(
        Branch(Logic("and", (THREE, Logic("not", (Compare("==", X, Const(6)),)))), (Yield("and", X),)),
        Branch(Logic("or", (THREE, Compare("<=", X, Const(2)))), (Yield("or", X),)),
    ),
    "If of a failed value": lambda: pipeline(
        call("f", "FailIf", x=X, modulus=5),
        Branch(Compare("<", Ref("f"), Const(3)), (Yield("then", Const(1)),), (Yield("else", Const(2)),)),
    ),
    "Choose": lambda: pipeline(
        Branch(THREE, (call("a", "Add", a=X, b=1),), (call("b", "Add", a=X, b=100),)),
        Chosen("y", THREE, Ref("a"), Ref("b")),
        call("z", "Add", a=Ref("y"), b=1),
        *out("y", "z"),
    ),
    "Choose of what was skipped": lambda: pipeline(
        Branch(THREE, (call("a", "Add", a=X, b=1),)), Chosen("y", Compare("<", X, Const(9)), Ref("a"), X), *out("y")
    ),
    "ForEach over a list": lambda: over(ListE((X, Const(7), X))),
    "ForEach over a tuple": lambda: over(Const((1, "two", None))),
    "ForEach over a dict": lambda: over(Const({"a": 1, "b": [2], 3: None})),
    "ForEach over a range": lambda: over(Const(range(2, 9, 3))),
    "ForEach over an array": lambda: over(Built("array", 3)),
    "ForEach over a matrix": lambda: over(Built("grid", 3)),
    "ForEach over an Arrow table": lambda: over(Built("columns", 3)),
    "ForEach over a parameter": lambda: Description(
        over(Param("p")).body, {}, tuple({"p": item} for item in ([1, 2], (), {"k": (1,)}, range(2)))
    ),
    "ForEach over a parameter that is an array or table": lambda: Description(
        over(Param("p")).body, {}, tuple({"p": item} for item in (calc_plain.grid(2), calc_plain.columns(3)))
    ),
    "ForEach over nothing": lambda: over(Const([])),
    "ForEach over a made list": lambda: produced("Numbers"),
    "ForEach over a made dict": lambda: produced("Names"),
    "ForEach over a made range": lambda: produced("Span"),
    "ForEach over a made array": lambda: produced("Array"),
    "ForEach over a made matrix": lambda: produced("Grid"),
    "ForEach over a made Arrow table": lambda: produced("Columns"),
    "ForEach over a stream": lambda: produced("Stream"),
    "ForEach over elements": lambda: pipeline(
        call("t", "Table", n=X),
        Loop(
            "row",
            Ref("t"),
            2,
            (
                Loop("n", Ref("row", (Item("items"),)), 1, (Yield("n", ListE((Ref("n"), Ref("row"), Index("row")))),)),
                call("s", "Total", items=Ref("row", (Item("items"),))),
            ),
            (Gather("g", Ref("s"), inside=True),),
        ),
        *out("g"),
    ),
    "ForEach with index and window": lambda: pipeline(
        Loop("i", Const([3, 1, 2]), 1, (Yield("y", ListE((Ref("i"), Index("i"), X))),))
    ),
    "collect": lambda: pipeline(
        Loop(
            "i",
            Const([1, 2, 3, 4]),
            None,
            (Branch(Compare(">", Ref("i"), X), (call("a", "Add", a=Ref("i"), b=X),)),),
            (Gather("some", Ref("a")), Gather("all", TupleE((Ref("i"), X)), inside=True)),
        ),
        *out("some", "all"),
    ),
    "reduce": lambda: pipeline(
        Loop("i", Const([1, 2, 3, 4]), None, (), (Gather("r", Ref("i"), "calc.Combine", None, "b"),)), *out("r")
    ),
    "reduce with initial": lambda: pipeline(
        Loop("i", Const([1, 2, 3]), 1, (), (Gather("r", Ref("i"), "calc.Combine", 5),)),
        Loop("j", Const([]), 1, (), (Gather("s", Index("j"), "calc.Add", 5),)),
        *out("r", "s"),
    ),
    "reduce of nothing": lambda: pipeline(
        Loop("i", Const([]), None, (), (Gather("r", Index("i"), "calc.Add"),)), *out("r")
    ),
    'on_error="fail"': lambda: tolerant("fail"),
    'on_error="skip"': lambda: tolerant("skip"),
    'on_error="collect"': lambda: tolerant("collect"),
    'on_error="fail" in "skip"': lambda: tolerant("skip", inner="fail"),
    'on_error="skip" in "fail"': lambda: tolerant("fail", inner="skip"),
    'on_error="collect" in "collect"': lambda: tolerant("collect", inner="collect"),
    "stream": lambda: stream_takers(call("s", "Stream", n=X)),
    "stream of a generator": lambda: stream_takers(at(call("s", "Stream", n=X), "a")),
    "stream of an async generator": lambda: stream_takers(at(call("s", "Stream", n=X), "b")),
    "empty stream": lambda: stream_takers(call("s", "Stream", n=Const(2))),
    "stream that breaks": lambda: stream_takers(call("s", "Breaking", n=X)),
    "stream of a generator that breaks": lambda: stream_takers(at(call("s", "Breaking", n=X), "c")),
    "stream of an async generator that breaks": lambda: stream_takers(at(call("s", "Breaking", n=X), "b")),
    "stream that breaks at once": lambda: stream_takers(call("s", "Breaking", n=Const(5))),
    "stream that nobody takes": lambda: pipeline(
        call("s", "Breaking", n=X), Branch(Compare("==", X, Const(9)), (Yield("s", Ref("s")),)), Yield("x", X)
    ),
    "after a stream that nobody takes": lambda: pipeline(
        call("s", "Breaking", n=X),
        Branch(Compare("==", X, Const(9)), (Yield("s", Ref("s")),)),
        at(call("y", "Add", a=X, b=1), after=("s",)),
        *out("y"),
        sets=({"x": 1}, {"x": 3}, {"x": 9}),
    ),
    "stream that breaks in a tolerant loop": lambda: pipeline(
        Loop(
            "i",
            Const([2, 3, 4]),
            None,
            (
                call("s", "Breaking", n=Ref("i")),
                Yield("s", Ref("s")),
                Loop("j", Ref("s"), 1, (Yield("j", Ref("j")),), (Gather("h", Ref("j")),)),
            ),
            (Gather("g", Ref("s")), Gather("k", Ref("h"))),
            "collect",
        ),
        *out("g", "k"),
    ),
    "TryFromCache": lambda: pipeline(cached("key"), *out("c"), sets=({"x": 2},)),
    "TryFromCache in parameter sets": lambda: pipeline(cached(ListE((Const(1), X))), *out("c"), sets=SETS),
    "TryFromCache at a site": lambda: pipeline(
        cached(X, site="b"), cached(X, name="e", site=("app", "d")), *out("c", "e"), sets=SETS
    ),
    "TryFromCache with equal keys": lambda: pipeline(
        cached(X, site="b"), cached(X, name="e", site="b"), *out("c", "e"), sets=SETS
    ),
    "TryFromCache of a failing block": lambda: pipeline(cached(X, modulus=2), *out("c"), sets=SETS),
    "TryFromCache of a failing key": lambda: pipeline(
        call("f", "FailIf", x=X, modulus=2), cached(Ref("f")), *out("c"), sets=SETS
    ),
    "TryFromCache beside a failure": lambda: pipeline(
        cached(X, modulus=2, value=Ref("c1")),
        cached(X, name="e", modulus=2, value=Ref("e1")),
        *out("c", "e"),
        sets=SETS,
    ),
    "sub-pipeline": lambda: pipeline(_sub("s", DOUBLE, "out", n=X), Yield("y", Ref("s out"))),
    "sub-pipeline with defaults": lambda: pipeline(_sub("s", DOUBLE, "out"), Yield("y", Ref("s out"))),
    "sub-pipeline called twice": lambda: pipeline(
        _sub("s", DOUBLE, "out", n=X), _sub("t", DOUBLE, "out", n=Ref("s out")), Yield("y", Ref("t out"))
    ),
    "sub-pipeline that yields in loops": lambda: pipeline(
        _sub("s", LOOPING, "all", "deep", "two", n=X),
        Loop("i", Ref("s all"), None, (Yield("each", Ref("i")),)),
        Yield("y", ListE((Ref("s all"), Ref("s deep"), Ref("s two")))),
        Yield("part", Ref("s two", (Item(1),))),
    ),
    "sub-pipeline in a sub-pipeline": lambda: pipeline(
        _sub(
            "s",
            SubPipeline((_sub("t", DOUBLE, "out", n=Param("m")), Yield("out", ListE((Ref("t out"), Param("m")))))),
            "out",
            m=X,
        ),
        Yield("y", Ref("s out", (Item(0),))),
    ),
    "sub-pipeline that yields a stream": lambda: pipeline(
        _sub("s", SubPipeline((call("t", "Stream", n=Param("m")), Yield("out", Ref("t")))), "out", m=X),
        Yield("y", Ref("s out")),
    ),
    "operation that fails": lambda: pipeline(
        call("f", "FailIf", x=X, modulus=5), call("y", "Add", a=Ref("f"), b=1), Yield("x", X), *out("f", "y")
    ),
    "operation that fails in a loop": lambda: pipeline(
        Loop(
            "i",
            Const([1, 2, 3, 4]),
            1,
            (call("f", "FailIf", x=Ref("i"), modulus=X), Yield("f", Ref("f"))),
            (Gather("g", Ref("f")), Gather("r", Ref("f"), "calc.Add", 0)),
        ),
        *out("g", "r"),
    ),
}
"""Constructs by the name under which the table has them."""


# Nestings

BLOCKS = ("If", "ForEach", "TryFromCache", "stream", "sub-pipeline")

VARIANTS = (("works", "fail"), ("fails", "fail"), ("fails", "skip"), ("fails", "collect"))
"""Whether the innermost operation fails for some values, and what the loops make of it."""

Inside = Callable[[str, Any], tuple[tuple[Any, ...], Any]]
"""Makes statements from a name for them and the expression of a number; gives them and the expression of another."""


def nested(blocks: tuple[str, ...], variant: tuple[str, str], *, yields: bool = True) -> Description:
    """Write blocks inside each other, the first one outermost, around one operation."""
    inside: Inside = _leaf(variant[0])
    for number, block in reversed(list(enumerate(blocks))):
        # A sub-pipeline around may not yield from a conditional block.
        quiet = not yields or "sub-pipeline" in blocks[: number + 1]
        inside = _WRAPPERS[block](f"{number}", inside, variant[1], quiet)
    statements, value = inside("in", X)
    return pipeline(*statements, Yield("y", value), sets=({"x": 4}, {"x": 2}, {"x": 5}, {"x": 4}))


def _leaf(variant: str) -> Inside:
    def make(name: str, x: Any) -> tuple[tuple[Any, ...], Any]:
        combine = call(f"{name}combine", "Combine", left=x, right=3)
        if variant == "works":
            return (combine,), Ref(combine.id)
        failing = call(f"{name}fail", "FailIf", x=x, modulus=4)
        return (combine, failing), Ref(failing.id)

    return make


def _in_if(level: str, inside: Inside, on_error: str, quiet: bool) -> Inside:
    def make(name: str, x: Any) -> tuple[tuple[Any, ...], Any]:
        condition = Compare(">", x, Const(3))
        then, value = inside(f"{name}{level}", x)
        other = call(f"{name}{level}else", "Add", a=x, b=1000)
        seen = () if quiet else (Yield(f"{name}{level}then", value),)
        chosen = Chosen(f"{name}{level}choose", condition, value, Ref(other.id))
        return (Branch(condition, (*then, *seen), (other,)), chosen), Ref(chosen.id)

    return make


def _in_loop(level: str, inside: Inside, on_error: str, quiet: bool) -> Inside:
    def make(name: str, x: Any) -> tuple[tuple[Any, ...], Any]:
        return _looped(f"{name}{level}", ListE((x, Const(4), Const(1), x)), inside, on_error, quiet)

    return make


def _looped(name: str, sequence: Any, inside: Inside, on_error: str, quiet: bool) -> tuple[tuple[Any, ...], Any]:
    body, value = inside(name, Ref(f"{name}loop"))
    seen = () if quiet else (Yield(f"{name}each", value),)
    gather = Gather(f"{name}all", value)
    mix = call(f"{name}mix", "Mix", values=Ref(gather.id))
    return (Loop(f"{name}loop", sequence, 2, (*body, *seen), (gather,), on_error), mix), Ref(mix.id)


def _in_cache(level: str, inside: Inside, on_error: str, quiet: bool) -> Inside:
    def make(name: str, x: Any) -> tuple[tuple[Any, ...], Any]:
        body, value = inside(f"{name}{level}", x)
        seen = () if quiet else (Yield(f"{name}{level}computed", value),)
        cached = Cached(f"{name}{level}cached", ListE((Const(level), x)), (*body, *seen), value)
        return (cached,), Ref(cached.id)

    return make


def _in_stream(level: str, inside: Inside, on_error: str, quiet: bool) -> Inside:
    """Let a stream be taken item by item, by a loop with something in it, and as a list."""

    def make(name: str, x: Any) -> tuple[tuple[Any, ...], Any]:
        stream = call(f"{name}{level}stream", "Stream", n=x)
        loop, value = _looped(f"{name}{level}", Ref(stream.id), inside, on_error, quiet)
        total = call(f"{name}{level}total", "Total", items=Ref(stream.id))
        both = call(f"{name}{level}both", "Combine", left=value, right=Ref(total.id))
        seen = () if quiet else (Yield(f"{name}{level}items", Ref(stream.id)),)
        return (stream, *loop, total, *seen, both), Ref(both.id)

    return make


def _in_sub(level: str, inside: Inside, on_error: str, quiet: bool) -> Inside:
    def make(name: str, x: Any) -> tuple[tuple[Any, ...], Any]:
        body, value = inside(f"{name}{level}", Param("n"))
        sub = SubPipeline((*body, Yield("out", value)))
        first, second = (f"{name}{level}first", f"{name}{level}second")
        calls = tuple(Sub(each, sub, (("n", x),), (("out", each),)) for each in (first, second))
        joined = call(f"{name}{level}joined", "Combine", left=Ref(first), right=Ref(second))
        return (*calls, joined), Ref(joined.id)

    return make


_WRAPPERS = {
    "If": _in_if,
    "ForEach": _in_loop,
    "TryFromCache": _in_cache,
    "stream": _in_stream,
    "sub-pipeline": _in_sub,
}
