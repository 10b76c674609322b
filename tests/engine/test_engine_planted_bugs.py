"""Bugs that are planted in the engine are found by the simulator, and a real site ends what it cannot go on with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engine_support import HOMESITE, Probe, compiled, federation

from dfmesh import ForEach, JobError, Pipeline, Yield
from dfmesh.engine import events, job_outbox, messages
from dfmesh.engine.job_controller import JobController
from dfmesh.engine.job_outbox import JobOutbox
from dfmesh.engine.net_runner import NetRunner
from dfmesh.engine.simulator import SimulationStuckError

SEEDS = range(10)
ITEMS = 800


def pipeline(ops: Any) -> Any:
    """A long stream between two sites, and a loop with tokens between three."""
    with Pipeline() as p:
        stream = ops.Count(n=ITEMS, site="a")
        Yield(ops.Total(items=stream, site="b"))
        with ForEach(list(range(50)), window=5) as item:
            value = ops.Add(a=item, b=ops.Echo(x=item, site="c"), site="b")
        Yield(ops.Total(items=item.collect(value), site="c"))
    return compiled(p)


def symptoms(plan: Any) -> dict[int, str]:
    """What went wrong, by seed."""
    found: dict[int, str] = {}
    for seed in SEEDS:
        probe = Probe(plan, seed=seed)
        try:
            probe.run([{}])
            wrong = probe.results() != {"yield": [sum(range(ITEMS)), 2 * sum(range(50))]}
            faults = [*probe.faults(), *(["wrong result"] if wrong else [])]
        except SimulationStuckError:
            faults = ["stuck"]
        except Exception as error:
            faults = [repr(error)]
        if faults:
            found[seed] = faults[0]
    return found


def test_without_a_planted_bug_nothing_is_found(ops: Any) -> None:
    assert symptoms(pipeline(ops)) == {}


def lost_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One message in seven that gives credit for a stream is not sent."""
    send = job_outbox.SENDERS[events.SendStreamCredit]
    counter = iter(range(10**9))

    def careless(self: JobOutbox, instruction: events.SendStreamCredit) -> None:
        if next(counter) % 7 != 3:
            send(self, instruction)

    monkeypatch.setitem(job_outbox.SENDERS, events.SendStreamCredit, careless)


def token_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token in fifty is delivered twice, as after a connection that broke."""
    receive: Callable[..., None] = JobController.receive
    counter = iter(range(10**9))

    def careless(self: JobController, peer: str, message: Any) -> None:
        receive(self, peer, message)
        if isinstance(message, messages.TokenPackage | messages.TokenPackages) and next(counter) % 50 == 30:
            receive(self, peer, message)

    monkeypatch.setattr(JobController, "receive", careless)


def early_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A site forgets to count its results."""
    for kind in (events.SendYield, events.SendYields):
        forget_after(monkeypatch, kind)


def forget_after(monkeypatch: pytest.MonkeyPatch, kind: type[events.Instruction]) -> None:
    send = job_outbox.SENDERS[kind]

    def careless(self: JobOutbox, instruction: Any) -> None:
        send(self, instruction)
        self._yields.clear()

    monkeypatch.setitem(job_outbox.SENDERS, kind, careless)


def value_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored for a frame is not dropped."""
    done: Callable[..., None] = NetRunner.done

    def careless(self: NetRunner, scope: Any, frame: Any) -> None:
        done(self, scope, frame)
        for reader in scope.gatherers:
            reader.slots.setdefault((*frame, 0), object())

    monkeypatch.setattr(NetRunner, "done", careless)


@pytest.mark.parametrize("plant", [lost_credit, token_twice, early_report, value_kept])
def test_a_planted_bug_is_found(
    ops: Any, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    found = symptoms(pipeline(ops))
    assert found, "the simulator does not see it"
    seed = min(found)
    print(f"{plant.__name__}: found under {len(found)} of {len(SEEDS)} seeds, first {seed}: {found[seed][:150]}")


@pytest.mark.parametrize("kind", [events.CallReturned, events.FrameOpened, events.TokenArrived])
def test_a_bug_of_the_engine_ends_the_job_at_once(ops: Any, monkeypatch: pytest.MonkeyPatch, kind: type[Any]) -> None:
    handle: Callable[..., Any] = NetRunner.handle
    with Pipeline() as p:
        Yield(ops.Add(a=ops.Echo(x=1, site="a"), b=2, site="b"))

    def broken(self: NetRunner, event: Any) -> Any:
        if isinstance(event, kind) and self.site in ("a", "b"):
            raise RuntimeError("a bug of the engine")
        return handle(self, event)

    with federation().session(target="inproc", homesite=HOMESITE) as session:
        with monkeypatch.context() as planted:
            planted.setattr(NetRunner, "handle", broken)
            with pytest.raises(JobError, match="a bug of the engine"):
                session.submit(p).result(timeout=60)
        assert session.submit(p).result(timeout=60)["yield"] == [3]


def test_a_submission_that_breaks_the_homesite_is_answered(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_nets: Any) -> Any:
        raise RuntimeError("a bug of the check")

    with Pipeline() as p:
        Yield(ops.Echo(x=1, site="a"))
    with federation().session(target="inproc", homesite=HOMESITE) as session:
        with monkeypatch.context() as planted:
            planted.setattr("dfmesh.engine.home_jobs.read_nets", broken)
            with pytest.raises(JobError, match="a bug of the check"):
                session.submit(p).result(timeout=60)
        assert session.submit(p).result(timeout=60)["yield"] == [1]
