"""A site that has run a net runs it again without preparing it anew, and nothing of one job is seen by the next."""

from __future__ import annotations

import gc

import msgspec

from dfmesh.engine import events
from dfmesh.engine.job_shape import shape_of
from dfmesh.engine.prepared_nets import IDLE, LARGEST, MOST_BYTES, REMEMBERED, PreparedNets
from dfmesh.engine.submission import read_nets
from dfmesh.netir import (
    ROOT_SCOPE,
    Arrival,
    Call,
    Input,
    NetIR,
    Place,
    Role,
    Scope,
    Transition,
    constant,
)

FRAME = (0,)


def net(operation: str = "calc.Add") -> bytes:
    """One call at site a, with a value from site b and one from site c."""
    scope = Scope(ROOT_SCOPE, None, 1, "a", ("a", "b", "c"))
    places = (Place(0, ROOT_SCOPE, Role.VALUE), Place(1, ROOT_SCOPE, Role.VALUE))
    action = Call(operation, None, {"x": Input(0), "y": Input(1)})
    transition = Transition(0, "%0", operation, "day.py:1", ROOT_SCOPE, places, action, ())
    arrivals = {0: Arrival("b", (0,)), 1: Arrival("c", (1,))}
    return NetIR("a", "a", (scope,), (transition,), arrivals, {}, ()).to_bytes()


def run(nets: PreparedNets, data: bytes, routes: tuple[int, ...] = (0, 1)) -> object:
    """Run a job, or its beginning, and give back what it ran on."""
    prepared, reasons = nets.take(data)
    assert prepared is not None
    assert not reasons
    for route in routes:
        started = prepared.runner.handle(events.TokenArrived(route, FRAME, 10 + route))
    if routes == (0, 1):
        assert started == [events.StartCall(0, 0, FRAME, {"x": 10, "y": 11})]
        assert prepared.runner.handle(events.CallReturned(0, 21)) == [events.ReportFrame(FRAME)]
    nets.give_back(prepared)
    return prepared


def test_a_net_is_prepared_once() -> None:
    objections: list[NetIR] = []
    nets = PreparedNets(lambda net: objections.append(net) or [])  # type: ignore[func-returns-value]
    first = run(nets, net())
    assert run(nets, net()) is first, "and calls are counted from the beginning"
    assert len(objections) == 1
    assert run(nets, net("calc.Sub")) is not first


def test_two_jobs_at_a_time_have_a_runner_each() -> None:
    nets = PreparedNets(lambda _: [])
    first, second = nets.take(net())[0], nets.take(net())[0]
    assert first is not second


def test_what_a_job_has_left_is_not_seen_by_the_next() -> None:
    nets = PreparedNets(lambda _: [])
    stopped = run(nets, net(), routes=(0,))
    assert run(nets, net()) is not stopped


def test_a_refused_net_is_refused_again() -> None:
    nets = PreparedNets(lambda _: ["no"])
    assert [nets.take(net()) for _ in range(2)] == [(None, ["no"])] * 2


def test_few_nets_and_few_runners_are_kept() -> None:
    nets = PreparedNets(lambda _: [])
    taken = [nets.take(net())[0] for _ in range(IDLE + 5)]
    for prepared in taken:
        assert prepared is not None
        nets.give_back(prepared)
    again = [nets.take(net())[0] for _ in range(IDLE + 5)]
    assert len(set(map(id, taken)) & set(map(id, again))) == IDLE
    for number in range(REMEMBERED):
        run(nets, net(f"calc.Op{number}"))
    assert nets.take(net())[0] not in taken, "the net that was used longest ago is forgotten"


def test_a_large_net_is_not_kept() -> None:
    nets = PreparedNets(lambda _: [])
    large = net("x" * LARGEST)
    assert run(nets, large) is not run(nets, large)


def large(number: int) -> bytes:
    """A net with a constant of half a MB."""
    read = NetIR.from_bytes(net(f"calc.Op{number}"))
    transition = read.transitions[0]
    action = Call("calc.Op", None, {"x": Input(0), "y": Input(1), "z": constant(b"." * 500_000)})
    return msgspec.structs.replace(
        read, transitions=(msgspec.structs.replace(transition, action=action, node=f"%{number}"),)
    ).to_bytes()


def test_large_nets_and_their_runners_are_not_kept_without_end() -> None:
    nets = PreparedNets(lambda _: [])
    for number in range(8):
        taken = [nets.take(large(number))[0] for _ in range(IDLE)]
        for prepared in taken:
            assert prepared is not None
            nets.give_back(prepared)
        kept = sum(len(data) * (1 + len(idle)) for data, (_, _, idle) in nets._idle.items())
        assert kept == nets._size
        assert 0 < kept <= MOST_BYTES


def test_large_submissions_are_not_remembered() -> None:
    def known() -> int:
        gc.collect()
        return sum(isinstance(item, NetIR) for item in gc.get_objects())

    before = known()
    for number in range(12):
        alone = msgspec.structs.replace(NetIR.from_bytes(large(number) if number else net()), arrivals={})
        transition = alone.transitions[0]
        places = (Place(0, ROOT_SCOPE, Role.TRIGGER),)
        action = Call("calc.Op", None, {"z": constant(b"." * (2**20 if number else 1))})
        transition = msgspec.structs.replace(transition, action=action, inputs=places, node=f"%{number}")
        scopes = (Scope(ROOT_SCOPE, None, 1, "a", ("a",)),)
        alone = msgspec.structs.replace(alone, transitions=(transition,), scopes=scopes, starts=(0,))
        nets, problems = read_nets({"a": alone.to_bytes()})
        assert problems == []
        assert shape_of(nets) is shape_of(nets)
        assert shape_of(nets).sites == ("a",)
    del alone, nets
    assert known() - before <= 1, "the small one"
