"""Running a pipeline on the simulator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dfmesh.api import Pipeline
from dfmesh.compiler import CompiledPipeline, compile_pipeline
from dfmesh.config import FederationConfig
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.message_parts import SiteReport
from dfmesh.engine.messages import JobFinished, JobLines, JobRefused, YieldPackage
from dfmesh.engine.simulator import Simulation
from dfmesh.engine.site_cache import Cache
from dfmesh.errors import OperationFailure
from dfmesh.session.job_log import JobLog
from dfmesh.session.results import ResultItem


@dataclass(frozen=True)
class SimulationResult:
    """How a simulated job ended.

    Attributes:
        status: finished, failed or refused.
        results: Values by place, in frame order; places without values are left out.
        items: The same with frame, site and node, over all places in frame order.
        errors: What failed, in frame order.
        seconds: Virtual time that it took.
        messages: Messages sent between peers.
        reports: What each site did.
        log: What its loops tolerated; what adapters print is not in it.
    """

    status: str
    results: dict[str, list[Any]]
    items: tuple[ResultItem, ...]
    errors: list[OperationFailure]
    seconds: float
    messages: int
    reports: tuple[SiteReport, ...]
    log: JobLog


def simulate(
    pipeline: Pipeline | CompiledPipeline,
    config: FederationConfig,
    homesite: str,
    parameter_sets: Iterable[Mapping[str, Any]] = ({},),
    seed: int = 0,
    adapters: Mapping[str, SiteAdapters] | None = None,
    caches: Mapping[str, Cache] | None = None,
) -> SimulationResult:
    """Run a pipeline with the real adapters on a virtual clock.

    Args:
        pipeline: What to run.
        config: The federation.
        homesite: Where the client attaches.
        parameter_sets: As in `Session.submit`.
        seed: Decides the delays of all messages and calls; the same seed gives the same run.
        adapters: Adapters by site, to use them again in many runs; made anew by default.
        caches: Caches by site, to keep them over several runs; empty ones by default.

    Raises:
        PipelineError: the pipeline or the parameters have faults.
        SimulationStuckError: the job does not end, which is a fault of the engine.
    """
    compiled = pipeline if isinstance(pipeline, CompiledPipeline) else compile_pipeline(pipeline, config, homesite)
    offered = adapters or {site: SiteAdapters(config, site) for site in config.sites}
    simulation = Simulation(compiled.nets, offered, homesite, seed, caches)
    end = simulation.run([compiled.parameter_set(given) for given in parameter_sets])
    log = JobLog()
    for message in simulation.to_client:
        if isinstance(message, JobLines):
            log.add(message)
    packages = [message for message in simulation.to_client if isinstance(message, YieldPackage)]
    packages.sort(key=lambda package: (package.frame, compiled.order.get(package.node, 0)))
    items = tuple(
        ResultItem(package.place, package.frame, package.payload.data, package.site, package.node)
        for package in packages
    )
    results: dict[str, list[Any]] = {}
    for item in items:
        results.setdefault(item.place, []).append(item.value)
    failures = sorted(end.failures, key=lambda failure: (failure.frame, failure.node))
    return SimulationResult(
        status=end.status if isinstance(end, JobFinished) else "refused",
        results=results,
        items=items,
        errors=[failure.to_error() for failure in failures],
        seconds=simulation.now,
        messages=simulation.messages,
        reports=() if isinstance(end, JobRefused) else end.reports,
        log=log,
    )
