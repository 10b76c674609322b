"""Sites that die, links that are slow, clients that cancel or go, in any order: no result is lost, none comes twice.

`DFMESH_SCHEDULES` says how many schedules are run; 10,000 take a minute and a half of one core.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from engine_support import Probe
from faulty_schedules import SITES, Schedule, pipelines, quiet, run, schedule, smallest

from dfmesh.engine import events, job_outbox, stream_takers, streams
from dfmesh.engine.job_outbox import JobOutbox
from dfmesh.engine.kept_calls import Kept, KeptCalls
from dfmesh.engine.submitted_job import SubmittedJob

SCHEDULES = int(os.environ.get("DFMESH_SCHEDULES", "1500"))
BLOCKS = 50


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of a few items, that fill their windows all the same."""
    monkeypatch.setattr(streams, "STREAM_WINDOW", 8)
    monkeypatch.setattr(stream_takers, "STREAM_WINDOW", 8)


def first_found(seeds: Iterable[int]) -> str:
    """Say what the first schedule finds that finds something, with as little as it needs for that."""
    for seed in seeds:
        found = run(schedule(seed))
        if found:
            small = smallest(schedule(seed))
            return f"{small}\n  {run(small)[0]}"
    return ""


@pytest.mark.parametrize("block", range(BLOCKS))
def test_schedules_of_faults(block: int) -> None:
    found = first_found(range(block, SCHEDULES, BLOCKS))
    assert not found, found


def test_schedules_meet_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never happens proves nothing."""
    met: Counter[str] = Counter()
    find = KeptCalls.find

    def found(self: KeptCalls, key: Any) -> Kept | None:
        kept = find(self, key)
        met["kept results given"] += kept is not None
        return kept

    def watch(probe: Probe) -> None:
        met["begun again"] += len(probe.submitted.restarts)
        met["submitted again"] += probe.submitted._submit.submission - 1
        met["results that came again"] += probe.repeated

    monkeypatch.setattr(KeptCalls, "find", found)
    for seed in range(150):
        run(schedule(seed), watch)
    for seed in range(400):
        it = schedule(seed)
        met[it.pipeline] += 1
        met.update(fault[0] for fault in it.faults)
        met.update(f"kill {fault[1]}" for fault in it.faults if fault[0] == "kill")
    wanted = ["begun again", "submitted again", "kept results given", "results that came again"]
    wanted += [*pipelines(), "kill", "slow", "cancel", "leave", *(f"kill {site}" for site in SITES)]
    assert all(met[name] >= 4 for name in wanted), met


def lost_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The credit for the streams of one parameter set is not sent."""
    send = job_outbox.SENDERS[events.SendStreamCredit]

    def careless(self: JobOutbox, instruction: events.SendStreamCredit) -> None:
        if instruction.frame[0] != 1:
            send(self, instruction)

    monkeypatch.setitem(job_outbox.SENDERS, events.SendStreamCredit, careless)


def yielded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that comes again is taken in again."""

    def careless(self: SubmittedJob, node: str, frame: tuple[int, ...]) -> bool:
        return True

    monkeypatch.setattr(SubmittedJob, "_is_new", careless)


@pytest.mark.parametrize("plant", [lost_credit, yielded_twice])
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]) -> None:
    for name in pipelines():
        quiet(name)
    plant(monkeypatch)
    found = first_found(range(300))
    assert found, "no schedule finds it"
    print(f"{plant.__name__}: {found}")


def test_a_schedule_is_told_in_words() -> None:
    assert str(Schedule("loop", 7, (("kill", "a", 1.5, 0),))) == "pipeline loop, seed 7: kill['a', 1.5, 0]"
