"""A call that is stopped: the exception hits the adapter's code of that call and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dfmesh.engine import stubborn_calls
from dfmesh.engine.adapters import CallStopped, ThisCall, this_call
from dfmesh.engine.stubborn_calls import TooManyStuckError
from dfmesh.engine.worker_thread import Work
from dfmesh.engine.worker_threads import WorkerThreads

LIMIT = 100.0


def on_loop(test: Callable[[WorkerThreads], Any]) -> Any:
    async def main() -> Any:
        threads = WorkerThreads(asyncio.get_running_loop(), "site 'us'")
        try:
            return await asyncio.wait_for(test(threads), LIMIT)
        finally:
            threads.close()

    return asyncio.run(main())


def submit(threads: WorkerThreads, function: Callable[[], Any], operation: str = "op") -> tuple[Work, Any]:
    future = asyncio.get_running_loop().create_future()

    def done(value: Any, error: BaseException | None, _seconds: float) -> None:
        future.set_result((value, error))

    return threads.submit(function, done, operation), future


async def until(condition: Callable[[], Any]) -> None:
    while not condition():  # noqa: ASYNC110 - what it waits for has no event
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("seed", range(4))
def test_stops_at_any_moment_hit_only_the_call_they_are_meant_for(seed: int) -> None:
    """Short calls, of which many are stopped while they begin, run, or end. The others are never hit."""
    shuffle = random.Random(seed)

    def work(rounds: int) -> int:
        total = 0
        for number in range(rounds):
            total += len(str(number))
        return rounds

    async def test(threads: WorkerThreads) -> None:
        stopped: list[tuple[int, Any]] = []
        others: list[tuple[int, Any]] = []
        for _ in range(3000):
            rounds = shuffle.choice([0, 1, 5, 50, 500])
            one, future = submit(threads, lambda rounds=rounds: work(rounds))  # type: ignore[misc]
            for _ in range(shuffle.choice([0, 0, 1, 2, 5])):
                await asyncio.sleep(0)
            if shuffle.random() < 0.5:
                threads.stop(one, "a test wants it")
                stopped.append((rounds, future))
            else:
                others.append((rounds, future))
        for rounds, future in others:
            assert await future == (rounds, None)
        for rounds, future in stopped:
            value, error = await future
            assert error is None or isinstance(error, CallStopped), error
            assert value in (None, rounds)
        assert threads.stuck == []

    on_loop(test)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised within a finaliser, then again
@pytest.mark.parametrize("seed", range(4))
def test_stops_do_not_hit_what_the_call_has_from_us(seed: int) -> None:
    """Calls that hand over results, or wait for streams, when they are stopped: all others are still served."""
    shuffle = random.Random(seed)

    async def test(threads: WorkerThreads) -> None:
        told: list[int] = []

        def producing() -> None:
            for number in range(10**9):
                threads.hand_over(lambda value, _error, _seconds: told.append(value), number, 0.0)

        def waiting() -> None:
            while True:
                with threads.waiting():
                    pass

        for _ in range(150):
            one, future = submit(threads, shuffle.choice([producing, waiting]))
            await until(lambda work=one: work.worker)  # type: ignore[misc]
            for _ in range(shuffle.choice([0, 1, 2, 5, 20])):
                await asyncio.sleep(0)
            threads.stop(one, "a test wants it")
            _, error = await future
            assert error is None or isinstance(error, CallStopped)
            assert await submit(threads, lambda: 7)[1] == (7, None)
        assert threads._excused == 0
        assert threads.stuck == []

    on_loop(test)


@contextlib.contextmanager
def closing_slowly(cleaned: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        spend(0.4)
        try:
            raise KeyError("nothing there any more")
        except KeyError:
            spend(0.4)
        cleaned.set()


def spend(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_what_cleans_up_is_not_stopped_once_more() -> None:
    begun, cleaned = threading.Event(), threading.Event()

    def work() -> None:
        with closing_slowly(cleaned):
            begun.set()
            while True:
                pass

    async def test(threads: WorkerThreads) -> None:
        one, future = submit(threads, work)
        await until(begun.is_set)
        threads.stop(one, "a test wants it")
        _, error = await future
        assert isinstance(error, CallStopped)
        assert cleaned.is_set()

    on_loop(test)


def test_a_loop_is_stopped_and_its_cleanup_runs() -> None:
    begun, cleaned = threading.Event(), threading.Event()

    def spin() -> None:
        begun.set()
        try:
            while True:
                with contextlib.suppress(Exception):
                    sum(range(10))
        finally:
            cleaned.set()

    async def test(threads: WorkerThreads) -> None:
        work, future = submit(threads, spin)
        await asyncio.to_thread(begun.wait, LIMIT)
        threads.stop(work, "its job has ended")
        _, error = await future
        assert isinstance(error, CallStopped)
        assert cleaned.is_set()

    on_loop(test)


def test_an_adapter_that_catches_the_exception_is_stopped_again() -> None:
    begun = threading.Event()
    caught: list[BaseException] = []

    def stubborn() -> str:
        begun.set()
        while len(caught) < 3:
            try:
                while True:
                    sum(range(10))
            except BaseException as error:
                caught.append(error)
        return "enough"

    async def test(threads: WorkerThreads) -> None:
        work, future = submit(threads, stubborn)
        await asyncio.to_thread(begun.wait, LIMIT)
        threads.stop(work, "its job has ended")
        assert await future == ("enough", None)

    on_loop(test)


def test_a_call_that_waits_in_c_is_stuck_until_that_ends_and_its_thread_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stubborn_calls, "_PAUSES", (0.01,) * 5)
    lock = threading.Lock()
    lock.acquire()
    begun = threading.Event()
    used: list[threading.Thread] = []
    after: list[str] = []

    def wait() -> None:
        used.append(threading.current_thread())
        begun.set()
        lock.acquire()
        after.append("went on")

    async def test(threads: WorkerThreads) -> None:
        work, future = submit(threads, wait, "weather.Read")
        await asyncio.to_thread(begun.wait, LIMIT)
        threads.stop(work, "its job has ended")
        await until(lambda: threads.stuck)
        assert threads.stuck == ["weather.Read"]
        lock.release()
        _, error = await future
        assert isinstance(error, CallStopped)
        assert threads.stuck == []
        assert after == []
        later = [submit(threads, threading.current_thread)[1] for _ in range(20)]
        assert used[0] not in {value for value, _ in await asyncio.gather(*later)}

    on_loop(test)
    assert "weather.Read at site 'us' did not stop" in caplog.text
    assert "isolation: process" in caplog.text


def test_a_site_full_of_stuck_calls_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stubborn_calls, "_PAUSES", (0.001,) * 5)
    monkeypatch.setattr(stubborn_calls, "STUCK_LIMIT", 2)
    lock = threading.Lock()
    lock.acquire()

    def wait() -> None:
        with lock:
            pass

    async def test(threads: WorkerThreads) -> None:
        works = [submit(threads, wait, "weather.Read") for _ in range(2)]
        for work, _ in works:
            await until(lambda work=work: work.worker)  # type: ignore[misc]
            threads.stop(work, "its job has ended")
        await until(lambda: len(threads.stuck) == 2)
        _, error = await submit(threads, lambda: 1)[1]
        assert isinstance(error, TooManyStuckError)
        assert "weather.Read" in str(error)
        lock.release()
        await asyncio.gather(*(future for _, future in works))
        assert await submit(threads, lambda: 1)[1] == (1, None)

    on_loop(test)


def test_an_adapter_may_ask_or_wait_or_have_something_ended() -> None:
    seen: list[Any] = []
    ready = threading.Barrier(2)

    def asking() -> None:
        call = this_call()
        seen.append(call.operation)
        ready.wait(LIMIT)
        while not call.cancelled:
            pass
        seen.append("asked")
        with call.on_cancel(lambda: seen.append("never")):
            seen.append("never")

    def listening() -> None:
        ended = threading.Lock()
        ended.acquire()
        with this_call().on_cancel(ended.release):
            ready.wait(LIMIT)
            ended.acquire()  # no exception gets in here
            seen.append("ended")
            this_call().check()

    async def test(threads: WorkerThreads) -> None:
        for function in (asking, listening):
            work, future = submit(threads, function, "weather.Read")
            await asyncio.to_thread(ready.wait, LIMIT)
            threads.stop(work, "its job has ended")
            assert isinstance((await future)[1], CallStopped)

    on_loop(test)
    assert seen[0] == "weather.Read"
    assert "never" not in seen


def test_outside_of_a_call_nothing_is_cancelled() -> None:
    call = this_call()
    assert isinstance(call, ThisCall)
    assert not call.cancelled
    assert call.operation == ""
    call.check()
    started = time.monotonic()
    call.sleep(0.01)
    assert time.monotonic() > started


def test_nothing_is_left_of_a_stop_that_came_too_late() -> None:
    """CPython 3.11 runs for ever in profiled code while it believes that an exception is still to be raised."""
    script = (
        "import sys\n"
        "from dfmesh.engine import stopping\n"
        "def same(x): return x\n"
        "stopping.forget_own()\n"
        "calls = []\n"
        "sys.setprofile(lambda frame, event, argument: calls.append(event))\n"
        "for turn in range(100): same(turn)\n"
        "sys.setprofile(None)\n"
        "print(calls.count('call'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout == "100\n"
