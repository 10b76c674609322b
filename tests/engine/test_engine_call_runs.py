"""Calls that a thread makes one after the other: as if each were alone, whatever one of them does."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from dfmesh.engine.adapters.present_call import CallStopped, ThisCall, running_tell, this_call
from dfmesh.engine.call_limits import Limit, Limits
from dfmesh.engine.call_plan import CallPlan
from dfmesh.engine.call_run import CallRun
from dfmesh.engine.call_work import CallWork, ignore
from dfmesh.engine.thread_results import RESULTS_AT_ONCE
from dfmesh.engine.worker_thread import Ended, Work
from dfmesh.engine.worker_threads import PATIENCE, WorkerThreads

LIMIT = 60.0
FIRST = 7
"""Number of the first call of each run."""


class Receiver:
    """Notes what comes, by call."""

    def __init__(self) -> None:
        self.ends: dict[int, Any] = {}
        self.groups: list[int] = []
        self.over: list[CallRun] = []
        self.split: dict[int, Work] = {}
        self.said: list[tuple[int, str]] = []

    def say(self, call: int, _source: str, _logger: str, text: str) -> None:
        self.said.append((call, text))

    def call_ended(
        self, call: int, _plan: Any, value: Any, error: BaseException | None, _seconds: float, _given: Any = None
    ) -> None:
        assert call not in self.ends, "told twice"
        self.ends[call] = value if error is None else type(error)

    def calls_ended(self, ends: list[Ended], given: list[Any], seconds: list[float]) -> None:
        for end, value, duration in zip(ends, given, seconds, strict=True):
            self.call_ended(end.call, None, value, None, duration)

    def run_ended(self, _run: CallRun, first: int, given: list[Any], seconds: list[float]) -> None:
        self.groups.append(len(given))
        for call, (value, duration) in enumerate(zip(given, seconds, strict=True), first):
            self.call_ended(call, None, value, None, duration)

    def run_split(self, _run: CallRun, works: dict[int, Work]) -> None:
        self.split.update(works)

    def run_over(self, run: CallRun) -> None:
        self.over.append(run)


class LimitedReceiver(Receiver):
    """The same for calls that keep to limits."""

    def __init__(self, work: CallWork, limits: Limits) -> None:
        super().__init__()
        self.work = work
        self.limits = limits

    def run_split(self, run: CallRun, works: dict[int, Work]) -> None:
        super().run_split(run, works)
        for call, work in works.items():
            self.work.begin(call, self.limits, work.function, work.done, ThisCall("op", ignore))

    def run_over(self, run: CallRun) -> None:
        super().run_over(run)
        self.work.run_over(run)


def run_of(function: Callable[..., Any], given: Sequence[Any]) -> CallRun:
    plan = CallPlan("op", None, 0, None)
    return CallRun(Receiver(), plan, FIRST, function, [{"x": value} for value in given])


def went(function: Callable[..., Any], *given: Sequence[Any]) -> list[Receiver]:
    """Make runs with these arguments at the same time, and wait until all have ended."""

    async def main() -> list[Receiver]:
        threads = WorkerThreads(asyncio.get_running_loop())
        runs = [run_of(function, values) for values in given]
        try:
            for run in runs:
                threads.submit_run(run)
            deadline = time.monotonic() + LIMIT
            while any(len(run.receiver.ends) < len(values) for run, values in zip(runs, given, strict=True)):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.001)
        finally:
            threads.close()
        return [run.receiver for run in runs]  # type: ignore[misc]

    return asyncio.run(main())


def test_results_come_in_order_and_together() -> None:
    several = 3 * RESULTS_AT_ONCE + 5
    for receiver in went(lambda x: x * 2, range(several), range(1), range(several)):
        assert list(receiver.ends) == sorted(receiver.ends)
        assert receiver.ends == {FIRST + number: 2 * number for number in range(len(receiver.ends))}
        assert max(receiver.groups) <= RESULTS_AT_ONCE
        assert len(receiver.over) == 1


def test_one_that_raises_is_alone() -> None:
    def function(x: int) -> int:
        if x % 3 == 1:
            raise (ValueError if x % 2 else SystemExit)(x)
        return x

    (receiver,) = went(function, range(20))
    errors = {1: ValueError, 4: SystemExit}
    assert receiver.ends == {FIRST + x: errors[x % 6] if x % 3 == 1 else x for x in range(20)}
    assert len(receiver.over) == 1


@pytest.mark.parametrize("parties", [2, 30])
def test_what_blocks_does_not_hold_up_the_others(parties: int) -> None:
    """These only end if all of them run at the same time."""
    barrier = threading.Barrier(parties)

    def function(x: int) -> int:
        if x >= 10:
            barrier.wait(LIMIT)
        return x

    (receiver,) = went(function, range(10 + parties))
    assert receiver.ends == {FIRST + x: x for x in range(10 + parties)}
    assert len(receiver.split) >= parties - 1  # More if the thread was kept from its work before.
    assert len(receiver.over) == 1


def test_each_call_sees_itself() -> None:
    def function(x: int) -> tuple[bool, int]:
        tell = running_tell()
        assert tell is not None
        tell("stdout", "", str(x))
        return this_call().operation == "op", x

    (receiver,) = went(function, range(20))
    assert all(value.value[0] for value in receiver.ends.values())
    assert receiver.said == [(FIRST + x, str(x)) for x in range(20)]


def test_each_call_is_another_one() -> None:
    seen = []
    (receiver,) = went(lambda x: seen.append(this_call()), range(5))
    assert len(receiver.ends) == len(set(map(id, seen))) == 5


@pytest.mark.parametrize("seed", range(8))
def test_a_run_that_is_stopped_begins_no_other_call(seed: int) -> None:
    """Runs are stopped at any moment; calls of others are never hit, and threads are as they were."""
    shuffle = random.Random(seed)
    made: list[list[int]] = [[] for _ in range(30)]
    stopped_at: dict[int, int] = {}

    def function(x: tuple[int, int]) -> int:
        run, number = x
        made[run].append(number)
        for _ in itertools.repeat(None, shuffle.choice([0, 10, 1000])):
            len(str(number))
        return number

    async def main() -> None:
        threads = WorkerThreads(asyncio.get_running_loop())
        runs = [run_of(function, [(run, number) for number in range(200)]) for run in range(len(made))]
        for index, run in enumerate(runs):
            threads.submit_run(run)
            for _ in range(shuffle.choice([0, 1, 5])):
                await asyncio.sleep(0)
            if index % 2:
                works = [run, *run.receiver.split.values()]  # type: ignore[attr-defined]
                for work in works:  # It has been split if its thread was kept from its work.
                    threads.stop(work, "its job has ended")
                for work in works:
                    await threads.end_of(work)
                stopped_at[index] = len(made[index])
        deadline = time.monotonic() + LIMIT
        while any(len(run.receiver.ends) < 200 for run in runs[::2]):  # type: ignore[attr-defined]
            assert time.monotonic() < deadline
            await asyncio.sleep(0.001)
        for index, run in enumerate(runs):
            ends = run.receiver.ends  # type: ignore[attr-defined]
            if index % 2:
                assert len(made[index]) == stopped_at[index], "it went on"
                assert set(map(type, ends.values())) <= {int, type, type(None)}
                assert {end for end in ends.values() if isinstance(end, type)} <= {CallStopped}
            else:
                assert ends == {FIRST + number: number for number in range(200)}
        threads.close()

    asyncio.run(main())


def test_a_run_that_hangs_is_stopped() -> None:
    begun = threading.Event()

    def function(x: int) -> None:
        begun.set()
        while x >= 0:
            time.sleep(0.001)

    async def main() -> None:
        threads = WorkerThreads(asyncio.get_running_loop())
        run = run_of(function, range(5))
        threads.submit_run(run)
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, LIMIT)
        for work in (run, *run.split()):
            threads.stop(work, "its job has ended")
        await asyncio.wait_for(threads.end_of(run), LIMIT)
        assert threads.stuck == []
        threads.close()

    asyncio.run(main())


def test_a_run_that_is_stopped_and_goes_on_is_not_made_by_others() -> None:
    begun, let_go = threading.Event(), threading.Event()
    made: list[int] = []

    def function(x: int) -> None:
        made.append(x)
        begun.set()
        while not let_go.is_set():
            try:
                time.sleep(0.001)
            except CallStopped:
                continue

    async def main() -> None:
        threads = WorkerThreads(asyncio.get_running_loop())
        run = run_of(function, range(5))
        threads.submit_run(run)
        begun.wait(LIMIT)
        threads.stop(run, "its job has ended")
        for _ in range(20):  # It is looked for runs that stand still meanwhile.
            done = asyncio.Event()
            threads.submit(partial(time.sleep, PATIENCE), lambda *_, done=done: done.set())
            await done.wait()
        let_go.set()
        await asyncio.wait_for(threads.end_of(run), LIMIT)
        assert made == [0]
        threads.close()

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(6))
def test_runs_keep_to_limits_and_leave_none_taken(seed: int) -> None:
    """Runs of many jobs, some of them with a call that blocks, some of jobs that end at any moment."""
    shuffle = random.Random(seed)
    computing, most = 0, 0
    counting = threading.Lock()

    def function(x: float) -> float:
        nonlocal computing, most
        with counting:
            computing += 1
            most = max(most, computing)
        try:
            time.sleep(x)
        finally:
            with counting:
                computing -= 1
        return x

    async def main() -> None:
        threads = WorkerThreads(asyncio.get_running_loop())
        limit = Limit(2)
        limits = Limits(limit, None)
        ended: list[CallWork] = []
        receivers: list[LimitedReceiver] = []
        for job in range(20):
            work = CallWork(threads)
            receivers.append(LimitedReceiver(work, limits))
            given = [{"x": 0.02 if job % 3 == 0 and number == 2 else 0.0} for number in range(30)]
            run = CallRun(receivers[-1], CallPlan("op", None, 0, None), FIRST, function, given)
            work.begin_run(run, limits)
            for _ in range(shuffle.choice([0, 1, 5, 50])):
                await asyncio.sleep(0)
            if job % 2:
                work.close()
                ended.append(work)
        deadline = time.monotonic() + LIMIT
        for work in ended:
            await work.ended()
        while limit._free < 2 or limit._waiting or any(len(going_on.ends) < 30 for going_on in receivers[::2]):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.001)
        threads.close()

    asyncio.run(main())
    assert most <= 2
