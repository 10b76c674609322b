"""Frames, iterations, calls and slots that are kept together behave as if each were kept alone."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from dfmesh.engine.call_log import RUN
from dfmesh.engine.frame_run import FrameRun, depths_of, runs_of
from dfmesh.engine.intervals import Intervals
from dfmesh.engine.messages import IterationsDone
from dfmesh.engine.noted_calls import NotedCalls
from dfmesh.engine.open_calls import OpenCalls
from dfmesh.engine.open_iterations import OpenIterations


@pytest.mark.parametrize("around", [(), (3,), (0, 5, 2)])
def test_a_run_is_a_sequence_of_frames(around: tuple[int, ...]) -> None:
    run = FrameRun(around, 4, 5)
    frames = [(*around, number) for number in range(4, 9)]
    assert list(run) == [run[index] for index in range(5)] == frames
    assert run[-1] == frames[-1]
    assert len(run) == 5
    for start in range(7):
        for stop in range(7):
            assert list(run[start:stop]) == frames[start:stop]
    with pytest.raises(IndexError):
        run[5]
    assert runs_of(run) == runs_of(frames) == [run]
    assert depths_of(run) == depths_of(frames) == {len(around) + 1}


def test_frames_that_do_not_follow_one_another_are_several_runs() -> None:
    frames = [(0, 1), (0, 2), (1, 3), (1, 5), (1, 4), (), (0,)]
    runs = [FrameRun((0,), 1, 2), FrameRun((1,), 3, 1), FrameRun((1,), 5, 1), FrameRun((1,), 4, 1), FrameRun((), 0, 1)]
    assert runs_of(frames) == runs
    assert runs_of([]) == []


@pytest.mark.parametrize("frames", [FrameRun((0,), 7, 300), ((0, 1), (2, 3))])
def test_both_forms_cross_the_wire(frames: Any) -> None:
    message = IterationsDone("job", 1, frames)
    decode = msgspec.msgpack.Decoder(IterationsDone).decode
    assert decode(msgspec.msgpack.encode(message)) == message


@pytest.mark.parametrize("run", [FrameRun((), -1, 1), FrameRun((), 0, 0), FrameRun((), 0, -5), FrameRun((), 0, 2**63)])
def test_a_run_that_is_none_is_no_message(run: FrameRun) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(run), type=FrameRun)


@pytest.mark.parametrize("seed", range(100))
def test_intervals_are_a_set_of_numbers(seed: int) -> None:
    draw = random.Random(seed)
    found, expected = Intervals(), set()
    for _ in range(60):
        start = draw.randrange(40)
        numbers = set(range(start, start + 1 + draw.randrange(8)))
        stop = start + len(numbers)
        match draw.randrange(4):
            case 0:
                assert found.add(start) == (start not in expected)
                expected.add(start)
            case 1:
                assert found.add_all(start, stop) == len(numbers - expected)
                expected |= numbers
            case 2:
                assert _numbers(found.remove_all(start, stop)) == sorted(numbers & expected)
                expected -= numbers
            case 3:
                assert _numbers(found.overlap(start, stop)) == sorted(numbers & expected)
        assert _numbers(zip(found.starts, found.ends, strict=True)) == sorted(expected)
        assert all(end < start for end, start in zip(found.ends, found.starts[1:], strict=False))


def _numbers(intervals: Any) -> list[int]:
    return [number for start, stop in intervals for number in range(start, stop)]


@pytest.mark.parametrize("seed", range(100))
def test_an_iteration_is_open_until_all_sites_are_done(seed: int) -> None:
    draw = random.Random(seed)
    sites = draw.randrange(4)
    found = OpenIterations(sites)
    expected: dict[int, set[int]] = {}
    opened = 0
    for _ in range(60):
        first, count = draw.randrange(opened + 3), 1 + draw.randrange(9)
        if not sites or draw.random() < 0.4:
            found.open(opened, count)
            expected.update({number: set(range(sites)) for number in range(opened, opened + count) if sites})
            opened += count
            continue
        site, closed = draw.randrange(sites), False
        for number in range(first, first + count):
            left = expected.get(number, set())
            if site in left:
                left.discard(site)
                if not left:
                    del expected[number]
                    closed = True
        assert found.done(site, first, count) == closed
        assert len(found) == len(expected)


class Log:
    """A call log that is easy to read."""

    def __init__(self) -> None:
        self.slots: dict[int, tuple[Any, int]] = {}
        self._next = 0

    def started(self, _job: str, _transition: int, frame: tuple[int, ...]) -> int:
        return self.run_started("", 0, FrameRun(frame[:-1], frame[-1], 1))

    def run_started(self, _job: str, _transition: int, frames: FrameRun) -> int:
        assert len(frames) <= RUN
        self._next += 1
        self.slots[self._next] = (list(frames), (1 << len(frames)) - 1)
        return self._next

    def run_left(self, slot: int, left: int) -> None:
        self.slots[slot] = (self.slots[slot][0], left)

    def ended(self, slot: int) -> None:
        del self.slots[slot]

    @property
    def frames(self) -> set[Any]:
        return {frame for frames, left in self.slots.values() for bit, frame in enumerate(frames) if left >> bit & 1}


@pytest.mark.parametrize("seed", range(100))
def test_calls_are_known_and_noted_until_they_end(seed: int) -> None:
    draw = random.Random(seed)
    calls, log = OpenCalls(), Log()
    noted = NotedCalls("job", log)
    expected: dict[int, tuple[Any, tuple[int, ...]]] = {}
    following = 0
    for _ in range(40):
        transition: Any = draw.choice("ab")
        count = draw.choice([1, 2, 10, RUN, 2 * RUN + 3])
        match draw.randrange(5):
            case 0:
                frame = (9, following)
                calls.add(following, transition, frame)
                noted.started(following, 0, frame)
                expected[following] = (transition, frame)
                following += 1
            case 1:
                frames = FrameRun((draw.randrange(3),), following, count)
                given = frames if draw.random() < 0.7 else list(frames)[:20]
                calls.add_all(following, transition, given)
                noted.all_started(following, 0, given)
                expected.update({following + at: (transition, frame) for at, frame in enumerate(given)})
                following += len(given)
            case 2 if expected:
                call = draw.choice(list(expected))
                noted.ended(call)
                assert calls[call] == calls.get(call) == calls.pop(call) == expected.pop(call)
                assert call not in calls
            case _ if expected:
                first = draw.choice(list(expected))
                stop = first
                while stop in expected and stop - first < count:
                    stop += 1
                together = calls.pop_all(range(first, stop))
                ended = [expected.pop(call) for call in range(first, stop)]
                noted.all_ended(range(first, stop))
                if together is None:
                    assert [calls.pop(call) for call in range(first, stop)] == ended
                else:
                    assert [(together[0], frame) for frame in together[1]] == ended
        assert len(calls) == len(expected)
        assert log.frames == {frame for _, frame in expected.values()}
    assert {call: calls[call] for call in expected} == expected
    with pytest.raises(KeyError):
        calls.pop(following)
    noted.clear()
    assert log.slots == {}
    assert len(noted) == 0
