"""WorkerThreads: nothing is lost, what blocks gets a thread of its own, and close lets everything go."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from dfmesh.engine.thread_results import ThreadResults
from dfmesh.engine.worker_threads import MAX_THREADS, WorkerThreads

LIMIT = 20.0


def on_loop(test: Callable[[WorkerThreads], Any]) -> Any:
    """Run a coroutine function with threads that are closed after it."""

    async def main() -> Any:
        threads = WorkerThreads(asyncio.get_running_loop())
        try:
            return await asyncio.wait_for(test(threads), LIMIT)
        finally:
            threads.close()

    return asyncio.run(main())


def result_of(threads: WorkerThreads, function: Callable[[], Any]) -> asyncio.Future[Any]:
    future = asyncio.get_running_loop().create_future()

    def done(value: Any, error: BaseException | None, _seconds: float) -> None:
        future.set_result((value, error))

    threads.submit(function, done)
    return future


@pytest.mark.parametrize("seed", range(3))
def test_no_work_is_lost_under_stress(seed: int) -> None:
    """Bursts of any size with gaps of any length, so that threads fall asleep at every possible moment."""
    shuffle = random.Random(seed)

    async def test(threads: WorkerThreads) -> None:
        counts = [0] * 6000
        futures = []
        submitted = 0
        while submitted < len(counts):
            for _ in range(min(shuffle.choice([1, 1, 2, 5, 300]), len(counts) - submitted)):

                def work(index: int = submitted) -> int:
                    counts[index] += 1
                    return index

                futures.append(result_of(threads, work))
                submitted += 1
            for _ in range(shuffle.choice([0, 0, 1, 3])):
                await asyncio.sleep(0)
            if shuffle.random() < 0.2:
                await futures[-1]
        assert [value for value, _ in await asyncio.gather(*futures)] == list(range(len(counts)))
        assert set(counts) == {1}

    on_loop(test)


@pytest.mark.parametrize("parties", [2, 8, MAX_THREADS])
def test_what_blocks_gets_a_thread_each(parties: int) -> None:
    """These only end if all of them run at the same time."""
    barrier = threading.Barrier(parties)

    async def test(threads: WorkerThreads) -> None:
        futures = [result_of(threads, lambda: barrier.wait(timeout=LIMIT)) for _ in range(parties)]
        assert sorted(value for value, _ in await asyncio.gather(*futures)) == list(range(parties))

    on_loop(test)


def test_work_behind_a_call_that_blocks_goes_on() -> None:
    release = threading.Event()

    async def test(threads: WorkerThreads) -> None:
        blocked = [result_of(threads, lambda: release.wait(LIMIT)) for _ in range(5)]
        for number in range(200):
            assert await result_of(threads, partial(int, number)) == (number, None)
        assert not any(future.done() for future in blocked)
        release.set()
        assert await asyncio.gather(*blocked) == [(True, None)] * 5

    on_loop(test)


def test_more_than_can_run_wait_and_are_run() -> None:
    gate = threading.Semaphore(0)

    async def test(threads: WorkerThreads) -> None:
        futures = [result_of(threads, lambda: gate.acquire(timeout=LIMIT)) for _ in range(MAX_THREADS + 20)]
        for _ in futures:
            gate.release()
        assert await asyncio.gather(*futures) == [(True, None)] * len(futures)

    on_loop(test)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), StopIteration()])
def test_whatever_is_raised_is_handed_over(error: BaseException) -> None:
    def work() -> None:
        raise error

    async def test(threads: WorkerThreads) -> None:
        assert await result_of(threads, work) == (None, error)
        assert await result_of(threads, lambda: 1) == (1, None)

    on_loop(test)


def test_one_receiver_that_raises_does_not_keep_results_from_others() -> None:
    both_ready = threading.Barrier(2)

    async def test(threads: WorkerThreads) -> None:
        told: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))

        def broken(_value: Any, _error: BaseException | None, _seconds: float) -> None:
            raise RuntimeError("a receiver is broken")

        threads.submit(lambda: both_ready.wait(LIMIT), broken)
        assert (await result_of(threads, lambda: both_ready.wait(LIMIT)))[1] is None
        for _ in range(3):
            threads.submit(lambda: 1, broken)
        assert (await result_of(threads, lambda: 7)) == (7, None)
        assert told

    on_loop(test)


def test_results_left_over_by_a_receiver_that_raises_are_delivered() -> None:
    """Without another thread that wakes the loop again."""

    async def test(_threads: WorkerThreads) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, _context: None)
        future, results = loop.create_future(), ThreadResults(loop)

        def broken(_value: Any, _error: BaseException | None, _seconds: float) -> None:
            raise RuntimeError("a receiver is broken")

        results.add(broken, None, None, 0.0, 0.0)
        results.add(lambda value, _error, _seconds: future.set_result(value), 5, None, 0.0, 0.0)
        assert await future == 5

    on_loop(test)


def test_close_lets_sleeping_threads_end_and_drops_what_waits() -> None:
    ran: list[int] = []
    release = threading.Event()
    started = threading.Event()

    def block() -> None:
        started.set()
        release.wait(LIMIT)

    of_others = set(threading.enumerate())

    async def test(threads: WorkerThreads) -> list[threading.Thread]:
        await asyncio.gather(*(result_of(threads, lambda: None) for _ in range(50)))
        names = [thread for thread in set(threading.enumerate()) - of_others if thread.name.startswith("dfmesh-worker")]
        threads.submit(block, lambda *_: None)
        await asyncio.to_thread(started.wait, LIMIT)
        threads.close()
        threads.submit(lambda: ran.append(1), lambda *_: None)
        return names

    alive = on_loop(test)
    release.set()
    for thread in alive:
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert ran == []


def test_a_result_for_a_loop_that_is_gone_is_dropped() -> None:
    release = threading.Event()
    running = threading.Event()
    found: list[threading.Thread] = []

    def work() -> None:
        found.append(threading.current_thread())
        running.set()
        release.wait(LIMIT)

    async def test(threads: WorkerThreads) -> None:
        threads.submit(work, lambda *_: None)
        await asyncio.to_thread(running.wait, LIMIT)

    on_loop(test)
    release.set()
    found[0].join(LIMIT)
    assert not found[0].is_alive()
