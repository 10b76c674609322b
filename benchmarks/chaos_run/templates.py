"""Pipelines that go well if they are left alone, each with its expected results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chaos_run import plain
from chaos_run.case import SITES, Draft
from dfmesh import Choose, Else, ForEach, If, Pipeline, PlaceParam, TryFromCache, Yield


def chain(d: Draft) -> None:
    """Operations one after the other at changing sites, some results on the way, several parameter sets."""
    xs = d.give_sets(6)
    length = d.random.randrange(1, 9)
    shown = [index == length - 1 or d.random.random() < 0.4 for index in range(length)]
    with d.case.pipeline:
        value: Any = PlaceParam("x")
        functions: list[Callable[[int], int]] = []
        for index in range(length):
            value, function = d.step(value, f"chain{index}")
            functions.append(function)
            if shown[index]:
                Yield(value, place=f"after {index}")
    for k, x in enumerate(xs):
        for index, function in enumerate(functions):
            x = function(x)
            if shown[index]:
                d.expect(f"after {index}", (k,), x)


def window_loop(d: Draft) -> None:
    """A loop with a window; its elements are yielded, collected and folded."""
    xs = d.give_sets(3)
    n, window = d.random.randrange(0, 40), d.random.choice([1, 2, 4, 16, None])
    with d.case.pipeline:
        with ForEach(list(range(n)), window=window) as item:
            value: Any = d.call("Affine", d.site(), x=item, a=1, b=PlaceParam("x"))
            functions = []
            for index in range(d.random.randrange(1, 4)):
                value, function = d.step(value, f"loop{index}" if len(xs) == 1 else "")
                functions.append(function)
            Yield(value, place="each")
            Yield(d.call("Tally", d.site(), left=value, right=item.index), place="with index")
        Yield(item.collect(value), place="all")
        site = d.site()
        Yield(item.reduce(d.ops.Tally, value, initial=1000, site=site), place="total")
    for k, x in enumerate(xs):
        values = [i + x for i in range(n)]
        for function in functions:
            values = [function(v) for v in values]
        for i, v in enumerate(values):
            d.expect("each", (k, i), v)
            d.expect("with index", (k, i), v + i)
        d.expect("all", (k,), values)
        d.expect("total", (k,), 1000 + sum(values))


def nested_loops(d: Draft) -> None:
    """A loop in a loop, over lists that operations make."""
    xs = d.give_sets(2)
    n, m, seed = d.random.randrange(1, 6), d.random.randrange(1, 6), d.random.randrange(1000)
    with d.case.pipeline:
        with ForEach(d.call("Numbers", d.site(), n=n, seed=seed), window=d.random.choice([1, 3])) as outer:
            first, one = d.step(outer, "outer" if len(xs) == 1 else "")
            with ForEach(list(range(m)), window=d.random.choice([1, 2, None])) as inner:
                value = d.call("Tally", d.site(), left=first, right=inner)
                value, two = d.step(value)
                Yield(value, place="each")
            row = inner.collect(value)
            Yield(row, place="row")
            total = inner.reduce(d.ops.Tally, value, site=d.site())
        Yield(outer.collect(row), place="rows")
        Yield(outer.reduce(d.ops.Tally, total, initial=PlaceParam("x"), site=d.site()), place="total")
    for k, x in enumerate(xs):
        rows = [[two(one(v) + j) for j in range(m)] for v in plain.numbers(n, seed)]
        for i, row_values in enumerate(rows):
            d.expect("row", (k, i), row_values)
            for j, v in enumerate(row_values):
                d.expect("each", (k, i, j), v)
        d.expect("rows", (k,), rows)
        d.expect("total", (k,), x + sum(map(sum, rows)))


def streams(d: Draft) -> None:
    """A stream that is yielded, read live at another site, and gone through by a loop."""
    n, seed, pause = d.random.randrange(0, 120), d.random.randrange(1000), d.random.choice([0.0, 0.0, 0.005])
    with d.case.pipeline:
        name = "Stream" if d.random.random() < 0.8 else "StreamOnce"
        made = d.call(name, d.site(), n=n, seed=seed, pause=pause)
        Yield(made, place="live")
        Yield(d.call("SumUp", d.site(), items=made), place="sums")
        with ForEach(made, window=d.random.choice([1, 8, None])) as item:
            value, function = d.step(item, "item")
            Yield(value, place="each")
        Yield(item.collect(value), place="all")
    items = plain.numbers(n, seed)
    for i, v in enumerate(items):
        d.expect("live", (0, i), v)
        d.expect("each", (0, i), function(v))
    d.expect("sums", (0,), plain.summed_up(items))
    d.expect("all", (0,), [function(v) for v in items])
    d.case.seconds = 0.5 + n * pause


def branches(d: Draft) -> None:
    """If, Else and Choose on what parameters and operations give."""
    xs = d.give_sets(5, on=lambda x: x % 3 == 0)
    limit = xs[len(xs) // 2]
    with d.case.pipeline:
        x = d.call("Affine", d.site(), x=PlaceParam("x"), a=1, b=0)
        with If(x > limit):
            large, one = d.step(x, "large")
            Yield(large, place="large")
        with Else():
            small, two = d.step(x, "small")
            Yield(small, place="small")
        Yield(Choose(x > limit, large, small), place="either")
        Yield(Choose(PlaceParam("on"), x, [x, "off"]), place="on")
    for k, value in enumerate(xs):
        chosen = one(value) if value > limit else two(value)
        d.expect("large" if value > limit else "small", (k,), chosen)
        d.expect("either", (k,), chosen)
        d.expect("on", (k,), value if value % 3 == 0 else [value, "off"])


def cached(d: Draft) -> None:
    """Values by key, from the cache or not; several jobs ask for the same."""
    xs = d.give_sets(4, number=lambda x: x % 5)
    a, site = d.random.randrange(1, 4), d.site()
    with d.case.pipeline:
        with TryFromCache(("chaos", a, PlaceParam("number")), ttl=d.random.choice([None, 3.0]), site=site) as found:
            made = d.call("Affine", d.site(), x=PlaceParam("number"), a=a, b=9, seconds=d.random.choice([0.0, 0.2]))
            found.cache(d.call("Affine", d.site(), x=made, a=2, b=0))
        Yield(found, place="found")
        Yield(d.call("Tally", d.site(), left=found, right=PlaceParam("x")), place="sum")
    for k, x in enumerate(xs):
        d.expect("found", (k,), 2 * (a * (x % 5) + 9))
        d.expect("sum", (k,), 2 * (a * (x % 5) + 9) + x)


def cached_arrays(d: Draft) -> None:
    """Arrays of some MB from the cache or not; a site that is killed while it writes one must not spoil it."""
    xs = [d.random.randrange(4) for _ in range(d.random.randrange(1, 4))]
    d.case.sets = [{"x": x} for x in xs]
    site = d.site()
    n = 200_000 + 50_000 * SITES.index(site)
    with d.case.pipeline:
        with TryFromCache(("chaos array", n, PlaceParam("x")), ttl=2.0, site=site) as found:
            found.cache(d.call("Array", site, n=n, seed=PlaceParam("x")))
        Yield(d.call("Digest", d.site(), values=found), place="digest")
    for k, x in enumerate(xs):
        d.expect("digest", (k,), plain.digest(plain.array(n, x)))


def sub_pipelines(d: Draft) -> None:
    """A pipeline that is used twice in another, once of that in a loop."""
    xs = d.give_sets(3)
    n = d.random.randrange(1, 8)
    with Pipeline(name="inner") as inner:
        value, one = d.step(PlaceParam("v"), "sub")
        again = d.call("Affine", d.site(), x=value, a=2, b=1)
        Yield(value, place="once")
        Yield(again, place="twice")
    with d.case.pipeline:
        first = inner(v=PlaceParam("x"))
        Yield(first["twice"], place="first")
        with ForEach(list(range(n)), window=3) as item:
            # Not the same values as above: what must not run twice runs twice for no value.
            each = inner(v=d.call("Affine", d.site(), x=item, a=1, b=1_000_000))
            Yield([each["once"], each["twice"]], place="each")
        Yield(item.collect(each["twice"]), place="all")
    for k, x in enumerate(xs):
        d.expect("first", (k,), 2 * one(x) + 1)
        pairs = [[one(i + 1_000_000), 2 * one(i + 1_000_000) + 1] for i in range(n)]
        for i, pair in enumerate(pairs):
            d.expect("each", (k, i), pair)
        d.expect("all", (k,), [pair[1] for pair in pairs])
    if d.case.once_log is not None and len(xs) > 1:
        d.case.sets, d.case.results = d.case.sets[:1], _first_set(d.case.results)


def _first_set(results: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {place: [entry for entry in entries if entry[0][0] == 0] for place, entries in results.items()}


def arrays(d: Draft) -> None:
    """Arrays of 1 to 20 MB from site to site, some of them to the client."""
    n, seed, by = d.random.randrange(125_000, 2_500_000), d.random.randrange(1000), d.random.randrange(100)
    one, two = d.site(), d.site()
    with d.case.pipeline:
        made = d.call("Array", one, n=n, seed=seed)
        shifted = d.call("Shift", two, values=made, by=by)
        Yield(d.call("Digest", d.site(two), values=shifted), place="digest")
        Yield(d.call("Digest", d.site(one), values=made), place="first digest")
        if shown := d.random.random() < 0.3:
            Yield(shifted, place="array")
    values = plain.array(n, seed)
    result = values * 3 + by
    d.expect("digest", (0,), plain.digest(result))
    d.expect("first digest", (0,), plain.digest(values))
    if shown:
        d.expect("array", (0,), result)


def many_sets(d: Draft) -> None:
    """Hundreds of small parameter sets, read from an iterator."""
    count, start = d.random.randrange(100, 500), d.random.randrange(1000)
    d.case.sets = [{"x": start + k} for k in range(count)]
    d.case.iterated = True
    with d.case.pipeline:
        a, site = d.random.randrange(1, 9), d.site()
        first = d.call("Affine", site, x=PlaceParam("x"), a=a, b=1)
        if d.random.random() < 0.3:
            value, factor, more = d.once(d.site(), first, "set"), 3, 1
        else:
            value, factor, more = d.call("Affine", d.site(site), x=first, a=1, b=2), 1, 2
        Yield(value, place="value")
    for k in range(count):
        d.expect("value", (k,), factor * (a * (start + k) + 1) + more)
    d.case.seconds = 1.5


def side_by_side(d: Draft) -> None:
    """Two parts that have nothing to do with one another, at different sites."""
    xs = d.give_sets(2)
    left, right = d.random.sample(SITES, 2)
    with d.case.pipeline:
        for place, site in (("left", left), ("right", right)):
            value = d.call("Wait", site, seconds=d.random.choice([0.1, 0.5, 1.0]), x=PlaceParam("x"))
            for _ in range(3):
                value = d.call("Affine", site, x=value, a=2, b=1)
            Yield(value, place=place)
            d.case.apart[place] = {site}
    for k, x in enumerate(xs):
        for place in ("left", "right"):
            d.expect(place, (k,), ((x * 2 + 1) * 2 + 1) * 2 + 1)
    d.case.seconds = 1.2


def structures(d: Draft) -> None:
    """Values of many types, parts of them, and orders by `after`."""
    xs = d.give_sets(3)
    with d.case.pipeline:
        value = d.call("Describe", d.site(), x=PlaceParam("x"))
        again = d.call("Describe", d.site(), x=[value["pair"], {"half": value["half"]}])
        late = d.call("Affine", d.site(), x=value["x"], a=5, b=5, after=again)
        Yield(again, place="again")
        Yield(value["pair"][1], place="part")
        Yield({"late": [late, value["nothing"]]}, place="late")
    for k, x in enumerate(xs):
        d.expect("again", (k,), plain.described([(x, [x]), {"half": 0.5}]))
        d.expect("part", (k,), [x])
        d.expect("late", (k,), {"late": [5 * x + 5, None]})


def slow_loop(d: Draft) -> None:
    """Elements that sleep, wait, loop in Python, or wait for a process of their own."""
    n, window = d.random.randrange(2, 10), d.random.choice([2, 4])
    operation = d.random.choice(["Sleep", "Wait", "Loop", "Child"])
    seconds = d.random.choice([0.1, 0.3, 1.0]) if operation != "Loop" else 0.15
    with d.case.pipeline:
        with ForEach(list(range(n)), window=window) as item:
            slow = d.call(operation, d.site(), seconds=seconds, x=item)
            Yield(d.call("Affine", d.site(), x=slow, a=2, b=0), place="each")
        Yield(item.collect(slow), place="all")
    for i in range(n):
        d.expect("each", (0, i), 2 * i)
    d.expect("all", (0,), list(range(n)))
    d.case.seconds = n / window * seconds + 0.3


SOUND = (
    chain,
    window_loop,
    nested_loops,
    streams,
    branches,
    cached,
    cached_arrays,
    sub_pipelines,
    arrays,
    many_sets,
    side_by_side,
    structures,
    slow_loop,
)
"""Templates without faults of their own."""
