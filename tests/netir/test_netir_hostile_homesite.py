"""What a hostile homesite starts a site with: refused, or run as far as it goes; the site neither hangs nor ends."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec
import pytest
from engine_support import HOMESITE, adapters
from netir_plans import mutate, random_plan, whole_plan

from dfmesh import values
from dfmesh.engine.job_runner import JobRunner
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import EndJob, JobEnded, JobRefused, JobStarted, OpenFrame, StartJob
from dfmesh.netir import NetIR, check_part

PLAN = whole_plan()
SITE = "c"
SECONDS = 20.0


class Deaf:
    """A carrier that keeps what a site says."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def pack(self, value: Any) -> Payload:
        return Payload(values.normalise(value))

    def unpack(self, payload: Payload) -> Any:
        return values.private_copy(payload.data)

    def send(self, _peer: str, message: Any) -> int:
        self.said.append(message)
        return 0


def started_with(parts: list[bytes]) -> list[Any]:
    """Start a site with each of the nets and then a sound one; give what it says to that one."""

    async def main() -> list[Any]:
        carrier: Any = Deaf()
        runner = JobRunner(SITE, HOMESITE, adapters()[SITE], carrier)
        try:
            for number, net in enumerate([*parts, PLAN.nets[SITE].to_bytes()]):
                carrier.said.clear()
                job = f"j{number}"
                runner.receive(HOMESITE, StartJob(job, net))
                if any(isinstance(message, JobStarted) for message in carrier.said):
                    runner.receive(HOMESITE, OpenFrame(job, (0,), {"n": Payload(3)}, last=True))
                    await asyncio.sleep(0)
                runner.receive(HOMESITE, EndJob(job))
                answers = (JobStarted, JobRefused, JobEnded)
                assert any(isinstance(message, answers) for message in carrier.said), "it says nothing"
            return list(carrier.said)
        finally:
            await runner.close()

    return asyncio.run(asyncio.wait_for(main(), SECONDS))


@pytest.mark.parametrize("block", range(4))
def test_mutated_parts(block: int) -> None:
    parts = []
    for seed in range(block * 40, block * 40 + 40):
        draw, nets = random.Random(seed), dict(PLAN.nets)
        for _ in range(draw.randint(1, 3)):
            nets = mutate(nets, draw)
        parts.append(nets[SITE].to_bytes() if SITE in nets else b"")
    assert isinstance(started_with(parts)[0], JobStarted)


def test_damaged_bytes() -> None:
    whole, draw, parts = PLAN.nets[SITE].to_bytes(), random.Random(7), []
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        parts.append(bytes(data[: draw.randrange(len(data))] if draw.random() < 0.2 else data))
    assert isinstance(started_with(parts)[0], JobStarted)


def test_a_part_that_feeds_itself_is_refused() -> None:
    net = PLAN.nets[SITE]
    route = next(route for item in net.transitions for route in item.routes if route.site == SITE)
    sender = next(item for item in net.transitions if route in item.routes)
    place = msgspec.structs.replace(sender.inputs[0], id=10**6, scope=sender.scope)
    looped = msgspec.structs.replace(sender, inputs=(*sender.inputs, place))
    arrival = msgspec.structs.replace(net.arrivals[route.id], places=(*net.arrivals[route.id].places, place.id))
    forged = msgspec.structs.replace(
        net,
        transitions=tuple(looped if item is sender else item for item in net.transitions),
        arrivals=net.arrivals | {route.id: arrival},
    )
    assert any("waits for" in fault.message or "takes it" in fault.message for fault in check_part(forged))


def test_every_part_of_a_sound_plan_is_sound() -> None:
    for seed in range(30):
        for net in random_plan(seed).nets.values():
            assert check_part(NetIR.from_bytes(net.to_bytes())) == []
