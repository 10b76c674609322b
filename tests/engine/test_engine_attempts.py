"""Beginning a job again, piece by piece: what is kept, what is announced, what the homesite and the submitter say."""

from __future__ import annotations

import random
from typing import Any

import pytest
from engine_support import CALC, HOMESITE, compiled, federation
from faulty_schedules import FAULTY

from dfmesh import Pipeline, PlaceParam, Yield
from dfmesh.engine import announced_results, kept_calls
from dfmesh.engine.admission import objections
from dfmesh.engine.announced_results import AnnouncedResults
from dfmesh.engine.attempts import MAX_FRUITLESS, attempt_id, is_job_id, job_of, survivable
from dfmesh.engine.frame_run import FrameRun
from dfmesh.engine.home_job import HomeJob
from dfmesh.engine.intervals import Intervals
from dfmesh.engine.kept_calls import Kept, KeptCalls, OnceCalls
from dfmesh.engine.message_parts import Failure, Payload, SiteReport
from dfmesh.engine.messages import (
    AddParameters,
    CancelJob,
    CloseParameters,
    EndJob,
    FailureReport,
    FrameFinished,
    FrameReport,
    JobEnded,
    JobFinished,
    JobRefused,
    JobRestarted,
    JobStarted,
    OpenFrame,
    Progress,
    ReportProgress,
    SiteLost,
    StartJob,
    SubmitJob,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.submitted_job import SubmittedJob

CLIENT = "client:1"
JOB = "j"
SITES = ("app", "a", "b")
LOST = Failure("a", "faulty.Add", "%1", (0,), "", "SiteLost", "killed by SIGKILL")
KILLED = SiteLost("", "app", "killed by SIGKILL", ())
FAILURE = Failure("b", "x.Y", "%1", (0,), "", "ValueError", "no")


def plan(*, once: str = "") -> Any:
    """A chain from site a to site b, where one of them does something once only."""
    ops = federation(FAULTY).ops.faulty
    with Pipeline() as p:
        value: Any = PlaceParam("n")
        for site in ("a", "b"):
            value = ops.Send(key=1, x=value, site=site) if site == once else ops.Add(a=value, b=1, site=site)
        Yield(value)
        Yield("of the homesite")
    return compiled(p, FAULTY)


def home_of(**options: Any) -> HomeJob:
    made = plan(**options)
    return HomeJob(JOB, CLIENT, made.nets, made.encoded_nets)


def started(home: HomeJob, *sites: str) -> HomeJob:
    home.start()
    for site in sites or SITES:
        home.handle(site, JobStarted(home.attempt))
    return home


def running(home: HomeJob, frames: int = 2) -> HomeJob:
    started(home)
    for number in range(frames):
        home.handle(CLIENT, AddParameters(JOB, (number,), {"n": Payload(number)}))
    return home


def left(home: HomeJob, *sites: str, attempt: str = "") -> list[Any]:
    sends: list[Any] = []
    for site in sites:
        sends += home.handle(site, JobEnded(attempt or home.attempt, SiteReport(site, (), {})))
    return sends


def result(home: HomeJob, frame: tuple[int, ...]) -> YieldPackage:
    return YieldPackage(home.attempt, "yield", frame, "%3", "b", Payload(1))


# The homesite


def test_the_unfinished_frames_are_opened_again() -> None:
    home = running(home_of())
    home.handle("b", result(home, (0,)))
    for site in SITES:
        home.handle(site, FrameReport(JOB, (0,), int(site == "b")))
    sends = home.site_lost("a", [LOST])
    assert sends[0] == (CLIENT, JobRestarted(JOB, (LOST,)))
    assert sends[1:] == [("app", EndJob(JOB, again=True)), ("b", EndJob(JOB, again=True))]
    assert home.handle("b", result(home, (1,))) == [], "it comes again"
    home.handle(CLIENT, AddParameters(JOB, (2,), {"n": Payload(2)}))
    sends = left(home, "app", "b")
    assert home.attempt == "j#1.2"
    assert [(peer, message.job, message.resumable) for peer, message in sends if isinstance(message, StartJob)] == [
        (site, "j#1.2", True) for site in SITES
    ]
    assert home.handle("b", JobStarted(JOB)) == [], "that is of the old attempt"
    opened = [home.handle(site, JobStarted("j#1.2")) for site in SITES][-1]
    assert [message.frame for peer, message in opened if peer == "a" and isinstance(message, OpenFrame)] == [(1,), (2,)]
    assert not any(isinstance(message, JobStarted) for _, message in opened), "the client knows"
    assert home.handle("b", result(home, (1,)))[0] == (CLIENT, YieldPackage(JOB, "yield", (1,), "%3", "b", Payload(1)))


def test_what_failed_in_an_unfinished_frame_may_still_go_well() -> None:
    home = running(home_of())
    home.handle("b", FailureReport(JOB, FAILURE))
    for site in SITES:
        told = home.handle(site, FrameReport(JOB, (0,), 0))
    assert told[0] == (CLIENT, FrameFinished(JOB, (0,), (FAILURE,)))
    home.handle("b", FailureReport(JOB, Failure("b", "x.Y", "%1", (1,), "", "ValueError", "no")))
    home.handle(CLIENT, CloseParameters(JOB))
    home.site_lost("a", [LOST])
    left(home, "app", "b")
    for site in SITES:
        home.handle(site, JobStarted(home.attempt))
    for site in SITES:
        home.handle(site, FrameReport(home.attempt, (1,), 0))
    finish = left(home, *SITES)[-1][1]
    assert (finish.status, finish.failures) == ("failed", (FAILURE,))


@pytest.mark.parametrize("when", ["leaving", "starting"])
def test_another_loss_while_it_begins_again(when: str) -> None:
    home = running(home_of())
    home.site_lost("a", [LOST])
    if when == "starting":
        left(home, "app", "b")
        home.handle("app", JobStarted(home.attempt))
    sends = home.site_lost("b", [LOST])
    assert home.status == "leaving"
    sends = left(home, "app") if when == "leaving" else left(home, "app", "a")
    assert {peer for peer, message in sends if isinstance(message, StartJob)} == set(SITES)
    for site in SITES:
        home.handle(site, JobStarted(home.attempt))
    assert home.status == "running"


def test_a_loss_that_cannot_be_made_good_while_it_begins_again() -> None:
    home = running(home_of(once="b"))
    home.site_lost("a", [LOST])
    sends = home.site_lost("b", [LOST])
    assert sends == [("app", EndJob(JOB))]
    finish = left(home, "app")[-1][1]
    assert finish.status == "failed"
    assert "faulty.Send of site b may have run" in finish.failures[-1].message


def test_a_site_that_cannot_repeat_ends_the_job() -> None:
    home = running(home_of(once="b"))
    home.site_lost("a", [LOST])
    reason = Failure("b", "faulty.Send", "%2", (0,), "", "CannotRepeat", "a generator")
    left(home, "app")
    sends = home.handle("b", JobEnded(JOB, SiteReport("b", (), {}), (reason,)))
    assert {peer for peer, message in sends if message == EndJob(JOB)} == {"app", "b"}, "so that nothing is kept"
    finish = left(home, "app", "b")[-1][1]
    assert (finish.status, finish.failures) == ("failed", (LOST, reason))


def test_what_must_not_run_twice_is_begun_again_while_nothing_has_run() -> None:
    home = started(home_of(once="a"), "app", "b")
    home.handle(CLIENT, AddParameters(JOB, (0,), {"n": Payload(1)}))
    for _ in range(2):
        sends = home.site_lost("a", [LOST])
        assert [message for peer, message in sends if peer == CLIENT] == [JobRestarted(JOB, (LOST,))]
        sends = left(home, "app", "b")
        assert {peer for peer, message in sends if isinstance(message, StartJob)} == set(SITES)
    started_all = [send for site in SITES for send in home.handle(site, JobStarted(home.attempt))]
    assert {peer for peer, message in started_all if isinstance(message, OpenFrame)} == set(SITES)
    home.site_lost("a", [LOST])
    assert home.status == "running", "now it may have run, so the others come to rest"


@pytest.mark.parametrize("when", ["leaving", "starting"])
def test_a_job_is_cancelled_while_it_begins_again(when: str) -> None:
    home = running(home_of())
    home.site_lost("a", [LOST])
    if when == "starting":
        left(home, "app", "b")
        home.handle("b", JobStarted(home.attempt))
    sends = home.handle(CLIENT, CancelJob(JOB, "enough"))
    assert ("b", EndJob(home.attempt)) in sends
    if when == "leaving":
        left(home, "app")
    finish = left(home, "b")[-1][1]
    assert finish.status == "cancelled", "who is not back is not waited for"


def test_a_site_that_refuses_to_begin_again_fails_the_job() -> None:
    home = running(home_of())
    home.site_lost("a", [LOST])
    left(home, "app", "b")
    home.handle("a", JobRefused(home.attempt, (FAILURE,)))
    assert home.status == "failed"


def test_progress_is_told_also_while_it_begins_again() -> None:
    home = running(home_of())
    assert len(home.handle(CLIENT, ReportProgress(JOB))) == 3
    assert (CLIENT, Progress(JOB, ())) in home.site_lost("a", [LOST])
    assert home.handle(CLIENT, ReportProgress(JOB)) == [(CLIENT, Progress(JOB, ()))]


def test_a_job_is_not_begun_for_ever() -> None:
    home = running(home_of())
    for _ in range(MAX_FRUITLESS - 1):
        home.site_lost("a", [LOST])
        left(home, "app", "b")
        for site in SITES:
            home.handle(site, JobStarted(home.attempt))
    home.site_lost("a", [LOST])
    finish = left(home, "app", "b")[-1][1]
    assert finish.status == "failed"
    assert list(finish.failures[:-1]) == [LOST] * MAX_FRUITLESS
    assert "lost 5 times in a row" in finish.failures[-1].message


def test_a_job_goes_on_as_long_as_each_attempt_brings_something_new() -> None:
    home = running(home_of())
    for came in range(1, 3 * MAX_FRUITLESS):
        for number in range(came):
            home.handle("b", YieldPackage(home.attempt, "yield", (0, number), "%3", "b", Payload(1)))
        home.site_lost("a", [LOST])
        left(home, "app", "b")
        for site in SITES:
            home.handle(site, JobStarted(home.attempt))
    assert home.status == "running"
    for _ in range(MAX_FRUITLESS - 1):
        home.site_lost("a", [LOST])
        finish = left(home, "app", "b")[-1][1]
        for site in SITES:
            home.handle(site, JobStarted(home.attempt))
    assert finish.status == "failed"


def test_a_single_site_that_was_done_before_it_heard_of_the_end_and_has_not_said_that_it_started() -> None:
    ops = federation(FAULTY).ops.faulty
    with Pipeline() as p:
        Yield(ops.Send(key=1, x=PlaceParam("n"), site="b"))
    made = compiled(p, FAULTY)
    home = HomeJob(JOB, CLIENT, made.nets, made.encoded_nets)
    home.start()
    home.handle(CLIENT, AddParameters(JOB, (0,), {"n": Payload(1)}))
    home.handle("b", YieldPackage(JOB, "yield", (0,), "%1", "b", Payload(1)))
    home.handle("b", FrameReport(JOB, (0,), 1))
    home.handle(CLIENT, CloseParameters(JOB))
    sends = home.handle("b", Progress(JOB, (SiteReport("b", (), {}),), last=True))
    assert [type(message) for peer, message in sends if peer == CLIENT] == [JobFinished]
    assert home.status == "finished"


# Who submitted it


def submitted(**options: Any) -> SubmittedJob:
    made = plan(**options)
    job = SubmittedJob(SubmitJob(JOB, "", made.encoded_nets), made.nets)
    for number in range(3):
        job.sent(AddParameters(JOB, (number,), {"n": Payload(number)}))
    return job


def package(frame: tuple[int, ...]) -> YieldPackage:
    return YieldPackage(JOB, "yield", frame, "%3", "b", Payload(1))


def test_the_rest_is_submitted_again() -> None:
    job = submitted()
    job.sent(CloseParameters(JOB))
    assert job.received(package((0,))) is not None
    assert job.received(FrameFinished(JOB, (0,), (FAILURE,))) is not None
    assert job.received(package((1,))) is not None
    again = job.homesite_lost(KILLED)
    submit, *rest = again.send
    assert isinstance(submit, SubmitJob)
    assert (submit.job, submit.submission) == (JOB, 2)
    assert rest == [*(AddParameters(JOB, (n,), {"n": Payload(n)}) for n in (1, 2)), CloseParameters(JOB)]
    assert isinstance(again.take_in, JobRestarted)
    assert job.received(package((1,))) is None, "it was announced"
    assert job.received(package((2,))) is not None
    end = job.received(JobFinished(JOB, "finished", (), ()))
    assert end == JobFinished(JOB, "failed", (FAILURE,), ()), "what failed before is not forgotten"


def test_a_homesite_that_is_lost_each_time() -> None:
    job = submitted()
    for _ in range(MAX_FRUITLESS - 1):
        assert job.homesite_lost(KILLED).send
    end = job.homesite_lost(KILLED).take_in
    assert isinstance(end, JobFinished)
    assert (end.status, len(end.failures)) == ("failed", MAX_FRUITLESS + 1)


def test_a_homesite_that_is_lost_often_in_a_long_job() -> None:
    job = submitted()
    for number in range(3 * MAX_FRUITLESS):
        assert job.received(package((1, number))) is not None
        assert job.homesite_lost(KILLED).send
        assert job.received(package((1, number))) is None


def test_what_may_have_run_is_not_submitted_again() -> None:
    send, end = submitted(once="b").homesite_lost(KILLED)
    assert send == ()
    assert isinstance(end, JobFinished)
    assert "faulty.Send of site b may have run" in end.failures[0].message


def test_what_cannot_have_run_is_submitted_again() -> None:
    job = submitted(once="b")
    for number in range(3):
        job.received(FrameFinished(JOB, (number,)))
    assert [type(message) for message in job.homesite_lost(KILLED).send] == [SubmitJob]


def test_a_cancelled_job_stays_cancelled() -> None:
    job = submitted()
    job.sent(CancelJob(JOB, "enough"))
    send, end = job.homesite_lost(KILLED)
    assert send == ()
    assert isinstance(end, JobFinished)
    assert (end.status, end.failures[0].message) == ("cancelled", "enough")


def test_a_job_that_cannot_be_resumed_costs_nothing() -> None:
    ops = federation(CALC).ops.calc
    with Pipeline() as p:
        Yield(ops.Add(a=PlaceParam("n"), b=1, site="a"))
    made = compiled(p, CALC)
    job = SubmittedJob(SubmitJob(JOB, "", made.encoded_nets), made.nets)
    for number in range(1000):
        job.sent(AddParameters(JOB, (number,), {"n": Payload(number)}))
        assert job.received(package((number,))) == package((number,))
    assert job.unfinished == 1
    assert len(job._announced) == 0
    assert survivable(made.nets) == frozenset()


# Announced results


def test_intervals_are_a_set() -> None:
    for seed in range(50):
        draw = random.Random(seed)
        found, expected = Intervals(), set()
        for _ in range(200):
            number = draw.randrange(60)
            assert found.add(number) == (number not in expected)
            expected.add(number)
        gaps = sum(number + 1 not in expected for number in expected)
        assert len(found) == gaps


def test_a_loop_of_many_results_is_a_few_numbers() -> None:
    draw = random.Random(1)
    announced = AnnouncedResults()
    waiting = list(range(64))
    following = iter(range(64, 20_000))
    most = 0
    while waiting:  # results come in any order within a window
        number = waiting.pop(draw.randrange(len(waiting)))
        assert announced.add("%1", (0, number))
        most = max(most, len(announced))
        waiting.extend([n for n in [next(following, None)] if n is not None])
    assert most <= 64
    assert not announced.add("%1", (0, 7))
    assert announced.add("%2", (0, 7)), "of another Yield"
    assert announced.add("%1", (1, 7)), "of another parameter set"
    announced.forget((0,))
    assert len(announced) == 1


def test_a_loop_in_a_loop_of_many_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept in less room is still known, and can grow."""
    monkeypatch.setattr(announced_results, "MOST_RECENT", 16)
    draw = random.Random(2)
    announced = AnnouncedResults()
    keys = [("%1", (0, outer, middle, inner)) for outer in range(40) for middle in range(5) for inner in range(3)]
    late = [key for key in keys if draw.random() < 0.1]
    for key in keys:
        assert key in late or announced.add(*key)
    assert len(announced) < 250, "gaps cannot be kept in less room"
    for key in late:
        assert announced.add(*key)
    assert not any(announced.add(*key) for key in draw.sample(keys, len(keys)))


# What is kept


def once_calls(kept: KeptCalls, *, once: str = "b") -> OnceCalls:
    return OnceCalls("b", plan(once=once).nets["b"].transitions, kept)


def test_what_a_call_gave_is_kept_for_the_next_attempt() -> None:
    kept = KeptCalls()
    first = once_calls(kept)
    position = next(iter(first.positions))
    assert first.begin(1, position, (0,), fed=False) is None
    assert not first.leave(), "it is waited for"
    first.ended(1, Kept(42))
    assert first.leave()
    second = once_calls(kept)
    assert second.begin(1, position, (0,), fed=False) == Kept(42)
    assert not second.running
    second.forget(0)
    assert once_calls(kept).begin(1, position, (0,), fed=False) is None


@pytest.mark.parametrize("what", ["generator", "fed"])
def test_a_stream_that_has_begun_is_not_repeated(what: str) -> None:
    calls = once_calls(KeptCalls())
    position = next(iter(calls.positions))
    calls.begin(1, position, (0,), fed=what == "fed")
    if what == "generator":
        calls.streams(1)
    assert calls.leave()
    assert [reason.kind for reason in calls.unrepeatable] == ["CannotRepeat"]
    calls.forget(0)
    assert calls.unrepeatable == (), "the frame was finished all the same"


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_calls, "MAX_KEPT", 3)
    calls = once_calls(KeptCalls())
    position = next(iter(calls.positions))
    for number in range(3):
        calls.begin(number, position, (0, number), fed=False)
        calls.ended(number, Kept(number))
    assert calls.unrepeatable == ()
    calls.begin(3, position, (0, 3), fed=False)
    calls.ended(3, Kept(3))
    assert "more than 3" in calls.unrepeatable[0].message
    calls.begin(4, position, (1, 0), fed=False)
    calls.ended(4, Kept("x" * 2**26))
    assert len(calls.unrepeatable) == 2, "too large"
    calls.forget(0)
    calls.forget(1)
    calls.begin(5, position, (2, 0), fed=False)
    calls.ended(5, Kept(5))
    assert calls.unrepeatable == (), "there is room again"


# Names and admission


def test_names_of_attempts() -> None:
    assert attempt_id("j", 1, 1) == "j"
    names = {attempt_id("j", submission, attempt) for submission in (1, 2) for attempt in (1, 2, 3)}
    assert len(names) == 6
    assert {job_of(name) for name in names} == {"j"}
    assert [name for name in ("j", "", *names) if is_job_id(name)] == ["j", "j"]


def test_a_site_decides_itself_what_is_idempotent() -> None:
    import msgspec
    from engine_support import adapters

    net = plan(once="b").nets["b"]
    own = adapters(FAULTY)["b"]
    assert objections(net, "b", HOMESITE, own) == []
    forged = msgspec.structs.replace(
        net,
        transitions=tuple(
            msgspec.structs.replace(item, action=msgspec.structs.replace(item.action, idempotent=True))
            if hasattr(item.action, "idempotent")
            else item
            for item in net.transitions
        ),
    )
    assert objections(forged, "b", HOMESITE, own) == [
        "does not say that faulty.Send is idempotent, as the job takes it to be"
    ]


def test_results_that_a_hostile_site_makes_up_cost_no_memory() -> None:
    job = submitted()
    claimed = YieldPackages(JOB, "yield", FrameRun((0,), 0, 2**61), "%3", "b", Payload(b""))
    for _ in range(2):  # The inbox refuses it, since as many values did not come.
        assert job.received(claimed) is claimed
    announced = AnnouncedResults()
    for number in range(2 * announced_results.MOST_RECENT + 2):
        assert announced.add("%1", (0, number * 2**40, 0))
    assert not announced.add("%1", (0, 2**40, 0))
