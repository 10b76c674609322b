"""What adapters print and log comes back with the job, on every target."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, ForEach, Job, JobError, Pipeline, PlaceParam, Session, Yield
from dfmesh.engine import call_lines
from dfmesh.engine.call_lines import CallLines
from dfmesh.engine.message_parts import JobLine
from dfmesh.engine.messages import JobLines
from dfmesh.session.job_log import MOST_LINES, JobLog
from dfmesh.targets.up.job_lines import MOST_AT_END, MOST_AT_ONCE, LinesAmongResults

FILE = Path(__file__).resolve().parents[1] / "federations" / "loud" / "loud.dfm.yaml"
CLI = "from dfmesh.cli import main; main()"
LIMIT = 40.0


@pytest.fixture(scope="module", params=["inproc", "local", "up"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        if request.param == "up":
            place = tmp_path_factory.mktemp("up")
            for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
                (place / name).mkdir(mode=0o700)
                patch.setenv(name, str(place / name))
            command(place, "up", "--detach", str(FILE))
            stack.callback(command, place, "down", str(FILE))
        yield str(request.param)
    sys.modules.pop("loud_operations", None)


def command(place: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CLI, *arguments], cwd=place, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def session(target: str) -> Iterator[Session]:
    """One for all tests, in between of which pytest puts other streams in the place of `sys.stdout`."""
    with Federation.load(FILE).session(target=target, measure=False, output="none") as opened:
        yield opened


def ended(session: Session, pipeline: Pipeline, *sets: dict[str, Any]) -> Job:
    job = session.submit(pipeline, list(sets) or [{}])
    assert job.wait(LIMIT)
    return job


def one(session: Session, operation: str, **arguments: Any) -> Job:
    with Pipeline() as pipeline:
        Yield(getattr(session.federation.ops.loud, operation)(**arguments), place="value")
    return ended(session, pipeline)


def texts(job: Job) -> list[str]:
    return [line.text for line in job.log]


SAID = [("stdout", "", "a"), ("stderr", "", "a on stderr"), ("WARNING", "loud", "a logged")]
COUNTED = [("stdout", "", text) for text in ("a begins", "a 0", "a 1")]


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("Say", SAID),
        ("SayInCoroutine", [*SAID, ("stdout", "", "a on another thread")]),
        ("Count", COUNTED),
        ("CountInCoroutine", COUNTED),
        ("SayApart", SAID),
        ("CountApart", COUNTED),
        ("InThreads", [("stdout", "", "a in its context")]),
    ],
)
def test_lines_say_who_said_them(session: Session, operation: str, said: list[tuple[str, str, str]]) -> None:
    before = time.time()
    job = one(session, operation, text="a")
    lines = list(job.log)
    assert [(line.source, line.logger, line.text) for line in lines] == said
    assert {(line.site, line.operation, line.frame) for line in lines} == {("us", f"loud.{operation}", (0,))}
    assert all(before <= line.time.timestamp() <= time.time() for line in lines)
    assert job.log.dropped == 0
    assert str(job.log).splitlines()[0] == f"[us loud.{operation} #0] {said[0][2]}"


def test_retried_and_limited_calls_are_heard(session: Session) -> None:
    with Pipeline() as pipeline:
        Yield(session.federation.ops.loud.Fail(text="a", retries=1, timeout=20.0))
    assert texts(ended(session, pipeline)) == ["a", "a"]


def test_each_job_and_frame_has_its_own(session: Session) -> None:
    with Pipeline() as pipeline, ForEach(PlaceParam("texts")) as text:
        Yield(session.federation.ops.loud.Raw(text=text))
    jobs = [
        session.submit(pipeline, [{"texts": [f"{job} {first} {second}\n" for second in range(3)]} for first in (0, 1)])
        for job in range(5)
    ]
    for number, job in enumerate(jobs):
        assert job.wait(LIMIT)
        said = {(line.frame, line.text) for line in job.log}
        frames = [(first, second) for first in (0, 1) for second in range(3)]
        assert said == {(frame, f"{number} {frame[0]} {frame[1]}") for frame in frames}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("no end", ["no end"]),
        ("one\ntwo", ["one", "two"]),
        ("\n", [""]),
        ("".join(f"\r{percent}%" for percent in range(101)) + "\n", ["100%"]),
        ("x" * 5000, ["x" * call_lines.LONGEST + call_lines.CUT]),
        ("", []),
    ],
)
def test_text_becomes_lines(session: Session, text: str, lines: list[str]) -> None:
    assert texts(one(session, "Raw", text=text)) == lines


def test_a_flood_is_counted(session: Session) -> None:
    job = one(session, "Flood", count=30_000)
    assert len(job.log) + job.log.dropped == 30_000
    assert call_lines.MOST_PER_SECOND <= len(job.log) <= MOST_LINES
    assert texts(job)[:3] == ["0", "1", "2"]


def test_lines_of_a_job_that_fails(session: Session) -> None:
    job = one(session, "Fail", text="why")
    assert texts(job) == ["why"]
    with pytest.raises(JobError):
        job.result()


def test_lines_come_while_the_job_runs_and_stay_when_it_is_cancelled(session: Session, tmp_path: Path) -> None:
    with Pipeline() as pipeline:
        Yield(session.federation.ops.loud.Hold(text="waits", gate=str(tmp_path / "gate")))
    job = session.submit(pipeline)
    until(lambda: texts(job) == ["waits"])
    assert not job.status.over
    job.cancel()
    assert job.wait(LIMIT)
    assert texts(job) == ["waits"]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("target", ["up"], indirect=True)
def test_a_job_that_is_met_again_has_its_lines(session: Session) -> None:
    job = one(session, "Say", text="a")
    met = session.attach(job.id)
    assert met.wait(LIMIT)
    assert list(met.log) == list(job.log)
    other = one(session, "Say", text="b")
    assert texts(other)[0] == "b"
    logs = command(FILE.parent, "logs", "us", "--job", job.id)
    assert [line.split(" ", 1)[1] for line in logs.splitlines()] == [
        "[us loud.Say #0] a",
        "[us loud.Say #0] a on stderr",
        "[us loud.Say #0] WARNING loud: a logged",
    ]
    assert command(FILE.parent, "logs", "app", "--job", job.id) == ""


@pytest.mark.parametrize("target", ["up"], indirect=True)
def test_a_job_that_is_met_again_has_the_last_lines_of_many(session: Session) -> None:
    with Pipeline() as pipeline:
        Yield(session.federation.ops.loud.Flood(count=12_000))
    job = session.submit(pipeline)
    assert job.wait(LIMIT)
    met = session.attach(job.id)
    assert met.wait(LIMIT)
    assert list(met.log) == list(job.log)
    assert met.log.dropped == job.log.dropped


IN_THE_PROCESS_OF_THE_USER = """
import logging, sys
from dfmesh import Federation, Pipeline, Yield

before = sys.stdout, sys.stderr, logging.getLogRecordFactory()
federation = Federation.load(sys.argv[1])
with Pipeline() as pipeline:
    Yield(federation.ops.loud.Raw(text="its\\n"))
with federation.session(target="inproc", measure=False) as session:
    print("mine")
    job = session.submit(pipeline)
    job.wait()
    print("mine again")
    assert [line.text for line in job.log] == ["its"]
assert (sys.stdout, sys.stderr, logging.getLogRecordFactory()) == before
"""


def test_what_the_user_prints_is_nobodys() -> None:
    script = [sys.executable, "-c", IN_THE_PROCESS_OF_THE_USER, str(FILE)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["mine", "imported", "its", "mine again"]


def test_a_log_keeps_the_last_lines() -> None:
    log = JobLog()
    for number in range(3):
        log.add(JobLines("job", "us", tuple(line(f"{number} {at}") for at in range(5000)), dropped=number))
    assert len(log) == MOST_LINES
    assert log.dropped == 5003
    assert next(iter(log)).text == "1 0"


def test_a_host_keeps_the_first_and_the_last_lines() -> None:
    kept, passed = LinesAmongResults(), JobLog()
    for number in range(200):
        message = JobLines("job", "us", tuple(line(f"{number} {at}") for at in range(100)))
        now = kept.take(message)
        if now is not None:
            passed.add(now)
    for rest in kept.rest("job"):
        passed.add(rest)
    assert len(passed) == MOST_AT_ONCE + MOST_AT_END
    assert len(passed) + passed.dropped == 20_000
    assert list(passed)[-1].text == "199 99"


def line(text: str) -> JobLine:
    return JobLine(0.0, "loud.Say", "0", (0,), "stdout", "", text)


def test_calls_that_end_no_line_leave_nothing_behind() -> None:
    async def body() -> None:
        sent: list[JobLine] = []
        going_on = {1}
        lines = CallLines(
            asyncio.get_running_loop(),
            lambda call: ("loud.Say", "0", (call,)) if call in going_on else None,
            lambda more, dropped: sent.extend(more),
        )
        lines.say(1, "stdout", "", "be")
        lines.flush()
        assert sent == []
        lines.say(1, "stdout", "", "gins")
        going_on.clear()
        lines.flush()
        assert [(one.text, one.frame) for one in sent] == [("begins", (1,))]
        assert lines._unfinished == {}
        lines.close()
        lines.say(2, "stdout", "", "too late\n")
        assert len(sent) == 1

    asyncio.run(body())
