"""A job of one parameter set is told in one message each way, and leaves nothing behind."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from engine_support import HOMESITE, compiled, federation

from dfmesh import Pipeline, PlaceParam, Yield
from dfmesh.engine.home_job import HomeJob
from dfmesh.engine.message_parts import Payload, SiteReport
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    FrameFinished,
    FrameReport,
    JobFinished,
    JobStarted,
    OpenFrame,
    Progress,
    StartJob,
    SubmitJob,
    YieldPackage,
)
from dfmesh.engine.submitted_job import SubmittedJob

CLIENT = "client:1"
JOB = "j"
OPENING = AddParameters(JOB, (0,), {"x": Payload(1)}, last=True)
RESULT = YieldPackage(JOB, "yield", (0,), "%1", "a", Payload(1))
LAST = Progress(JOB, (SiteReport("a", (), {}),), last=True, frames=(((0,), 1),))


def told(sends: list[tuple[str, AnyMessage]]) -> list[tuple[str, type[AnyMessage]]]:
    return [(peer, type(message)) for peer, message in sends]


@pytest.fixture
def plan(ops: Any) -> Any:
    with Pipeline() as p:
        Yield(ops.Echo(x=PlaceParam("x"), site="a"))
    return compiled(p)


@pytest.fixture
def home(plan: Any) -> HomeJob:
    return HomeJob(JOB, CLIENT, plan.nets, plan.encoded_nets)


def test_what_came_with_the_submission_goes_with_the_start(home: HomeJob) -> None:
    assert home.opens_with(OPENING)
    [(site, start)] = home.start()
    assert isinstance(start, StartJob)
    assert (site, start.opening) == ("a", OpenFrame(JOB, (0,), OPENING.parameters, last=True))
    assert told(home.handle("a", RESULT)) == [(CLIENT, YieldPackage)]
    assert told(home.handle("a", LAST)) == [(CLIENT, JobFinished)], "that says that the frame is finished, too"


def test_a_frame_that_is_finished_before_the_job_says_so(home: HomeJob) -> None:
    assert home.opens_with(OPENING)
    home.start()
    home.handle("a", RESULT)
    assert home.handle("a", FrameReport(JOB, (0,), 1)) == [(CLIENT, FrameFinished(JOB, (0,)))]
    assert told(home.handle("a", JobStarted(JOB)))[0] == (CLIENT, JobStarted)


def test_further_sets_may_follow_the_first(home: HomeJob) -> None:
    assert home.opens_with(AddParameters(JOB, (0,), {}))
    home.start()
    assert told(home.handle(CLIENT, AddParameters(JOB, (1,), {}, last=True))) == [("a", OpenFrame)]
    home.handle("a", RESULT)
    assert home.handle("a", FrameReport(JOB, (0,), 1)) == [(CLIENT, FrameFinished(JOB, (0,)))]


@pytest.mark.parametrize("frame", [(), (-1,), (0, 0)])
def test_what_is_no_first_set_is_refused_after_the_start(home: HomeJob, frame: tuple[int, ...]) -> None:
    opening = AddParameters(JOB, frame, {}, last=True)
    assert not home.opens_with(opening)
    assert told(home.start()) == [("a", StartJob)]
    home.handle(CLIENT, opening)
    assert home.status == "ending"


def test_a_whole_job_is_submitted_again_with_its_set(plan: Any) -> None:
    job = SubmittedJob(SubmitJob(JOB, "", plan.encoded_nets, opening=OPENING), plan.nets)
    assert job.unfinished == 1


def test_a_job_leaves_nothing_to_the_garbage_collector(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=PlaceParam("x"), site="a"))
    with federation().session(target="inproc", homesite=HOMESITE, measure=False) as session:
        prepared = session.prepare(p)
        for x in range(5):
            session.run(prepared, x=x)
        gc.collect()
        gc.disable()
        try:
            for x in range(50):
                assert session.run(prepared, x=x).one() == x
            assert gc.collect() < 50, "less than one object per job"
        finally:
            gc.enable()
