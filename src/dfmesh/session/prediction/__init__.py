"""Predicting a run: the compiled plan on a virtual clock, with declared or measured costs and no data at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dfmesh.compiler import CompiledPipeline, Costs
from dfmesh.config import FederationConfig
from dfmesh.netir import Call, Loop, Reduce
from dfmesh.session.prediction.chains import summed
from dfmesh.session.prediction.plan import Plan
from dfmesh.session.prediction.planning import Planner
from dfmesh.session.prediction.result import PathPart, PredictedLink, PredictedOperation, PredictedSite, Prediction
from dfmesh.session.prediction.running import PredictedRun
from dfmesh.session.prediction.shares import resolve
from dfmesh.session.prediction.undeclared import undeclared


def predict(
    compiled: CompiledPipeline,
    config: FederationConfig,
    parameters: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None = None,
    *,
    iterations: Mapping[str, float] | None = None,
    shares: Mapping[str, float] | None = None,
    cold: bool = False,
    changes: Sequence[str] = (),
    watch: Callable[[PredictedRun], None] | None = None,
) -> Prediction:
    """Predict how a compiled pipeline runs. No adapter is called and no site is needed.

    Args:
        compiled: What `Federation.compile` or `Session.prepare` gave.
        config: The federation.
        parameters: A parameter set, or several; they need not be complete, only lengths of sequences count.
        iterations: Iterations of loops, by statement (its `node_id`, or `%3`); others are known from the pipeline or
            from earlier runs, or assumed.
        shares: How often conditions are true and keys are found in the cache, 0 to 1, by statement.
        cold: Whether the sites have just been started, so that first calls load their libraries.
        changes: What is different from the real federation, as `what_if` tells it.
        watch: Is given the run before it begins; `now` and `events` of it tell another thread how far it is.

    Raises:
        PipelineError: parameters, iterations or shares do not fit the pipeline.
    """
    sets = _parameter_sets(compiled, parameters)
    figures, assumptions = resolve(compiled, sets, iterations or {}, shares or {})
    repeats = {
        node.action.body: sum(figures[node.index]) / len(figures[node.index])
        for node in compiled.graph.nodes
        if isinstance(node.action, Loop)
    }
    measured, name = compiled.costs.measured, compiled.costs.pipeline
    costs = Costs(compiled.graph, config, measured, name, repeats)
    plan = Planner(compiled.nets, compiled.graph, costs, config, figures, cold=cold).plan()
    run = PredictedRun(plan, len(sets))
    if watch is not None:
        watch(run)
    run.run()
    unknown = undeclared(plan, costs, compiled.graph, config)
    return _prediction(compiled, config, plan, run, assumptions=assumptions, undeclared=unknown, changes=tuple(changes))


def _parameter_sets(
    compiled: CompiledPipeline, parameters: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    given = [parameters or {}] if parameters is None or isinstance(parameters, Mapping) else parameters
    return [compiled.parameter_set(entry, complete=False) for entry in given]


def _prediction(
    compiled: CompiledPipeline,
    config: FederationConfig,
    plan: Plan,
    run: PredictedRun,
    *,
    assumptions: list[str],
    undeclared: list[str],
    changes: tuple[str, ...],
) -> Prediction:
    return Prediction(
        name=compiled.pipeline.name or "",
        homesite=compiled.homesite,
        seconds=run.seconds,
        first_result=run.first_result,
        results=run.results,
        result_bytes=run.result_bytes,
        operations=_operations(plan),
        sites=_sites(plan, config, run.seconds),
        links=_links(plan, run.seconds),
        path=_path(run),
        assumptions=tuple(assumptions),
        undeclared=tuple(undeclared),
        changes=changes,
        measured=_measured_share(compiled, plan),
        events=run.events,
    )


def _operations(plan: Plan) -> tuple[PredictedOperation, ...]:
    steps = [step for step in plan.steps if step.action in (Call, Reduce)]
    steps.sort(key=lambda step: -step.calls * step.seconds)
    return tuple(PredictedOperation(step.node, step.name, step.site.name, step.calls, step.seconds) for step in steps)


def _sites(plan: Plan, config: FederationConfig, seconds: float) -> tuple[PredictedSite, ...]:
    sites = sorted(plan.sites, key=lambda site: -site.busy)
    return tuple(
        PredictedSite(
            site.name,
            site.calls,
            site.busy / seconds if seconds else 0.0,
            site.work / site.busy if site.busy else 0.0,
            config.sites[site.name].capacity,
        )
        for site in sites
    )


def _links(plan: Plan, seconds: float) -> tuple[PredictedLink, ...]:
    used = [(ends, wire) for ends, wire in plan.wires.items() if wire.tokens]
    used.sort(key=lambda item: (-item[1].size, item[0]))
    return tuple(
        PredictedLink(*ends, wire.size, wire.tokens, wire.busy / seconds if seconds else 0.0) for ends, wire in used
    )


def _path(run: PredictedRun) -> tuple[PathPart, ...]:
    parts = [
        PathPart(stage.kind, stage.what, stage.node, stage.site, stage.destination, seconds, int(times))
        for stage, (seconds, times) in summed(run.chain).items()
    ]
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def _measured_share(compiled: CompiledPipeline, plan: Plan) -> float:
    actions = {node.node: node.action for node in compiled.graph.nodes if isinstance(node.action, Call | Reduce)}
    known = total = 0
    for step in plan.steps:
        action = actions.get(step.node) if step.action in (Call, Reduce) else None
        if isinstance(action, Call | Reduce):
            total += step.calls
            if compiled.costs.measured.seconds(action.operation, action.provider, step.site.name) is not None:
                known += step.calls
    return known / total if total else 0.0


__all__ = [
    "PathPart",
    "PredictedLink",
    "PredictedOperation",
    "PredictedRun",
    "PredictedSite",
    "Prediction",
    "predict",
]
