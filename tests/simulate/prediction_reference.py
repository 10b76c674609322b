"""A slow, literal reference: the engine's own HomeJob, JobController and NetRunner on a clock with costs."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dfmesh import Federation
from dfmesh.compiler import CompiledPipeline, Costs
from dfmesh.engine import messages
from dfmesh.engine.call_log import NoCallLog
from dfmesh.engine.job_calls import JobCalls
from dfmesh.engine.job_controller import SiteServices
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.simulated_site import SimulatedCarrier
from dfmesh.engine.simulator import CLIENT, Simulation
from dfmesh.engine.worker_threads import MAX_THREADS, PATIENCE
from dfmesh.netir import Loop, Port, SendYield
from dfmesh.session.prediction.planning import CONTROL, FURTHER, HEAD

SITES = {
    "home": ({"op.Make": 0.0031, "op.Use": 0.0417}, None, {"a": (0.0113, 3e6), "b": (0.0071, None)}),
    "a": ({"op.Use": 0.0523, "op.Merge": 0.0137}, 2, {"home": (0.0117, 1e6), "b": (0.0031, 1e5)}),
    "b": ({"op.Use": 0.0291, "op.Merge": 0.0333}, None, {"home": (0.0211, 2e5), "c": (0.0049, 5e4)}),
    "c": ({"op.Use": 0.00097, "op.Merge": 0.0211}, 3, {"home": (0.0057, 1e5)}),
}
N = 7
"""Elements of every sequence."""

SIZES = {"op.Make": 700, "op.Use": 5300, "op.Merge": 1900}


def federation(directory: Path) -> Federation:
    """Four sites whose costs are all different, so that nothing happens at the same time by chance."""
    operations = {
        "op.Make": {"parameters": {"n": {}}},
        "op.Use": {"parameters": {"x": {}, "y": {}}, "required": ["x"]},
        "op.Merge": {"parameters": {"left": {}, "right": {}}},
    }
    sites: dict[str, Any] = {}
    for name, (offered, capacity, sends) in SITES.items():
        interface = {
            operation: {
                "adapter": "builtins.dict",
                "compute_cost": {"fixed_time": seconds, "fixed_size": SIZES[operation]},
            }
            for operation, seconds in offered.items()
        }
        costs = {
            site: {"fixed_time": latency} | ({"bandwidth": bandwidth} if bandwidth else {})
            for site, (latency, bandwidth) in sends.items()
        }
        sites[name] = {"interface": interface, "send_cost": costs} | ({"capacity": capacity} if capacity else {})
    path = directory / "reference.dfm.yaml"
    path.write_text(json.dumps({"dfm": "1.0.0", "operations": operations, "sites": sites}))
    return Federation.load(path)


class ForgetfulCache:
    """Finds nothing."""

    def look_up(self, key: bytes, ttl: Any, *, wait: bool, within: Any, found: Any, missed: Callable[[], None]) -> bool:
        missed()
        return False

    def store(self, key: bytes, value: Any, allowed: Any = None) -> None:
        return

    def release(self, key: bytes) -> None:
        return


class _Wire:
    def __init__(self, latency: float, per_byte: float) -> None:
        self.latency, self.per_byte, self.free, self.size = latency, per_byte, 0.0, 0.0


class ReferenceRun(Simulation):
    """Runs a compiled pipeline; calls take the declared time, links carry one thing at a time."""

    def __init__(self, compiled: CompiledPipeline, config: Any, answers: Mapping[str, Any]) -> None:
        super().__init__(compiled.nets, {}, compiled.homesite, 0)
        self.compiled, self.config, self.answers = compiled, config, answers
        self.wires: dict[tuple[str, str], _Wire] = {}
        self.workers: dict[tuple[str, bool], list[Any]] = {}
        self.first_result: float | None = None
        self.seconds = 0.0
        self.results = 0
        self._sizes = self._token_sizes()

    def _token_sizes(self) -> dict[Any, float]:
        sizes: dict[Any, float] = {}
        graph = self.compiled.graph
        repeats = {node.action.body: N for node in graph.nodes if isinstance(node.action, Loop)}
        costs = Costs(graph, self.config, repeats=repeats)
        for net in self.compiled.nets.values():
            for item in net.transitions:
                value = costs.sizes[item.id]
                for route in item.routes:
                    known = {Port.VALUE: value, Port.ELEMENT: SIZES["op.Make"] / N}
                    sizes[route.id] = HEAD + known.get(route.port, 0.0)
                if isinstance(item.action, SendYield):
                    sizes[item.node] = HEAD + value
        return sizes

    def wire(self, source: str, destination: str) -> _Wire:
        key = (source, destination)
        if key not in self.wires:
            self.wires[key] = _Wire(*self.compiled.costs.link(source, destination))
        return self.wires[key]

    def send(self, source: str, destination: str, message: Any) -> None:
        for single in one_by_one(message):
            self._send(source, destination, single)

    def _send(self, source: str, destination: str, message: Any) -> None:
        if CLIENT in (source, destination):
            if isinstance(message, messages.YieldPackage):
                self.results += 1
                self.first_result = self.now if self.first_result is None else self.first_result
            if isinstance(message, messages.JobFinished):
                self.seconds = self.now
            self.at(0.0, lambda: self._deliver(source, destination, message))
        elif source == destination:
            self.at(0.0, lambda: self._deliver(source, destination, message))
        else:
            wire = self.wire(source, destination)
            size = self._size(message)
            start = max(self.now, wire.free) if size else self.now
            end = start + size * wire.per_byte
            wire.size += size
            if size:
                wire.free = end
            self.at(end + wire.latency - self.now, lambda: self._deliver(source, destination, message))

    def _size(self, message: Any) -> float:
        match message:
            case messages.TokenPackage(route=route):
                return self._sizes[route]
            case messages.YieldPackage(node=node):
                return self._sizes[node]
            case messages.IterationsDone(frames=frames):
                return CONTROL + FURTHER * (len(frames) - 1)
            case messages.Progress(frames=frames) if frames:
                return CONTROL
            case messages.ScopeEnded() | messages.FrameReport():
                return CONTROL
        return 0.0

    def _services(self, site: str) -> SiteServices:
        def soon(action: Callable[[], None]) -> None:
            self.at(0.0, action)

        carrier = SizingCarrier(self, site)
        return SiteServices(carrier, NoCallLog(), ForgetfulCache(), lambda it: TimedCalls(self, site, it), soon)


class SizingCarrier(SimulatedCarrier):
    """Says how large messages would be, on which it depends how a job ends."""

    def __init__(self, run: ReferenceRun, site: str) -> None:
        super().__init__(site, run.send)
        self._run = run

    def send(self, peer: str, message: Any) -> int:
        super().send(peer, message)
        return 0 if peer == self._site else int(sum(map(self._run._size, one_by_one(message))))


def one_by_one(message: Any) -> list[Any]:
    """What stands here for large values looks small, and travels together as these would not."""
    match message:
        case messages.TokenPackages(job=job, route=route, frames=frames, payload=payload):
            pairs = zip(frames, payload.data, strict=True)
            return [messages.TokenPackage(job, route, frame, Payload(value)) for frame, value in pairs]
        case messages.YieldPackages(job=job, place=place, frames=frames, node=node, site=site, payload=payload):
            pairs = zip(frames, payload.data, strict=True)
            return [messages.YieldPackage(job, place, frame, node, site, Payload(value)) for frame, value in pairs]
        case _:
            return [message]


class TimedCalls:
    """Calls that only take time."""

    def __init__(self, run: ReferenceRun, site: str, controller: JobCalls) -> None:
        self.run, self.site, self.controller = run, site, controller

    def start(self, call: int, plan: Any, arguments: Any, fed: Any = ()) -> None:
        node = self.run.compiled.graph.nodes[self.controller._runner.calls[call][0].ir.id]
        seconds = self.run.compiled.costs.compute(node, self.site)
        capacity = self.run.config.sites[self.site].capacity
        short = capacity is None and seconds < PATIENCE
        workers = self.run.workers.setdefault((self.site, short), [1 if short else capacity or MAX_THREADS, deque()])
        work = (call, seconds, self.run.answers.get(plan.operation, 1))
        if workers[0]:
            self._begin(workers, work)
        else:
            workers[1].append(work)

    def start_all(self, first: int, plan: Any, arguments: Any) -> None:
        for call, given in enumerate(arguments, first):
            self.start(call, plan, given)

    def _begin(self, workers: list[Any], work: Any) -> None:
        call, seconds, value = work
        workers[0] -= 1

        def end() -> None:
            workers[0] += 1
            if workers[1]:
                self._begin(workers, workers[1].popleft())
            self.controller.returned(call, value, seconds)

        self.run.at(seconds, end)

    def flush_lines(self, *, unfinished: bool = True) -> None:
        return

    def close(self) -> None:
        return
