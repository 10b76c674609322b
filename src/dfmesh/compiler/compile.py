"""The compiler as one function: validate, lower, place, route, and check what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dfmesh import values
from dfmesh.api import NO_DEFAULT, NodeId, Pipeline, PlaceParam, did_you_mean, node_text
from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph
from dfmesh.compiler.idempotence import mark_idempotent
from dfmesh.compiler.interfaces import state_interfaces
from dfmesh.compiler.lower import lower
from dfmesh.compiler.measured import NOTHING_MEASURED, MeasuredCosts, pipeline_key
from dfmesh.compiler.parameters import ParameterUse, parameter_uses, parameters_error
from dfmesh.compiler.placement import Objective, Placement, place
from dfmesh.compiler.residency_claims import state_residency
from dfmesh.compiler.route import route
from dfmesh.compiler.validate import validate
from dfmesh.config import FederationConfig
from dfmesh.errors import Fault, PipelineError, SourceLocation, ValueEncodingError
from dfmesh.netir import NetIR, PlanError, check_nets, independent_lookups


@dataclass(frozen=True)
class CompiledPipeline:
    """A pipeline ready to be submitted, as often as one likes.

    Attributes:
        pipeline: What the user wrote.
        homesite: Where the client attaches.
        nets: One net per taking-part site.
        graph: The logical graph.
        placement: Site of each node of the graph, and what it is estimated to cost.
        costs: Sizes and times that the placement was chosen with.
        parameters: Parameters by name.
        order: Position of each statement in the pipeline, by the text of its id.
        warnings: What the validator noticed.
        uses: What each parameter stands for, by its name.
    """

    pipeline: Pipeline
    homesite: str
    nets: dict[str, NetIR]
    graph: Graph
    placement: Placement
    costs: Costs
    parameters: dict[str, PlaceParam]
    order: dict[str, int]
    warnings: tuple[Fault, ...]
    uses: dict[str, list[ParameterUse]]

    @cached_property
    def encoded_nets(self) -> dict[str, bytes]:
        """The nets as they are submitted."""
        return {site: net.to_bytes() for site, net in self.nets.items()}

    def node(self, node_id: NodeId) -> str:
        """Give the site of the statement with this id."""
        text = node_text(node_id)
        return next(self.placement.sites[node.index] for node in self.graph.nodes if node.node == text)

    def parameter_set(
        self, given: Mapping[str, Any], *, spelling: str = "{}=...", complete: bool = True
    ) -> dict[str, Any]:
        """Check one parameter set and fill in defaults.

        Args:
            given: Values by parameter name.
            spelling: How the user gives a parameter, with `{}` for its name, for messages.
            complete: Whether all parameters must be given that have no default.

        Raises:
            PipelineError: parameters are missing, unknown, of the wrong type, or cannot be sent.
        """
        faults = [
            Fault(f"the pipeline has no parameter {name!r}", hint=_suggestion(name, self.parameters))
            for name in given
            if name not in self.parameters
        ]
        filled: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name in given:
                filled[name] = given[name]
            elif parameter.default is not NO_DEFAULT:
                filled[name] = parameter.default
            elif not complete:
                continue
            else:
                what = f"the parameter {name!r} is not given"
                faults.append(Fault(what, self._missing(name), hint=f"give {spelling.format(name)}"))
                continue
            faults += self._misfits(name, filled[name])
        if faults:
            raise PipelineError("the parameters do not fit the pipeline", dict.fromkeys(faults))
        return filled

    def parameter_sets(
        self,
        sets: Sequence[Mapping[str, Any]],
        *,
        spelling: str = "{}=...",
        location: Callable[[], SourceLocation] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Check parameter sets and iterate over them, filled in; what is wrong with any is raised at the end.

        Args:
            sets: As `parameter_set` takes one.
            spelling: As there.
            location: Tells where the user gave them, for faults that have no place of their own.

        Raises:
            PipelineError: some do not fit; names them by their numbers, counted from 0, where there are several.
        """
        misfits: list[tuple[int, PipelineError]] = []
        for number, given in enumerate(sets):
            try:
                filled = self.parameter_set(given, spelling=spelling)
            except PipelineError as error:
                misfits.append((number, error))
                continue
            if not misfits:
                yield filled
        if misfits:
            raise parameters_error(misfits, len(sets), None if location is None else location())

    def _missing(self, name: str) -> SourceLocation | None:
        """Find where the pipeline first takes a parameter."""
        for statement in self.pipeline.statements():
            if any(isinstance(item, PlaceParam) and item.place == name for item in statement.references()):
                return statement.location
        return None

    def _misfits(self, name: str, value: Any) -> list[Fault]:
        try:
            values.normalise(value)
        except ValueEncodingError as error:
            return [Fault(f"the parameter {name!r} cannot be sent to a site: {error}")]
        return [
            Fault(f"the parameter {name!r} {mismatch}", use.location, hint=use.text)
            for use in self.uses.get(name, ())
            if (mismatch := use.fit.judge(value))
        ]


def compile_pipeline(
    pipeline: Pipeline,
    federation: FederationConfig,
    homesite: str,
    *,
    restrict_to_sites: Iterable[str] | None = None,
    objective: Objective = Objective.TIME,
    measured: MeasuredCosts | None = None,
) -> CompiledPipeline:
    """Compile a pipeline for a federation.

    Args:
        pipeline: What the user wrote.
        federation: The sites and what they offer.
        homesite: Where the client attaches, one of the sites.
        restrict_to_sites: Sites that may take part, besides the homesite; None for all.
        objective: What the sites are chosen for.
        measured: What earlier runs have cost, which counts more than what is declared; None for nothing.

    Raises:
        PipelineError: the pipeline has faults, or cannot be placed under the sites' rules; all of them are listed.
        PlanError: the compiler has one.
    """
    if restrict_to_sites is not None:
        federation = _restricted(federation, {*restrict_to_sites, homesite})
    warnings = validate(pipeline, federation)
    graph = lower(pipeline, federation)
    costs = Costs(graph, federation, measured or NOTHING_MEASURED, pipeline_key(pipeline.name, graph))
    placement = place(graph, costs, homesite, list(federation.sites), objective)
    mark_idempotent(graph, placement.sites, federation)
    nets = state_interfaces(independent_lookups(route(graph, placement.sites, homesite)), federation)
    nets = state_residency(nets, graph, costs)
    faults = check_nets(nets)
    if faults:
        raise PlanError(faults)
    return CompiledPipeline(
        pipeline=pipeline,
        homesite=homesite,
        nets=nets,
        graph=graph,
        placement=placement,
        costs=costs,
        parameters=pipeline.parameters(),
        order={node_text(statement.node_id): position for position, statement in enumerate(pipeline.statements())},
        warnings=tuple(warnings),
        uses=parameter_uses(pipeline, federation),
    )


def _suggestion(name: str, parameters: Mapping[str, PlaceParam]) -> str:
    return did_you_mean(name, list(parameters)) if parameters else "it has no parameters"


def _restricted(federation: FederationConfig, allowed: set[str]) -> FederationConfig:
    unknown = sorted(allowed - federation.sites.keys())
    if unknown:
        faults = [
            Fault(f"the federation has no site {site!r}", hint=did_you_mean(site, list(federation.sites)))
            for site in unknown
        ]
        raise PipelineError("restrict_to_sites names sites that are not there", faults)
    return replace(federation, sites={name: site for name, site in federation.sites.items() if name in allowed})
