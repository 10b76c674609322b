"""HomeJob alone: frames, results and the end of a job are counted, whatever comes first."""

from __future__ import annotations

import random
from typing import Any

import pytest
from engine_support import HOMESITE, compiled

from dfmesh import Pipeline, Yield
from dfmesh.engine.home_frames import MAX_OPEN_FRAMES
from dfmesh.engine.home_job import HomeJob
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
    JobStarted,
    OpenFrame,
    Progress,
    ReportProgress,
    SiteIdle,
    StartJob,
    WatchIdle,
    YieldPackage,
)

CLIENT = "client:1"
JOB = "j"
SITES = ("app", "a", "b")
FAILURE = Failure("a", "x.Y", "%1", (0,), "", "ValueError", "no")


@pytest.fixture
def home(ops: Any) -> HomeJob:
    with Pipeline() as p:
        Yield("of the homesite")
        Yield(ops.Echo(x=1, site="a"))
        Yield(ops.Echo(x=1, site="b"))
    plan = compiled(p)
    assert set(plan.nets) == set(SITES)
    return HomeJob(JOB, CLIENT, plan.nets, plan.encoded_nets)


def started(home: HomeJob) -> HomeJob:
    sends = home.start()
    assert [(peer, type(message)) for peer, message in sends] == [(site, StartJob) for site in home._sites]
    for site in SITES:
        sends = home.handle(site, JobStarted(JOB))
    assert sends[0] == (CLIENT, JobStarted(JOB, patient=True))
    return home


def result(frame: tuple[int, ...], site: str = "a") -> YieldPackage:
    return YieldPackage(JOB, "yield", frame, "%1", site, Payload(1))


def ended(home: HomeJob, sites: tuple[str, ...] = SITES) -> Any:
    """Let the sites end, and give the last message to the client."""
    for site in sites:
        assert not home.over
        sends = home.handle(site, JobEnded(JOB, SiteReport(site, (), {})))
    assert home.over
    return sends[-1][1]


@pytest.mark.parametrize("seed", range(40))
def test_a_frame_ends_after_its_results_whatever_the_order(home: HomeJob, seed: int) -> None:
    shuffle = random.Random(seed)
    started(home)
    frames = shuffle.randint(1, 6)
    for frame in range(frames):
        home.handle(CLIENT, AddParameters(JOB, (frame,), {}))
    pending: list[tuple[str, Any]] = [(CLIENT, CloseParameters(JOB))]
    counted = {}
    for frame in range(frames):
        counts = {site: shuffle.randint(0, 3) for site in SITES}
        counted[frame] = sum(counts.values())
        for site, count in counts.items():
            pending.append((site, FrameReport(JOB, (frame,), count)))
            pending += [(site, result((frame, number), site)) for number in range(count)]
    shuffle.shuffle(pending)
    told: list[Any] = []
    for index, (peer, message) in enumerate(pending):
        sends = home.handle(peer, message)
        told += [answer for receiver, answer in sends if receiver == CLIENT]
        is_last = index == len(pending) - 1
        assert (home.status == "ending") == is_last
    for number, count in counted.items():
        ended_frame = (number,)
        at = told.index(FrameFinished(JOB, ended_frame))
        come = [
            message for message in told[:at] if isinstance(message, YieldPackage) and message.frame[:1] == ended_frame
        ]
        assert len(come) == count
        assert not any(isinstance(message, YieldPackage) and message.frame[:1] == ended_frame for message in told[at:])
    assert sum(isinstance(message, FrameFinished) for message in told) == frames
    assert ended(home).status == "finished"


def test_only_so_many_frames_are_open(home: HomeJob) -> None:
    started(home)
    opened = []
    for frame in range(MAX_OPEN_FRAMES + 10):
        opened += home.handle(CLIENT, AddParameters(JOB, (frame,), {}))
    assert len(opened) == MAX_OPEN_FRAMES * len(SITES)
    for site in SITES:
        sends = home.handle(site, FrameReport(JOB, (0,), 0))
    assert [message.frame for _, message in sends if isinstance(message, OpenFrame)] == [(MAX_OPEN_FRAMES,)] * 3


def test_reports_are_counted_once_and_from_taking_part_sites_only(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}))
    for peer in ("a", "a", "stranger", "client:2"):
        assert home.handle(peer, FrameReport(JOB, (0,), 1 if peer == "a" else 5)) == []
    home.handle("app", FrameReport(JOB, (0,), 0))
    home.handle("b", FrameReport(JOB, (0,), 0))
    assert (CLIENT, FrameFinished(JOB, (0,))) in home.handle("a", result((0,)))


@pytest.mark.parametrize("frame", [(), (0,), (-1,), (3, 1)])
def test_parameter_sets_with_a_bad_number_end_the_job(home: HomeJob, frame: tuple[int, ...]) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}))
    assert {type(message) for _, message in home.handle(CLIENT, AddParameters(JOB, frame, {}))} == {EndJob}
    finish = ended(home)
    assert finish.status == "failed"
    assert finish.failures[0].kind == "ParametersRefused"


@pytest.mark.parametrize("message", [CancelJob(JOB, "enough"), None], ids=["cancel", "refused"])
def test_ends_before_all_have_started(home: HomeJob, message: CancelJob | None) -> None:
    home.start()
    home.handle("a", JobStarted(JOB))
    if message is not None:
        assert sum(isinstance(answer, EndJob) for _, answer in home.handle(CLIENT, message)) == 3
        assert home.handle("b", JobStarted(JOB)) == []
        assert ended(home).status == "cancelled"
        return
    assert home.handle("b", JobRefused(JOB, (FAILURE,))) == []
    sends = home.handle("app", JobStarted(JOB))
    assert sends[-1] == (CLIENT, JobRefused(JOB, (FAILURE,)))
    assert {peer for peer, answer in sends if isinstance(answer, EndJob)} == set(SITES)
    assert home.over


def test_cancel_while_running_and_while_ending(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}))
    assert len(home.handle(CLIENT, CancelJob(JOB, "enough"))) == 3
    assert home.handle(CLIENT, CancelJob(JOB, "again")) == []
    assert home.handle(CLIENT, AddParameters(JOB, (1,), {})) == []
    finish = ended(home)
    assert (finish.status, [failure.message for failure in finish.failures]) == ("cancelled", ["enough"])
    assert home.handle("a", result((0,))) == []


def test_failures_make_the_job_fail_in_the_end(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}))
    assert home.handle("a", FailureReport(JOB, FAILURE)) == []
    for site in SITES:
        home.handle(site, FrameReport(JOB, (0,), 0))
    home.handle(CLIENT, CloseParameters(JOB))
    finish = ended(home)
    assert (finish.status, finish.failures) == ("failed", (FAILURE,))


# A site dies


LOST = Failure("b", "x.Y", "%1", (), "", "SiteLost", "killed")


@pytest.mark.parametrize("had_started", [True, False])
def test_site_lost_while_others_start(home: HomeJob, had_started: bool) -> None:
    home.start()
    if had_started:
        home.handle("b", JobStarted(JOB))
    sends = home.site_lost("b", [LOST])
    assert {peer for peer, answer in sends if answer == EndJob(JOB, again=True)} == {"app", "a"}
    assert home.status == "leaving", "nothing has run yet, so it is begun again"


def test_site_lost_after_another_has_refused(home: HomeJob) -> None:
    home.start()
    home.handle("a", JobRefused(JOB, (FAILURE,)))
    home.site_lost("b", [LOST])
    sends = home.handle("app", JobStarted(JOB))
    assert sends[-1] == (CLIENT, JobRefused(JOB, (FAILURE, LOST)))
    assert home.over


def test_site_lost_while_running_waits_until_the_others_rest(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}))
    watched = home.site_lost("b", [LOST])
    assert {peer for peer, message in watched if isinstance(message, WatchIdle)} == {"app", "a"}
    assert home.handle("app", SiteIdle(JOB, {}, {"a": 1}, 1)) == []
    assert home.handle("a", SiteIdle(JOB, {"app": 2}, {}, 1)) == []  # One message is still under way.
    assert (CLIENT, result((0,))) in home.handle("a", result((0,)))  # What still comes is passed on.
    sends = home.handle("app", SiteIdle(JOB, {}, {"a": 2}, 1))
    assert {peer for peer, message in sends if isinstance(message, EndJob)} == {"app", "a"}
    finish = ended(home, ("app", "a"))
    assert (finish.status, finish.failures[0].site) == ("failed", "b")
    assert finish.failures[0].message.startswith(f"{LOST.message}; mesh.Echo of site b may have run")
    assert "`idempotent: true`" in finish.failures[0].message


def test_site_lost_while_ending(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, CloseParameters(JOB))
    assert home.status == "ending"
    home.handle("a", JobEnded(JOB, SiteReport("a", (), {})))
    home.site_lost("b", [LOST])
    assert ended(home, ("app",)).reports


def test_all_sites_lost(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}))
    for site in ("a", "b"):
        home.site_lost(site, [LOST])
    sends = home.site_lost("app", [LOST])
    assert isinstance(sends[-1][1], JobFinished)
    assert home.status == "failed"


def test_losses_told_twice_or_of_strangers_do_not_matter(home: HomeJob) -> None:
    started(home)
    assert home.site_lost("stranger", [LOST]) == []
    assert home.site_lost("b", [LOST])
    assert home.site_lost("b", [LOST]) == []


def test_progress_is_asked_of_those_that_live(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}))
    home.site_lost("b", [LOST])
    asked = home.handle(CLIENT, ReportProgress(JOB))
    assert [peer for peer, _ in asked] == ["a", "app"]
    assert home.handle(CLIENT, ReportProgress(JOB)) == []  # The answer under way is for both.
    assert home.handle("a", Progress(JOB, (SiteReport("a", (), {}),))) == []
    sends = home.handle("app", Progress(JOB, (SiteReport("app", (), {}),)))
    assert [peer for peer, _ in sends] == [CLIENT]
    assert HOMESITE in {report.site for report in sends[0][1].reports}  # type: ignore[union-attr]


def test_progress_does_not_wait_for_a_site_that_dies_meanwhile(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, ReportProgress(JOB))
    home.handle("a", Progress(JOB, (SiteReport("a", (), {}),)))
    home.handle("app", Progress(JOB, (SiteReport("app", (), {}),)))
    assert any(isinstance(message, Progress) for _, message in home.site_lost("b", [LOST]))


def test_a_last_report_has_the_last_frames_in_it(home: HomeJob) -> None:
    started(home)
    opened = home.handle(CLIENT, AddParameters(JOB, (0,), {}, last=True))
    assert [(peer, message.last) for peer, message in opened if isinstance(message, OpenFrame)] == [
        (site, True) for site in home._sites
    ], "the sites need no other message to know that no more comes"
    home.handle("a", result((0,)))
    for site in ("a", "app"):
        assert home.handle(site, Progress(JOB, (SiteReport(site, (), {}),), last=True, frames=(((0,), 1),))) == []
    assert home.handle("app", result((0,), "app"))
    last = Progress(JOB, (SiteReport("b", (), {}),), last=True, frames=(((0,), 0),))
    sends = home.handle("b", last)
    assert [type(message) for _, message in sends] == [FrameFinished, EndJob, EndJob, EndJob, JobFinished]
    assert all(message.patient for _, message in sends if isinstance(message, EndJob)), "nobody waits for an answer"
    assert home.over


def test_who_has_not_sent_a_last_report_is_asked_for_one(home: HomeJob) -> None:
    started(home)
    home.handle(CLIENT, AddParameters(JOB, (0,), {}, last=True))
    home.handle("a", Progress(JOB, (SiteReport("a", (), {}),), last=True, frames=(((0,), 0),)))
    home.handle("b", FrameReport(JOB, (0,), 0))
    sends = home.handle("app", FrameReport(JOB, (0,), 0))
    ends = {peer: message.patient for peer, message in sends if isinstance(message, EndJob)}
    assert ends == {"a": True, "b": False, "app": False}
    assert ended(home, ("app", "b")).status == "finished"


def test_a_single_site_forgets_the_job_with_its_last_report(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=1, site="a"))
    plan = compiled(p)
    home = HomeJob(JOB, CLIENT, plan.nets, plan.encoded_nets)
    assert [type(message) for _, message in home.start()] == [StartJob]
    assert [peer for peer, _ in home.handle(CLIENT, AddParameters(JOB, (0,), {}, last=True))] == ["a"]
    home.handle("a", result((0,)))
    sends = home.handle("a", Progress(JOB, (SiteReport("a", (), {}),), last=True, frames=(((0,), 1),)))
    told = [(peer, type(message)) for peer, message in sends]
    assert told == [(CLIENT, FrameFinished), (CLIENT, JobFinished)], "it was over before it had to say that it began"


def test_a_single_site_that_goes_on_says_so_first(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=1, site="a"))
    plan = compiled(p)
    home = HomeJob(JOB, CLIENT, plan.nets, plan.encoded_nets)
    home.start()
    home.handle(CLIENT, AddParameters(JOB, (0,), {}, last=True))
    assert home.handle("a", JobStarted(JOB))[0][0] == CLIENT
    ends = home.handle(CLIENT, CancelJob(JOB, ""))
    assert [(peer, type(message)) for peer, message in ends] == [("a", EndJob)]
