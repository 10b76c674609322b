"""Pipelines with operations that raise, exit, block or end their site, with what must come of them all the same."""

from __future__ import annotations

from typing import Any

from chaos_run.case import MOST_ATTEMPTS, ONCE_ONLY, Death, Draft
from dfmesh import ForEach, PlaceParam, Yield


def raising_loop(d: Draft) -> None:
    """Some elements of a loop raise; the loop fails, or leaves them out."""
    n, modulus, skip = d.random.randrange(1, 20), d.random.randrange(2, 5), d.random.random() < 0.5
    site = d.site()
    with d.case.pipeline:
        with ForEach(list(range(n)), window=3, on_error="skip" if skip else "fail") as item:
            checked = d.call("RaiseIf", site, x=item, modulus=modulus, node_id="raises")
            value = d.call("Affine", d.site(), x=checked, a=2, b=0)
            Yield(value, place="each")
        Yield(item.collect(item), place="items")
        if skip:
            Yield(item.collect(value), place="all")
            d.case.loose = {"all"}
    good = [i for i in range(n) if i % modulus]
    for i in good:
        d.expect("each", (0, i), 2 * i)
    d.expect("items", (0,), list(range(n)))
    if skip:
        d.expect("all", (0,), [2 * i for i in good])
    else:
        d.fails("raises", site, "ValueError", f"multiple of {modulus}", {(0, i) for i in range(0, n, modulus)})
    d.case.faults["adapter raises"] = n - len(good)


def exits_python(d: Draft) -> None:
    """An adapter calls sys.exit: that is its own failure and nobody else's."""
    _one_that_fails(d, "ExitPython", "SystemExit", "", code=d.random.randrange(5))
    d.case.faults["adapter calls sys.exit"] = 1


def breaking_stream(d: Draft) -> None:
    """A stream that breaks after some items."""
    n, site = d.random.randrange(5), d.site()
    with d.case.pipeline:
        made = d.call("BrokenStream", site, n=n, node_id="breaks")
        Yield(made, place="live")
        Yield(d.call("SumUp", d.site(), items=made), place="never")
        Yield(d.call("Affine", d.site(), x=1, a=1, b=1), place="good")
    for i in range(n):
        d.expect("live", (0, i), i)
    d.expect("good", (0,), 2)
    d.fails("breaks", site, "RuntimeError", f"after {n}", {(0,)})
    d.case.faults["stream breaks"] = 1


def blocks_too_long(d: Draft) -> None:
    """An adapter blocks for longer than its time-out; some are called again, in vain."""
    operation, retries = d.random.choice(["Sleep", "Wait", "Loop", "Child"]), d.random.randrange(2)
    seconds = 2.0 if operation == "Loop" else 3.0
    _one_that_fails(d, operation, "CallTimeoutError", "", seconds=seconds, x=1, timeout=0.3, retries=retries)
    d.case.seconds = 2.0
    d.case.faults["adapter blocks, timed out"] = 1 + retries


def flaky_calls(d: Draft) -> None:
    """Calls that fail at first, and are made again."""
    times, retries = d.random.randrange(1, 3), d.random.randrange(1, 4)
    good, bad = d.site(), d.site()
    path = d.scratch / f"{d.key}.flaky"
    with d.case.pipeline:
        value = d.call("Flaky", good, path=f"{path}1", times=times, x=5, retries=times)
        Yield(d.call("Affine", d.site(), x=value, a=2, b=0), place="good")
        Yield(d.call("RaiseIf", bad, x=0, modulus=3, retries=retries, node_id="vain"), place="never")
    d.expect("good", (0,), 10)
    d.fails("vain", bad, "ValueError", "multiple of 3", {(0,)})
    d.case.seconds = 1.5
    d.case.faults["adapter raises"] = times + retries + 1


def holds_the_interpreter(d: Draft) -> None:
    """C code that does not yield, or a coroutine that blocks the event loop, beside calls of others."""
    xs = d.give_sets(2)
    site, blocks = d.site(), d.random.random() < 0.5
    with d.case.pipeline:
        if blocks:
            held = d.call("BlockLoop", site, seconds=d.random.choice([0.3, 1.0]), x=PlaceParam("x"))
        else:
            size = d.random.choice([200_000, 600_000, 1_000_000])
            held = d.call("Hold", site, size=size, x=PlaceParam("x"))
        Yield(d.call("Affine", d.site(), x=held, a=1, b=1), place="held")
        Yield(d.call("Affine", site, x=PlaceParam("x"), a=1, b=2), place="beside")
    for k, x in enumerate(xs):
        d.expect("held", (k,), x + 1)
        d.expect("beside", (k,), x + 2)
    kind = "adapter blocks its site's event loop" if blocks else "adapter holds the interpreter"
    d.case.faults[kind] = len(xs)


def slow_links(d: Draft) -> None:
    """The connections of a site are slow for a while, under load."""
    site, seconds = d.site(), d.random.choice([0.5, 1.0, 2.0])
    most, pause = d.random.choice([(3_000, 0.001), (50_000, 0.003), (7, 0.0)])
    n = d.random.randrange(10, 60)
    with d.case.pipeline:
        begun = d.call("SlowLinks", site, seconds=seconds, most=most, pause=pause)
        with ForEach(list(range(n)), window=8, after=begun) as item:
            value = d.call("Affine", site, x=item, a=3, b=0)
            Yield(d.call("Affine", d.site(site), x=value, a=1, b=1), place="each")
        values = d.call("Array", site, n=100_000, seed=3, after=begun)
        Yield(d.call("Digest", d.site(site), values=values)[0], place="digest")
    for i in range(n):
        d.expect("each", (0, i), 3 * i + 1)
    d.expect("digest", (0,), 100_000)
    d.case.seconds = seconds
    d.case.faults["slow links"] = 1


def fails_apart(d: Draft) -> None:
    """An adapter with a process of its own ends that: its call alone fails."""
    if d.random.random() < 0.5:
        code = d.random.randrange(1, 100)
        _one_that_fails(d, "LeaveApart", "AdapterProcessError", f"exited with code {code}", code=code, delay=0.0)
        d.case.faults["adapter's own process exits"] = 1
    else:
        name = d.random.choice(["SIGSEGV", "SIGABRT", "SIGKILL"])
        _one_that_fails(d, "DieApart", "AdapterProcessError", name, name=name, delay=d.random.choice([0.0, 0.2]))
        d.case.faults["adapter's own process ends by a signal"] = 1
    d.case.seconds = 1.5


def computes_apart(d: Draft) -> None:
    """Adapters with processes of their own: some compute, and one holds on for so long that it has to be killed."""
    n, site = d.random.randrange(1, 12), d.site()
    with d.case.pipeline:
        with ForEach(list(range(n)), window=d.random.choice([1, 4])) as item:
            value = d.call("AffineApart", site, x=item, a=3, b=1, seconds=d.random.choice([0.0, 0.05]))
            Yield(d.call("Affine", d.site(), x=value, a=1, b=1), place="each")
        if held := d.random.random() < 0.4:
            where = d.site()
            Yield(d.call("HoldApart", where, size=20_000_000, x=1, timeout=0.5, node_id="held"), place="never")
    for i in range(n):
        d.expect("each", (0, i), 3 * i + 2)
    if held:
        d.fails("held", where, "CallTimeoutError", "", {(0,)})
        d.case.faults["adapter's own process killed after a time-out"] = 1
    d.case.seconds = 2.0


def leaves(d: Draft) -> None:
    """An adapter ends the process of its site with os._exit."""
    code, again = d.random.randrange(1, 100), d.random.random() < 0.2
    delay = 0.0 if again else d.random.choice([0.0, 0.1, 0.5])
    _one_that_kills(d, "LeaveAgain" if again else "Leave", f"exited with code {code}", code=code, delay=delay)
    d.case.faults["adapter calls os._exit"] = 1


def dies(d: Draft) -> None:
    """An adapter crashes, or kills its own site."""
    name = d.random.choice(["SIGSEGV", "SIGABRT", "SIGKILL"])
    _one_that_kills(d, "Die", f"killed by {name}", name=name, delay=d.random.choice([0.0, 0.2]))
    d.case.faults["adapter ends by a signal"] = 1


def _one_that_fails(d: Draft, operation: str, kind: str, text: str, **arguments: Any) -> None:
    site, x = d.site(), d.random.randrange(100)
    with d.case.pipeline:
        first = d.call("Affine", d.site(), x=x, a=1, b=1)
        bad = d.call(
            operation, site, **arguments, node_id="bad", **({} if d.random.random() < 0.5 else {"after": first})
        )
        Yield(bad, place="never")
        Yield([1, bad], place="never either")
        Yield(first, place="before")
        Yield(d.call("Affine", site, x=first, a=1, b=1), place="beside")
    d.expect("before", (0,), x + 1)
    d.expect("beside", (0,), x + 2)
    d.fails("bad", site, kind, text, {(0,)})


def _one_that_kills(d: Draft, operation: str, reason: str, **arguments: Any) -> None:
    site = d.site()
    other = d.site(site, "home")
    with d.case.pipeline:
        bad = d.call(operation, site, **arguments, node_id="bad")
        Yield(bad, place="never")
        Yield(d.call("Affine", d.site(), x=PlaceParam("x", default=1), a=1, b=1), place="other")
        value = d.call("Affine", other, x=4, a=1, b=1)
        Yield(d.call("Affine", other, x=value, a=1, b=1), place="elsewhere")
    d.expect("other", (0,), 2)
    d.expect("elsewhere", (0,), 6)
    d.case.apart["elsewhere"] = {other}
    d.case.deaths.append(Death(site, reason, "bad", 1 if operation in ONCE_ONLY else MOST_ATTEMPTS))


HARMLESS = (
    raising_loop,
    exits_python,
    breaking_stream,
    blocks_too_long,
    flaky_calls,
    holds_the_interpreter,
    slow_links,
    fails_apart,
    computes_apart,
)
"""Templates with faults that leave all sites alive."""

DEADLY = (leaves, dies)
"""Templates that end a site."""
