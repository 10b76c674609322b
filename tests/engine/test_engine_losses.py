"""Sites that die, jobs that are cancelled, messages that are out of place: every job ends, and the next one runs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from engine_support import Probe, compiled, run

from dfmesh import ForEach, If, Pipeline, PlaceParam, TryFromCache, Yield
from dfmesh.engine import messages
from dfmesh.engine.message_parts import Failure, Payload, SiteReport
from dfmesh.engine.messages import JobFinished, JobRefused
from dfmesh.engine.simulator import CLIENT, JOB

TIMES = [0.0, 0.3, 1.0, 2.5, 5.0, 9.0, 14.0, 20.0, 30.0]


def everything(ops: Any) -> Pipeline:
    """A pipeline with all that can wait for another site."""
    with Pipeline() as p:
        stream = ops.Count(n=200, site="a")
        outer = ops.Echo(x=1, site="c")
        with ForEach(stream, window=3) as item:
            with TryFromCache(key="same", site="b") as cached:
                cached.cache(ops.Echo(x=7, site="c"))
            with If(item > 2):
                value = ops.Add(a=item, b=cached, site="b")
                Yield(ops.Both(x=value, y=outer, site="c"), place="loop")
        Yield(item.reduce(ops.Add, item, initial=0, site="c"), place="sum")
        Yield(ops.Total(items=stream, site="b"), place="total")
        Yield(ops.Pairs(xs=stream, ys=ops.Count(n=90, site="c"), site="b"), place="pairs")
    return p


def ended(probe: Probe, sets: int = 2) -> JobFinished | JobRefused:
    return probe.run([{} for _ in range(sets)])


@pytest.mark.parametrize("when", TIMES)
@pytest.mark.parametrize("site", ["a", "b", "c"])
def test_a_job_that_loses_a_site_ends(ops: Any, site: str, when: float) -> None:
    plan = compiled(everything(ops))
    for seed in range(3):
        probe = Probe(plan, seed=seed)
        probe.kill(site, when)
        end = ended(probe)
        assert isinstance(end, JobFinished | JobRefused), seed
        begun_again = [failure for message in probe.to_client for failure in getattr(message, "lost", ())]
        lost = {failure.site for failure in (*end.failures, *begun_again) if failure.kind == "SiteLost"}
        assert site in lost or not probe.dead


@pytest.mark.parametrize("when", TIMES)
def test_what_does_not_depend_on_the_lost_site_goes_on(ops: Any, when: float) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=ops.Echo(x=1, site="b"), site="c"), place="lost")
        with ForEach(list(range(20)), window=2) as item:
            Yield(ops.Echo(x=ops.Echo(x=item, site="a"), site="c"), place="kept")
    probe = Probe(compiled(p), seed=5)
    probe.kill("b", when)
    end = ended(probe, 1)
    begun_again = any(isinstance(message, messages.JobRestarted) for message in probe.to_client)
    assert isinstance(end, JobFinished)
    assert end.status == ("finished" if begun_again else "failed")
    assert probe.results()["kept"] == list(range(20))


@pytest.mark.parametrize("when", TIMES)
def test_a_cancelled_job_ends_at_once(ops: Any, when: float) -> None:
    plan = compiled(everything(ops))
    for seed in range(4):
        probe = Probe(plan, seed=seed)
        probe.cancel(when)
        end = ended(probe)
        assert isinstance(end, JobFinished)
        assert end.status == "cancelled"
        assert probe.now < when + 60
        assert probe.going_on == []


# Messages that are out of place


def strange_messages() -> list[tuple[str, Any]]:
    """Messages that no site of the job would send, with the peer that says so."""
    value, failure = Payload("poison"), Failure("x", "", "", (), "", "Poison", "poison")
    strange: list[tuple[str, Any]] = []
    for peer in ("a", "stranger"):
        for route in (-1, 0, 1, 2, 3, 10**6):
            for frame in ((), (0,), (0, 0), (9, 9, 9)):
                strange += [
                    (peer, messages.TokenPackage(JOB, 10**6 if peer == "a" else route, frame, value)),
                    (peer, messages.TokenPackages(JOB, 10**6 if peer == "a" else route, (frame, frame), value)),
                    (peer, messages.StreamPackage(JOB, 10**6 if peer == "a" else route, frame, value)),
                    (peer, messages.StreamCredit(JOB, 10**6 if peer == "a" else route, frame, 10**9)),
                ]
        for scope in (-1, 0, 99) if peer == "a" else (-1, 0, 1, 2, 99):
            strange += [
                (peer, messages.IterationsDone(JOB, scope, ((0, 0), (), (1,)))),
                (peer, messages.ScopeEnded(JOB, scope, (0,), 0, failure)),
            ]
        strange += [
            (peer, messages.OpenFrame(JOB, (7,), {})),
            (peer, messages.WatchIdle(JOB)),
            (peer, messages.JobFinished(JOB, "finished", (), ())),
            (peer, messages.FrameFinished(JOB, (0,))),
        ]
    for message in (
        messages.FrameReport(JOB, (0,), 9),
        messages.FailureReport(JOB, failure),
        messages.SiteIdle(JOB, {}, {}),
        messages.JobRefused(JOB, (failure,)),
        messages.JobEnded(JOB, SiteReport("a", (), {})),
        messages.JobStarted(JOB),
    ):
        strange.append(("stranger", message))
    return strange


def _disturb(probe: Probe, peer: str, message: Any, when: float) -> None:
    for site in probe.plan.nets:
        if site != peer:
            probe.at(when, partial(probe._deliver, peer, site, message))


def test_strange_messages_are_ignored(ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(ops.Count(n=30, site="a"), window=2) as item:
            value = ops.Add(a=item, b=PlaceParam("n"), site="b")
        Yield(item.collect(value))
    plan = compiled(p)
    for seed, (peer, message) in enumerate(strange_messages()):
        bend = partial(_disturb, peer=peer, message=message, when=1.0 + seed % 12)
        probe, end = run(plan, seed, [{"n": 1}], bend=bend)
        assert isinstance(end, JobFinished), message
        assert end.status == "finished", (peer, message)
        assert probe.results() == {"yield": [list(range(1, 31))]}, (peer, message)


def test_messages_of_other_clients_do_not_reach_a_job(ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.Echo(x=1, site="b"))
    for message in (messages.CancelJob(JOB, "hostile"), messages.CloseParameters(JOB)):
        probe = Probe(compiled(p))
        probe._for_home("client:other", message)
        assert ended(probe, 1).status == "finished"  # type: ignore[union-attr]
    assert CLIENT != "client:other"
