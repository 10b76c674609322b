"""A simulator that watches the state machines while it runs them, and can kill, cancel and bend them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from dfmesh import Federation, Pipeline
from dfmesh.compiler import CompiledPipeline, compile_pipeline
from dfmesh.engine import events, stream_takers
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.job_controller import JobController
from dfmesh.engine.messages import (
    EndJob,
    FrameFinished,
    FrameReport,
    JobFinished,
    JobRefused,
    Progress,
    YieldPackage,
)
from dfmesh.engine.net_runner import NetRunner
from dfmesh.engine.simulator import JOB, Simulation

HOMESITE = "app"
TESTS = Path(__file__).resolve().parents[1]
MESH = TESTS / "engine" / "mesh" / "mesh.dfm.yaml"
CALC = TESTS / "federations" / "calc" / "calc.dfm.yaml"
for path in (TESTS, MESH.parent, CALC.parent, TESTS / "engine" / "faulty"):
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))


@cache
def federation(file: Path = MESH) -> Federation:
    return Federation.load(file)


@cache
def adapters(file: Path = MESH) -> dict[str, SiteAdapters]:
    config = federation(file).config
    return {site: SiteAdapters(config, site) for site in config.sites}


def compiled(pipeline: Pipeline, file: Path = MESH) -> CompiledPipeline:
    return compile_pipeline(pipeline, federation(file).config, HOMESITE)


def leftovers(runner: NetRunner) -> list[str]:
    """Name all that a NetRunner still holds for some frame. When all frames are done there must be nothing."""
    found: dict[str, Any] = {
        "calls": runner.calls,
        "ready": runner._ready,
        "instructions": runner.instructions,
        "streams": runner.streams._streams,
        "stream routes": runner.streams._routes,
        "fed calls": runner.streams._fed,
        "missed keys": runner.caching._missed,
    }
    for transition in runner.wired.transitions:
        name = f"t{transition.ir.id}"
        found[f"{name} slots"] = transition.slots
        found[f"{name} gatherings"] = transition.gatherings
        for outer in transition.outers:
            found[f"{name} outer values {outer.index}"] = outer.values
            found[f"{name} outer waiting {outer.index}"] = outer.waiting
    for scope in runner.wired.scopes.values():
        found[f"s{scope.id} left"] = scope.left
        found[f"s{scope.id} progress"] = scope.progress
        found[f"s{scope.id} runs"] = scope.runs
    return [f"{runner.site}: {name}: {state}" for name, state in found.items() if state]


def controller_leftovers(controller: JobController) -> list[str]:
    found = {
        "noted calls": controller._calls._noted,
        "yields": controller._outbox._yields,
        "done iterations": controller._outbox.iterations,
        "missed": controller._look_ups._missed,
        "broken streams": controller._arrivals.broken_streams,
        "broken streams sent": controller._outbox._broken_streams,
    }
    return [f"{controller.site}: controller: {name}: {state}" for name, state in found.items() if state]


def started(instructions: Iterable[events.Instruction]) -> list[events.StartCall]:
    """The calls that begin, one by one."""
    calls: list[events.StartCall] = []
    for item in instructions:
        if isinstance(item, events.StartCall):
            calls.append(item)
        elif isinstance(item, events.StartCalls):
            begun = zip(item.frames, item.arguments, strict=True)
            calls += [events.StartCall(call, item.transition, *each) for call, each in enumerate(begun, item.first)]
    return calls


def returned(event: events.Event) -> list[int]:
    """The calls that have returned."""
    if isinstance(event, events.CallReturned):
        return [event.call]
    return event.calls if isinstance(event, events.CallsReturned) else []


def yielded(instructions: Iterable[events.Instruction]) -> int:
    """How many results are sent."""
    return sum(
        len(item.frames) if isinstance(item, events.SendYields) else isinstance(item, events.SendYield)
        for item in instructions
    )


class Probe(Simulation):
    """A simulated job under observation.

    Attributes:
        left: What the sites still held when the job had ended well.
        broken: Promises that were broken on the way.
        log: Site, event and the instructions it led to, in order.
        home_messages: What came to the homesite, in order.
    """

    def __init__(self, plan: CompiledPipeline, file: Path = MESH, seed: int = 0, **options: Any) -> None:
        super().__init__(plan.nets, adapters(file), HOMESITE, seed, **options)
        self.plan = plan
        self.left: list[str] = []
        self.broken: list[str] = []
        self.log: list[tuple[str, Any, list[Any]]] = []
        self.home_messages: list[tuple[str, Any]] = []
        self.dead: set[str] = set()
        self.deaths = 0
        self.repeated = 0
        self.most_open: dict[int, int] = {}
        self._uncredited: dict[tuple[str, int, Any], int] = {}

    # Watching

    def _started(self, site: str, attempt: str) -> None:
        controller = self.sites[site].controllers.get(attempt)
        if controller is None:
            return
        runner = controller._runner
        handle = partial(type(runner).handle, runner)  # One that an earlier attempt has had is watched already.

        def watched(event: events.Event) -> list[events.Instruction]:
            instructions = handle(event)
            self.log.append((site, event, instructions))
            self._check_windows(runner)
            self._check_credit(attempt, event, instructions)
            return instructions

        runner.handle = watched  # type: ignore[method-assign]

    def _check_windows(self, runner: NetRunner) -> None:
        for scope in runner.wired.scopes.values():
            for run in scope.runs.values():
                self.most_open[scope.id] = max(self.most_open.get(scope.id, 0), len(run.open))
                if len(run.open) > run.window:
                    self.broken.append(f"{len(run.open)} iterations of s{scope.id} are open, at most {run.window} may")

    def _check_credit(self, attempt: str, event: events.Event, instructions: list[events.Instruction]) -> None:
        if isinstance(event, events.StreamCreditArrived):
            key = (attempt, event.route, event.frame)
            self._uncredited[key] = self._uncredited.get(key, 0) - event.count
        for item in instructions:
            if isinstance(item, events.SendStreamItems):
                key = (attempt, item.route, item.frame)
                self._uncredited[key] = self._uncredited.get(key, 0) + len(item.values)
                if self._uncredited[key] > stream_takers.STREAM_WINDOW:
                    self.broken.append(f"{self._uncredited[key]} items under way on r{item.route}")

    def _to_client(self, message: Any) -> None:
        before = len(self.to_client)
        super()._to_client(message)
        self.repeated += len(self.to_client) == before

    def _for_home(self, source: str, message: Any) -> None:
        self.home_messages.append((source, message))
        super()._for_home(source, message)

    def _ending(self, site: str, message: EndJob) -> None:
        controller = self.sites[site].controllers.get(message.job)
        home = self._home.jobs.get(JOB)
        cancelled = home is not None and home._outcome == "cancelled"
        if controller is not None and not message.again and not cancelled and not self.dead:
            self.left += leftovers(controller._runner) + controller_leftovers(controller)

    @property
    def going_on(self) -> list[str]:
        """What the sites still do, or keep, for some attempt; at the end there must be nothing."""
        held = [f"the homesite: {job.status}" for job in self._home.jobs.values()]
        for site, jobs in self.sites.items():
            for name, found in (("runs", jobs.controllers), ("leaves", jobs._leaving), ("keeps", jobs._kept)):
                held += [f"{site} {name} {attempt}" for attempt in found]
        return held

    # Bending

    def _die(self, site: str, back_after: float | None) -> None:
        if site in self._network.alive:
            self.dead.add(site)
            self.deaths += 1
        super()._die(site, back_after)

    # Results

    def results(self) -> dict[str, list[Any]]:
        """Values by place, in frame order."""
        packages = [message for message in self.to_client if isinstance(message, YieldPackage)]
        packages.sort(key=lambda package: (package.frame, self.plan.order.get(package.node, 0)))
        found: dict[str, list[Any]] = {}
        for package in packages:
            found.setdefault(package.place, []).append(package.payload.data)
        return found

    def counting_faults(self) -> list[str]:
        """Say where a frame was declared finished before all its results, or the job before its frames."""
        reported: dict[Any, int] = {}
        for peer, message in self.home_messages:
            if peer not in self.plan.nets:
                continue
            told = [(message.frame, message.yields)] if isinstance(message, FrameReport) else []
            told += message.frames if isinstance(message, Progress) else ()
            for frame, yields in told:
                reported[frame] = reported.get(frame, 0) + yields
        faults: list[str] = []
        come: dict[Any, int] = {}
        finished: set[Any] = set()
        for message in self.to_client:
            if isinstance(message, YieldPackage):
                if message.frame[:1] in finished:
                    faults.append(f"a result of frame {message.frame} came after its end")
                come[message.frame[:1]] = come.get(message.frame[:1], 0) + 1
            elif isinstance(message, FrameFinished):
                if message.frame in finished or come.get(message.frame, 0) != reported[message.frame]:
                    faults.append(f"frame {message.frame} ended with {come.get(message.frame)} of {reported}")
                finished.add(message.frame)
        if not isinstance(self.to_client[-1], JobFinished | JobRefused):
            faults.append("the end of the job is not the last thing the client hears")
        return faults

    def faults(self) -> list[str]:
        return [*self.broken, *self.left, *self.counting_faults()]


def run(
    pipeline: Pipeline | CompiledPipeline,
    seed: int = 0,
    sets: Iterable[Mapping[str, Any]] = ({},),
    file: Path = MESH,
    bend: Callable[[Probe], None] | None = None,
    **options: Any,
) -> tuple[Probe, JobFinished | JobRefused]:
    """Run under observation; what was promised of every run is asserted."""
    plan = pipeline if isinstance(pipeline, CompiledPipeline) else compiled(pipeline, file)
    probe = Probe(plan, file, seed, **options)
    if bend is not None:
        bend(probe)
    end = probe.run([plan.parameter_set(given) for given in sets])
    assert probe.faults() == []
    return probe, end


def results(pipeline: Pipeline | CompiledPipeline, seeds: Iterable[int] = range(8), **options: Any) -> dict[str, Any]:
    """Run a pipeline that must finish under several orders of events, which all must give the same."""
    found = []
    for seed in seeds:
        probe, end = run(pipeline, seed, **options)
        assert isinstance(end, JobFinished)
        assert end.status == "finished", end.failures
        found.append(probe.results())
    assert all(other == found[0] for other in found)
    return found[0]
