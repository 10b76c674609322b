"""Large values, many results, long and wide pipelines."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from dfmesh import ForEach, Pipeline, PlaceParam, Yield

from .conftest import HOMESITE, Runner, assert_same, items_of, scaled

DESCRIPTORS = Path("/proc/self/fd")


@pytest.mark.parametrize("elements", [10, 16_383, 16_384, 16_385, 1_000_000, 20_000_000])
def test_arrays_of_any_size_between_sites(live: Runner, ops: Any, elements: int) -> None:
    with Pipeline() as p:
        array = ops.calc.Array(n=elements, site="a")
        there = ops.calc.Identity(x={"array": array, "n": elements}, site="b")
        Yield(ops.calc.ArraySum(values=there["array"], site="c"), place="sum")
        Yield(there["array"], place="array")
    found = live(p)
    expected = np.arange(elements, dtype=np.float32)
    assert found["sum"] == [float(expected.sum())]
    assert found["array"][0].dtype == expected.dtype
    assert np.array_equal(found["array"][0], expected)


def test_arrays_of_odd_layout(live: Runner, ops: Any) -> None:
    base = np.arange(100_000, dtype=np.float64).reshape(100, 1000)
    arrays = {
        "transposed": base.T,
        "strided": base[::2, ::3],
        "reversed": base[::-1],
        "fortran": np.asfortranarray(base),
        "big endian": base.astype(">f8"),
        "empty": base[:0],
        "scalar": np.array(5.0),
        "bool": base > 50,
        "complex": base.astype(np.complex64),
        "text": np.array(["a", "long" * 1000]),
        "time": np.arange(20_000).astype("datetime64[s]"),
    }
    with Pipeline() as p:
        Yield(ops.calc.Identity(x=ops.calc.Identity(x=PlaceParam("arrays"), site="a"), site="b"), place="x")
    found = live(p, arrays=arrays)["x"][0]
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert np.array_equal(found[name], array), name


def test_large_bytes_and_text(live: Runner, ops: Any) -> None:
    value = {"bytes": bytes(range(256)) * 20_000, "text": "ö" * 1_000_000, "list": list(range(200_000))}
    with Pipeline() as p:
        Yield(ops.calc.Identity(x=ops.calc.Identity(x=PlaceParam("v"), site="a"), site="b"), place="x")
    assert live(p, v=value)["x"] == [value]


def test_one_array_to_many_consumers(live: Runner, ops: Any) -> None:
    with Pipeline() as p:
        array = ops.calc.Array(n=500_000, site="a")
        with ForEach(list(range(20)), window=5) as item:
            Yield(ops.calc.ArraySum(values=array, site="b", after=ops.calc.Add(a=item, b=0, site="c")), place="b")
            Yield(ops.calc.ArraySum(values=array, site="d", after=ops.calc.Add(a=item, b=0, site="a")), place="d")
    total = float(np.arange(500_000, dtype=np.float32).sum())
    assert live(p) == {"b": [total] * 20, "d": [total] * 20}


@pytest.mark.timeout(120)
def test_memory_of_many_large_values_is_given_back(local: Runner, ops: Any) -> None:
    """200 arrays of 4 MB pass, a few at a time; neither the sites nor shared memory keep them."""
    with Pipeline() as p, ForEach(list(range(200)), window=2) as item:
        array = ops.calc.Array(n=1_000_000, site="a", after=ops.calc.Add(a=item, b=0, site="a"))
        Yield(ops.calc.ArraySum(values=array, site="b"), place="x")
    with Pipeline() as who:
        for site in "ab":
            Yield(ops.calc.Where(site=site)["pid"], place=site)
    sites = [psutil.Process(values[0]) for values in local(who).values()]
    before = [site.memory_info().rss for site in sites]
    total = float(np.arange(1_000_000, dtype=np.float32).sum())
    assert local(p) == {"x": [total] * 200}
    grown = [site.memory_info().rss - was for site, was in zip(sites, before, strict=True)]
    assert max(grown) < 150_000_000, grown


def memory_files() -> int:
    """Count the memory files that this process holds open."""
    return sum(1 for entry in DESCRIPTORS.iterdir() if entry.is_symlink() and "memfd:" in _target(entry))


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


@pytest.mark.skipif(not DESCRIPTORS.exists(), reason="no /proc")
def test_no_shared_memory_is_left(fed: Any, ops: Any) -> None:
    before = memory_files()
    with Pipeline() as p:
        Yield(ops.calc.Identity(x=ops.calc.Array(n=5_000_000, site="a"), site="b"), place="x")
    with fed.session(target="local", homesite=HOMESITE) as session:
        held = session.run(p).one("x")
        running = session.submit(p)
        assert running.id
    assert held[-1] == 4_999_999  # what the client got stays valid after the session
    del held, running, session
    end = time.monotonic() + 3
    while memory_files() > before and time.monotonic() < end:
        gc.collect()
        time.sleep(0.05)
    assert memory_files() <= before


@pytest.mark.timeout(120)
def test_results_are_not_lost_on_a_slow_client(live: Runner, ops: Any) -> None:
    """FINDINGS 42: a job that has finished still has all results for who comes late."""
    count = scaled(20_000)
    with Pipeline() as p, ForEach(list(range(count)), window=100) as item:
        Yield(ops.calc.Add(a=item, b=0, site="a"), place="x")
    job = live.session.submit(p)
    assert job.wait(timeout=100)
    assert [item.value for item in job.results("x")] == list(range(count))
    assert len(items_of(job)) == count
    assert job.result()["x"] == list(range(count))


@pytest.mark.timeout(120)
def test_many_iterations_between_two_sites(live: Runner, ops: Any) -> None:
    count = scaled(10_000)
    with Pipeline() as p:
        with ForEach(list(range(count)), window=50) as item:
            x = ops.calc.Add(a=ops.calc.Add(a=item, b=1, site="a"), b=1, site="b")
        Yield(item.collect(x), place="all")
        Yield(item.reduce(ops.calc.Add, x, site="b"), place="sum")
    found = live(p)
    assert found["all"] == [[n + 2 for n in range(count)]]
    assert found["sum"] == [sum(n + 2 for n in range(count)) % 1_000_000]


def test_long_chain(run: Runner, ops: Any) -> None:
    run.orders = 1
    with Pipeline() as p:
        x = ops.calc.Add(a=0, b=0, site="a")
        for n in range(300):
            x = ops.calc.Add(a=x, b=1, site="abcd"[n % 4])
        Yield(x, place="x")
    assert_same(run(p), {"x": [300]})


def test_wide_fan(run: Runner, ops: Any) -> None:
    run.orders = 1
    with Pipeline() as p:
        x = ops.calc.Add(a=1, b=0, site="a")
        fan = [ops.calc.Add(a=x, b=n, site="abcd"[n % 4]) for n in range(300)]
        Yield(ops.calc.Total(items=fan, site="b"), place="x")
    assert_same(run(p), {"x": [sum(n + 1 for n in range(300))]})


def test_free_placement_of_many_operations(run: Runner, ops: Any) -> None:
    run.orders = 1
    with Pipeline() as p:
        level = [ops.calc.Add(a=n, b=0) for n in range(20)]
        for _ in range(9):
            level = [ops.calc.Combine(left=level[n], right=level[(n + 1) % 20]) for n in range(20)]
        Yield(ops.calc.Total(items=level), place="x")
    values = list(range(20))
    for _ in range(9):
        values = [(values[n] * 31 + values[(n + 1) % 20] * 7 + 1) % 1_000_000 for n in range(20)]
    assert_same(run(p), {"x": [sum(values) % 1_000_000]})


def test_deeply_nested_value(run: Runner, ops: Any) -> None:
    value: Any = 0
    for n in range(60):
        value = [value] if n % 2 else {"k": (value,)}
    with Pipeline() as p:
        Yield(ops.calc.Identity(x=ops.calc.Identity(x=PlaceParam("v"), site="a"), site="b"), place="x")
    assert_same(run(p, v=value), {"x": [value]})
