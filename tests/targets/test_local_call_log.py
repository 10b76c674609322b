"""The table of calls that outlives a site."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from dfmesh.engine.call_log import RUN
from dfmesh.engine.frame_run import FrameRun
from dfmesh.targets.local.call_log import TABLE_SIZE, CallLog, clear_table, make_table, read_table

frames = st.lists(st.integers(0, 2**63 - 1), max_size=20).map(tuple)
calls = st.tuples(st.text(max_size=100), st.integers(0, 2**32 - 1), frames)


@given(st.lists(calls, max_size=30), st.data())
@settings(max_examples=50, deadline=None)
def test_calls_that_go_on_are_listed(made: list[tuple[str, int, tuple[int, ...]]], data: st.DataObject) -> None:
    table = make_table()
    try:
        log = CallLog(table)
        slots = [log.started(*call) for call in made]
        ended = data.draw(st.sets(st.sampled_from(range(len(made))))) if made else set()
        for index in ended:
            log.ended(slots[index])
        left = sorted((t, f[:12]) for i, (_, t, f) in enumerate(made) if i not in ended)
        assert sorted((t, f) for _, t, f in read_table(table)) == left
        short = {job for i, (job, _, _) in enumerate(made) if i not in ended and len(job.encode()) <= 72}
        assert short <= {job for job, _, _ in read_table(table)}
    finally:
        os.close(table)


def test_more_calls_than_slots() -> None:
    table = make_table()
    log = CallLog(table)
    slots = [log.started("job", index, (0,)) for index in range(3000)]
    assert len(read_table(table)) == 1024
    for slot in slots:
        log.ended(slot)
    assert read_table(table) == ()
    assert log.started("job", 5, ()) >= 0
    clear_table(table)
    assert read_table(table) == ()
    os.close(table)


def test_calls_that_began_together_stand_in_one_slot() -> None:
    table = make_table()
    log = CallLog(table)
    slot = log.run_started("job", 3, FrameRun((1,), 5, RUN))
    assert read_table(table) == tuple(("job", 3, (1, number)) for number in range(5, 5 + RUN))
    log.run_left(slot, 0b101)
    assert read_table(table) == (("job", 3, (1, 5)), ("job", 3, (1, 7)))
    log.ended(slot)
    assert read_table(table) == ()
    os.close(table)


@given(st.binary(min_size=200, max_size=2000))
@settings(max_examples=50, deadline=None)
def test_a_table_that_the_site_ruined_can_be_read(data: bytes) -> None:
    table = make_table()
    os.pwrite(table, (data * (TABLE_SIZE // len(data) + 1))[:TABLE_SIZE], 0)
    assert isinstance(read_table(table), tuple)
    os.close(table)
