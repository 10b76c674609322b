"""Results in memory, on disk and forgotten: whatever their number, they come complete and in order."""

from __future__ import annotations

import resource

import pytest

from dfmesh.engine.frame_run import FrameRun
from dfmesh.session.result_log import Reader, ResultLog
from dfmesh.session.result_run import ResultRun
from dfmesh.session.result_store import ITEM_OVERHEAD, ResultStore
from dfmesh.session.results import ResultItem


def item(number: int) -> ResultItem:
    return ResultItem("place", (0, number), ["x" * 100, (number, None)], "site", "node")


def store_of(count: int, in_memory: int) -> ResultStore:
    store = ResultStore(memory_limit=in_memory * (ITEM_OVERHEAD + 200))
    for number in range(count):
        store.extend([item(number)])
    return store


def test_results_beyond_the_limit_wait_on_disk_and_come_back_as_they_were() -> None:
    store = store_of(1000, in_memory=10)
    assert len(store) == 1000
    assert store.slice(0, 1000) == [item(number) for number in range(1000)]
    assert store.slice(995, 1000) == [item(number) for number in range(995, 1000)]
    assert store.slice(5, 30) == [item(number) for number in range(5, 30)]
    store.close()


def test_forgotten_results_are_left_out_and_the_others_keep_their_positions() -> None:
    store = store_of(100, in_memory=1000)
    store.forget(0, 40)
    assert len(store) == 100
    assert store.slice(0, 100) == [item(number) for number in range(40, 100)]
    assert store.slice(50, 60) == [item(number) for number in range(50, 60)]
    store.extend([item(100)])
    assert store.slice(100, 101) == [item(100)]
    store.forget(0, 101)
    assert store.slice(0, 101) == []
    assert len(store) == 101


def test_forgetting_reaches_neither_the_disk_nor_what_comes_later() -> None:
    store = store_of(50, in_memory=10)
    store.forget(0, 30)
    assert store.slice(30, 50) == [item(number) for number in range(30, 50)]
    store.extend([item(50)])
    assert store.slice(49, 51) == [item(49), item(50)]
    store.close()


def test_a_reader_of_one_place_does_not_forget_what_others_have_not_read() -> None:
    log = ResultLog(keep=False)
    for number in range(20):
        log.add([ResultItem(place, (0, number), number, "site", "node") for place in ("left", "right")])
    log.close()
    for place in ("left", "right"):
        reader = Reader(log, place, ordered=True, order={}, sources={"left": 1, "right": 1})
        assert [item.value for item in reader.take()] == list(range(20))
    assert log.all() == []


def test_when_the_disk_is_full_what_is_there_can_be_read() -> None:
    store = store_of(1000, in_memory=10)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            store.extend([ResultItem("place", (0,), bytes(300_000), "site", "node")])
        assert len(store) == 1000
        assert store.slice(0, 1000) == [item(number) for number in range(1000)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    store.extend([item(1000)])
    assert store.slice(1000, 1001) == [item(1000)]
    store.close()


def run_of(first: int, count: int) -> ResultRun:
    return ResultRun("place", FrameRun((0,), first, count), list(range(first, first + count)), "site", "node")


@pytest.mark.parametrize("memory_limit", [0, 5_000, 10**6])
def test_results_that_came_together_are_read_one_by_one(memory_limit: int) -> None:
    store = ResultStore(memory_limit)
    for first in range(0, 300, 60):
        store.add(run_of(first, 60))
    store.add(ResultRun("place", ((0, 300), (0, 305)), [300, {"a": 1}], "site", "node"))
    expected = [ResultItem("place", (0, number), number, "site", "node") for number in range(301)]
    expected.append(ResultItem("place", (0, 305), {"a": 1}, "site", "node"))
    assert len(store) == 302
    for start, stop in [(0, 302), (0, 1), (59, 61), (60, 120), (100, 290), (299, 302), (120, 120)]:
        assert store.slice(start, stop) == expected[start:stop]
    assert [store.boundary(position) for position in (0, 1, 60, 299, 301)] == [0, 60, 60, 300, 302]
    store.close()


def test_those_that_a_reader_took_are_forgotten_together() -> None:
    log = ResultLog(keep=False)
    for first in range(0, 5000, 100):
        log.add_run(run_of(first, 100))
    log.close()
    reader = Reader(log, None, ordered=False, order={}, sources={"place": 1})
    taken = []
    while not reader.done:
        taken += [item.value for item in reader.take()]
    assert taken == list(range(5000))
    assert log.all() == []


def test_some_of_them_can_be_left_out() -> None:
    assert [item.frame for item in run_of(4, 5).without({0, 3}).items()] == [(0, 5), (0, 6), (0, 8)]
