"""What a host keeps on disk: whole after a crash, bounded, read while it is written."""

from __future__ import annotations

import os
import resource
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from up_host import doubling

from dfmesh import Federation, ForEach, Pipeline, Yield
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AddParameters, AnyMessage, CloseParameters, FrameFinished, YieldPackage
from dfmesh.errors import SessionError
from dfmesh.session.job_plan import plan_of
from dfmesh.targets.up import job_store, parameter_spool, site_log
from dfmesh.targets.up.job_store import JobStore, pick
from dfmesh.targets.up.journal import Ended, Journal
from dfmesh.targets.up.messages import JobEntry, OwnerLeft, make_codec
from dfmesh.targets.up.outline import outline_of
from dfmesh.targets.up.parameter_spool import ParameterSpool
from dfmesh.targets.up.record_log import RecordLog, RecordLogError, RecordLogReader, ignore_check, recover
from dfmesh.targets.up.site_log import SiteLog, read_log
from dfmesh.targets.wire import FIRST_NOTICE, MESSAGE, Attachment, FrameReader

CODEC = make_codec()
JOB = "0123456789abcdef"


class Turn:
    """Stands for a turn of the event loop."""

    def __init__(self) -> None:
        self._later: list[Callable[[], None]] = []

    def soon(self, call: Callable[[], None]) -> None:
        self._later.append(call)

    def end(self) -> None:
        later, self._later = self._later, []
        for call in later:
            call()


def result(number: int, size: int = 10) -> YieldPackage:
    data = bytes([number % 256]) * size
    buffers = (Attachment(memoryview(data)),) if size > 1000 else ()
    return YieldPackage(JOB, "x", (number,), "%1", "a", Payload(b"head" if buffers else data, buffers))


def same(found: Any, expected: YieldPackage) -> bool:
    views = [bytes(buffer.view) for buffer in found.payload.buffers]
    return bool(
        found.frame == expected.frame
        and found.payload.data == expected.payload.data
        and views == [bytes(buffer.view) for buffer in expected.payload.buffers]
    )


def write(path: Path, messages: list[Any]) -> None:
    turn = Turn()
    log = RecordLog(path, CODEC, turn.soon)
    for number, message in enumerate(messages):
        log.append(message)
        if number % 3 == 2:
            turn.end()
    log.close()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    messages = [result(number, 10 if number % 4 else 700_000) for number in range(20)]
    write(tmp_path / "log", messages)
    found: list[Any] = []
    recover(tmp_path / "log", CODEC, found.append)
    assert len(found) == len(messages)
    assert all(same(*pair) for pair in zip(found, messages, strict=True))
    streamed: list[Any] = []
    reader = FrameReader(CODEC, streamed.append, ignore_check)
    data = (tmp_path / "log").read_bytes()
    for start in range(0, len(data), 50_000):
        reader.feed(data[start : start + 50_000])
    assert all(same(*pair) for pair in zip(streamed, messages, strict=True))


def test_a_log_that_was_cut_anywhere_loses_only_its_last_batch(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, [result(number, 300) for number in range(9)])
    whole = path.read_bytes()
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        found: list[Any] = []
        recover(path, CODEC, found.append)
        assert [message.frame[0] for message in found] == list(range(len(found)))
        assert len(found) == size * 3 // len(whole) * 3
        turn = Turn()
        log = RecordLog(path, CODEC, turn.soon)
        log.append(result(99))
        log.close()
        again: list[Any] = []
        recover(path, CODEC, again.append)
        assert [message.frame[0] for message in again] == [*range(len(found)), 99]


def test_a_log_with_a_wrong_byte_ends_before_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write(path, [result(number, 300) for number in range(9)])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found: list[Any] = []
    recover(path, CODEC, found.append)
    assert len(found) == 3


def test_readers_see_only_what_is_on_disk(tmp_path: Path) -> None:
    turn, told = Turn(), []
    log = RecordLog(tmp_path / "log", CODEC, turn.soon, lambda: told.append(log.size))
    log.append(result(0))
    assert (log.size, told) == (0, [])
    turn.end()
    assert told == [log.size] == [(tmp_path / "log").stat().st_size]
    reader = RecordLogReader(log, CODEC)
    assert same(reader.next(), result(0))
    assert reader.next() is None
    log.append(result(1, 400_000))  # more than a batch: it does not wait for the end of the turn
    assert same(reader.next(), result(1, 400_000))
    log.close()


def test_a_disk_that_is_full_is_told_once(tmp_path: Path) -> None:
    turn, errors = Turn(), []
    log = RecordLog(tmp_path / "log", CODEC, turn.soon, on_broken=errors.append)
    log.append(result(0))
    turn.end()
    size = log.size
    os.dup2(os.open("/dev/full", os.O_WRONLY), log._descriptor)
    for number in range(3):
        log.append(result(number))
        turn.end()
    assert [error.strerror for error in errors] == ["No space left on device"]
    assert log.size == size
    log.close()


def test_of_a_batch_that_found_no_room_nothing_stays(tmp_path: Path) -> None:
    turn, errors = Turn(), []
    log = RecordLog(tmp_path / "log", CODEC, turn.soon, on_broken=errors.append)
    log.append(result(0))
    turn.end()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.size + 1000, limits[1]))
    try:
        log.append(result(1, 400_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(errors) == 1
    assert (tmp_path / "log").stat().st_size == log.size
    log.close()


# Parameter sets


def sets(count: int, start: int = 0) -> list[AddParameters]:
    return [AddParameters(JOB, (number,), {"x": Payload(bytes([number]))}) for number in range(start, start + count)]


@pytest.fixture
def few_at_homesite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameter_spool, "MAX_AT_HOMESITE", 4)


def make_spool(path: Path, sent: list[AnyMessage]) -> ParameterSpool:
    return ParameterSpool(RecordLog(path, CODEC, Turn().soon), CODEC, sent.append)


@pytest.mark.usefixtures("few_at_homesite")
def test_parameter_sets_wait_on_disk_in_order(tmp_path: Path) -> None:
    sent: list[AnyMessage] = []
    spool = make_spool(tmp_path / "log", sent)
    for message in sets(10):
        spool.add(message)
    assert sent == sets(4)
    spool.frame_finished()
    spool.frame_finished()
    assert sent == sets(6)
    for message in sets(2, 10):
        spool.add(message)
    spool.close(CloseParameters(JOB))
    spool.add(sets(1, 12)[0])
    for _ in range(10):
        spool.frame_finished()
    assert sent == [*sets(12), CloseParameters(JOB)]
    assert spool.given == 12


@pytest.mark.usefixtures("few_at_homesite")
def test_parameter_sets_of_an_earlier_host(tmp_path: Path) -> None:
    sent: list[AnyMessage] = []
    spool = make_spool(tmp_path / "log", sent)
    for message in sets(6):
        spool.add(message)
    spool.close(OwnerLeft(JOB))
    spool._log.close()
    sent.clear()
    again = make_spool(tmp_path / "log", sent)
    again.restore(JOB, 6, closed=True)
    assert sent == sets(4)
    again.frame_finished()
    again.frame_finished()
    assert sent == [*sets(6), CloseParameters(JOB)]


# Jobs that are over


def ended(number: int, size: int = 10, when: float | None = None) -> Ended:
    moment = time.time() if when is None else when
    entry = JobEntry(f"{number:016x}", "x", "finished", moment, moment, 1, 0, 0, 1, size)
    return Ended(entry, {}, {})


def fill(store: JobStore, jobs: list[Ended]) -> None:
    for job in jobs:
        journal = Journal(store.path(job.entry.job), CODEC, Turn().soon, lambda: None, lambda error: None)
        journal.end(job)
        store.add(job)


def test_old_jobs_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_store, "MOST_JOBS", 3)
    monkeypatch.setattr(job_store, "MOST_BYTES", 100)
    store = JobStore(tmp_path / "jobs", CODEC)
    day = 24 * 3600
    fill(store, [ended(1, when=time.time() - 15 * day), *(ended(number) for number in range(2, 7))])
    assert [int(job, 16) for job in store.ended] == [4, 5, 6]
    fill(store, [ended(7, 85)])
    assert [int(job, 16) for job in store.ended] == [6, 7]
    fill(store, [ended(8, 1000)])
    assert [int(job, 16) for job in store.ended] == [8]
    assert [int(path.name, 16) for path in (tmp_path / "jobs").iterdir()] == [8]
    again = JobStore(tmp_path / "jobs", CODEC)
    assert list(again.load()) == []
    assert again.ended == store.ended


def test_what_is_no_journal_is_passed_over(tmp_path: Path) -> None:
    store = JobStore(tmp_path, CODEC)
    (tmp_path / "empty").mkdir()
    for name, data in (("garbage", b"\x00" * 100), ("cut", b"")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "submission").write_bytes(data)
        (tmp_path / name / "ended").write_bytes(b"no")
    (tmp_path / "wrong").mkdir()
    write(tmp_path / "wrong" / "submission", [FrameFinished(JOB, (0,))] * 3)
    assert list(store.load()) == []
    assert store.ended == {}
    assert (tmp_path / "garbage").exists()
    assert not (tmp_path / "cut").exists()  # nobody can go on with it, nor forget it


def test_a_log_of_something_else_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(_batch(struct.pack("<IB", 5, MESSAGE) + b"\xc1" * 5))
    with pytest.raises(RecordLogError, match="cannot be read"):
        recover(path, CODEC, lambda message: None)


def _batch(body: bytes) -> bytes:
    return struct.pack("<IBQI", 12, FIRST_NOTICE, len(body), zlib.crc32(body)) + body


def test_beginnings_of_ids() -> None:
    assert pick("ab", ["abc", "xyz"]) == "abc"
    assert pick("abc", ["abc", "abcd"]) == "abc"
    for prefix, reason in (("", "no job"), ("q", "no job"), ("a", "several jobs begin with 'a'")):
        with pytest.raises(SessionError, match=reason):
            pick(prefix, ["abc", "axy"])


# What sites print


def test_lines_of_sites_are_bounded_and_keep_their_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_log, "FILE_SIZE", 1000)
    turn, told = Turn(), []
    log = SiteLog(tmp_path, turn.soon, lambda: told.append(log.end))
    middle = 0
    for number in range(100):
        log.take("us", f"line {number}")
        turn.end()
        if number == 89:
            middle = log.end
    assert told[-1] == log.end
    assert len(list(tmp_path.iterdir())) == 2
    data, position = log.read(middle, 10_000)
    assert position == log.end
    assert [line.split(b" ", 1)[1] for line in data.splitlines()] == [b"us line %d" % n for n in range(90, 100)]
    data, position = read_log(tmp_path, 0, 10_000)
    assert data.endswith(b"\n")
    assert position < log.end or data.count(b"\n") < 100
    log.close()
    again = SiteLog(tmp_path, turn.soon, lambda: None)
    assert again.end == log.end
    again.take("us", "of the next host")
    again.close()
    assert again.read(log.end, 1000)[0].endswith(b" us of the next host\n")


# What clients are told of a job


def test_the_outline_of_a_job_is_that_of_its_pipeline(federation: Federation) -> None:
    up = federation.ops.up
    with Pipeline(name="several") as pipeline:
        early = up.Double(x=1, site="b")
        Yield(1, place="x")
        with ForEach(up.Numbers(n=3)) as number:
            Yield(up.Double(x=number, site="a"), place="inner")
        Yield(early, place="x")
        Yield(up.Double(x=early, site="a"), place="x")
    for written in (pipeline, doubling(federation)):
        compiled = federation.compile(written)
        plan, outline = plan_of(compiled), outline_of(compiled.nets)
        assert outline.sources == plan.sources
        yields = sorted(outline.order, key=outline.order.__getitem__)
        assert yields == sorted(yields, key=plan.order.__getitem__)
        assert len(yields) == sum(plan.sources.values())
