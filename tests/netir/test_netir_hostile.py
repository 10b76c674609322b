"""Nets that a broken or hostile client made: refused, or harmless; the site and its next job go on."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from engine_support import HOMESITE, Probe, federation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netir_plans import Nets, change_action, mutate, put, whole_plan

import dfmesh.engine.submission as submission
from dfmesh import JobError, Pipeline, Yield
from dfmesh.compiler import CompiledPipeline
from dfmesh.engine.messages import AddParameters, CloseParameters, JobFinished, JobRefused, SubmitJob
from dfmesh.engine.simulator import SimulationStuckError
from dfmesh.errors import DfmeshError
from dfmesh.netir import Input, ListOf, NetIR, check_nets

PLAN = whole_plan()
LIMIT = 60


def mutated(seed: int, count: int) -> Nets:
    nets, draw = dict(PLAN.nets), random.Random(seed)
    for _ in range(count):
        nets = mutate(nets, draw)
    return nets


def with_nets(nets: Nets) -> CompiledPipeline:
    return dataclasses.replace(PLAN, nets=nets)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), count=st.integers(1, 2))
def test_what_the_check_accepts_runs_to_its_end(seed: int, count: int) -> None:
    """The promise of the check, put to the test: not stuck, and nothing left."""
    nets = mutated(seed, count)
    if check_nets(nets):
        return
    probe = Probe(with_nets(nets), seed=seed % 7)
    try:
        end = probe.run([{"n": 5}])
    except SimulationStuckError:
        raise
    except DfmeshError:
        return  # A constant that is no value: the site refuses.
    assert isinstance(end, JobFinished | JobRefused)
    assert probe.faults() == []


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with federation().session(target="inproc", homesite=HOMESITE) as session:
        yield session


def works(session: Any) -> None:
    ops = federation().ops.mesh
    with Pipeline() as p:
        for site in "abc":
            Yield(ops.Add(a=1, b=2, site=site))
    assert session.submit(p).result(timeout=LIMIT)["yield"] == [3, 3, 3]


@pytest.mark.parametrize("block", range(6))
def test_a_federation_survives_mutated_nets(session: Any, block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        job = session.submit(with_nets(mutated(seed, 1 + seed % 3)), {"n": 5})
        assert job.wait(timeout=LIMIT), f"seed {seed} does not end"
        if seed % 5 == 0:
            works(session)
    works(session)


@pytest.mark.parametrize("block", range(3))
def test_sites_survive_nets_that_nobody_checked(session: Any, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """A homesite may be broken, too. Such a job may be stuck, but it can be cancelled, and hurts no other."""
    monkeypatch.setattr(submission, "check_nets", lambda _nets: [])
    submission._read_small.cache_clear()
    for seed in range(block * 25, block * 25 + 25):
        job = session.submit(with_nets(mutated(seed, 2)), {"n": 5})
        works(session)
        job.wait(timeout=0.02)
        job.cancel()
        assert job.wait(timeout=LIMIT), f"seed {seed} cannot be cancelled"
    submission._read_small.cache_clear()
    works(session)


def test_a_refusal_tells_the_faults(session: Any) -> None:
    job = session.submit(with_nets(put(dict(PLAN.nets), "b", arrivals={})), {"n": 1})
    with pytest.raises(JobError) as caught:
        job.result(timeout=LIMIT)
    told = [error.message for error in caught.value.errors]
    assert any("site 'b': mesh.FailAt (checked, " in message and "nothing leads" in message for message in told)
    works(session)


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x80", b"\x93\x01", None], ids=["empty", "none", "map", "cut", "deep"]
)
def test_bytes_that_are_no_net_are_refused(session: Any, data: bytes | None) -> None:
    nets = {site: net.to_bytes() for site, net in PLAN.nets.items()}
    nets["b"] = deep_bytes() if data is None else data
    job = session.submit(with_nets(PLAN.nets), {"n": 1})
    assert job.wait(timeout=LIMIT)
    job = raw(session, nets)
    with pytest.raises(JobError, match="cannot be read"):
        job.result(timeout=LIMIT)
    works(session)


def raw(session: Any, nets: dict[str, bytes]) -> Any:
    """Submit bytes."""
    plan = with_nets(PLAN.nets)
    object.__setattr__(plan, "encoded_nets", nets)
    plan.__dict__["encoded_nets"] = nets
    return session.submit(plan, {"n": 1})


def deep_bytes() -> bytes:
    """A net with an expression of a depth at which reading it would end the stack."""
    marker = 1_000_000
    net = change_action(dict(PLAN.nets), "body", arguments={"a": ListOf((Input(marker),)), "b": Input(0)})["b"]
    data = net.to_bytes()
    inner = msgspec.msgpack.encode(Input(marker))
    around = msgspec.msgpack.encode(ListOf((Input(marker),))).replace(inner, b"")
    assert inner in data
    return data.replace(inner, around * 100_000 + inner)


def test_deep_expressions_do_not_end_the_stack(session: Any) -> None:
    expression: Any = Input(0)
    for _ in range(400):
        expression = ListOf((expression,))
    nets = change_action(dict(PLAN.nets), "small", arguments={"x": expression})
    assert check_nets(nets) == []
    job = session.submit(with_nets(nets), {"n": 2})
    assert job.wait(timeout=LIMIT)
    works(session)


@pytest.mark.parametrize("frames", [[()], [(0,), (0,)], [(5,), (2,)], [(0, 1)], [(-1,)]])
def test_parameter_sets_with_bad_frames(session: Any, frames: list[tuple[int, ...]]) -> None:
    job = session.submit(PLAN, [], close=False)
    payload = session._connection.pack(3)
    for frame in frames:
        session._connection.post(AddParameters(job.id, frame, {"n": payload}))
    session._connection.post(CloseParameters(job.id))
    assert job.wait(timeout=LIMIT)
    assert job.status.value == "failed"
    works(session)


def test_parameter_sets_without_a_parameter(session: Any) -> None:
    job = session.submit(PLAN, [], close=False)
    session._connection.post(AddParameters(job.id, (0,), {}))
    session._connection.post(CloseParameters(job.id))
    assert job.wait(timeout=LIMIT)
    assert job.status.value == "failed"
    works(session)


def test_a_job_id_in_use_is_refused_and_the_first_job_goes_on(session: Any) -> None:
    job = session.submit(PLAN, [], close=False)
    session._connection.post(SubmitJob(job.id, "", {site: net.to_bytes() for site, net in PLAN.nets.items()}))
    job.wait(timeout=0.05)
    works(session)
    job.cancel()
    assert job.wait(timeout=LIMIT)


def test_the_same_submission_is_read_once(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    submission._read_small.cache_clear()
    counts: list[int] = []

    def counting(nets: Any) -> Any:
        counts.append(1)
        return check_nets(nets)

    monkeypatch.setattr(submission, "check_nets", counting)
    for _ in range(5):
        assert session.submit(PLAN, {"n": 1}).wait(timeout=LIMIT)
    assert len(counts) == 1
    assert isinstance(PLAN.nets["a"], NetIR)
