"""Sites that live and do not answer: no job waits for them without end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_support import HOMESITE, compiled

from dfmesh import Pipeline, SessionError, Yield
from dfmesh.engine.answer_watch import seconds_in
from dfmesh.engine.attempts import attempt_id
from dfmesh.engine.home_jobs import HomeJobs
from dfmesh.engine.message_parts import SiteReport
from dfmesh.engine.messages import (
    AddParameters,
    CloseParameters,
    EndJob,
    JobEnded,
    JobFinished,
    JobRefused,
    JobStarted,
    Progress,
    SiteLost,
    StartJob,
    SubmitJob,
)

CLIENT = "client:1"
JOB = "j"
SECONDS = 7.0


class Homesite:
    """The jobs of a homesite, on a clock that is turned by hand."""

    def __init__(self, plan: Any, opening: AddParameters | None = None) -> None:
        self.said: list[tuple[str, Any]] = []
        self._due: list[Callable[[], None]] = []
        self.jobs = HomeJobs(HOMESITE, self, lambda _seconds, call: self._due.append(call), SECONDS)  # type: ignore[arg-type]
        self.jobs.from_client(CLIENT, SubmitJob(JOB, "", plan.encoded_nets, opening=opening))

    def send(self, peer: str, message: Any) -> int:
        self.said.append((peer, message))
        return 0

    def hear(self, *messages: tuple[str, Any]) -> None:
        for site, message in messages:
            self.jobs.from_site(site, message)

    def wait(self) -> list[tuple[str, Any]]:
        """Let the seconds pass twice, and give what is said then."""
        self.said.clear()
        for _ in range(2):
            due, self._due = self._due, []
            for call in due:
                call()
        return self.said

    @property
    def idle(self) -> bool:
        return not (self.jobs.jobs or self.wait() or self._due)


@pytest.fixture
def two_sites(ops: Any) -> Any:
    with Pipeline() as p:
        Yield(ops.Echo(x=1, site="a"))
        Yield(ops.Echo(x=1, site="b"))
    return compiled(p)


def test_a_job_that_a_site_does_not_start_is_refused_and_names_it(two_sites: Any) -> None:
    homesite = Homesite(two_sites)
    homesite.hear(("a", JobStarted(JOB)))
    *ends, (peer, refusal) = homesite.wait()
    assert ends == [("a", EndJob(JOB)), ("b", EndJob(JOB))]
    assert (peer, type(refusal)) == (CLIENT, JobRefused)
    (failure,) = refusal.failures
    assert (failure.site, failure.kind) == ("b", "SiteSilent")
    assert "has not answered for 7 s" in failure.message
    assert homesite.idle


def test_a_job_whose_only_site_says_nothing_fails(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=1, site="a"))
    homesite = Homesite(compiled(p), AddParameters(JOB, (0,), {}, last=True))
    (_, end), (peer, finished) = homesite.wait()
    assert end == EndJob(JOB)
    assert (peer, type(finished), finished.status) == (CLIENT, JobFinished, "failed")
    assert [failure.kind for failure in finished.failures] == ["SiteSilent"]
    assert homesite.idle


def test_a_job_that_a_site_does_not_end_ends_without_its_report(two_sites: Any) -> None:
    homesite = Homesite(two_sites)
    homesite.hear(("a", JobStarted(JOB)), ("b", JobStarted(JOB)))
    homesite.jobs.client_lost(CLIENT)
    homesite.hear(("a", JobEnded(JOB, SiteReport("a", (), {}))))
    (peer, finished), *_ = homesite.wait()
    assert (peer, finished.status) == (CLIENT, "cancelled")
    assert homesite.idle


def test_a_job_that_cannot_begin_again_fails(two_sites: Any) -> None:
    homesite = Homesite(two_sites)
    homesite.hear(("a", JobStarted(JOB)), ("b", JobStarted(JOB)))
    homesite.jobs.site_lost(SiteLost("", "b", "killed", ()))
    homesite.hear(("a", JobEnded(JOB, SiteReport("a", (), {}))))
    again = attempt_id(JOB, 1, 2)
    assert [message.job for _, message in homesite.said if isinstance(message, StartJob)] == [JOB] * 2 + [again] * 2
    homesite.hear(("a", JobStarted(again)))
    assert homesite.wait() == [("a", EndJob(again)), ("b", EndJob(again))]
    homesite.hear(("a", JobEnded(again, SiteReport("a", (), {}))))
    peer, finished = homesite.said[-1]
    assert (peer, finished.status) == (CLIENT, "failed")
    assert [(failure.site, failure.kind) for failure in finished.failures] == [("b", "SiteLost"), ("b", "SiteSilent")]
    assert homesite.idle


def test_a_job_that_runs_is_not_looked_at(two_sites: Any) -> None:
    homesite = Homesite(two_sites)
    homesite.hear(("a", JobStarted(JOB)), ("b", JobStarted(JOB)))
    homesite.jobs.from_client(CLIENT, AddParameters(JOB, (0,), {}, last=True))
    assert homesite.wait() == []
    homesite.jobs.from_client(CLIENT, CloseParameters(JOB))
    for site in ("a", "b"):
        homesite.hear((site, Progress(JOB, (SiteReport(site, (), {}),), last=True, frames=(((0,), 0),))))
    assert homesite.said[-1][1].status == "finished"
    assert homesite.idle


@pytest.mark.parametrize("text", ["soon", "-1", "inf"])
def test_wrong_number_of_seconds(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("DFMESH_ANSWER_SECONDS", text)
    with pytest.raises(SessionError, match="is no number of seconds"):
        seconds_in("DFMESH_ANSWER_SECONDS", 1.0)
