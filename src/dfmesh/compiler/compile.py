"""The compiler as one function: validate, lower, place, route."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dfmesh import values
from dfmesh.api import NO_DEFAULT, NodeId, Pipeline, PlaceParam, did_you_mean, node_text
from dfmesh.compiler.costs import Costs
from dfmesh.compiler.graph import Graph
from dfmesh.compiler.lower import lower
from dfmesh.compiler.place import Placement, place
from dfmesh.compiler.route import route
from dfmesh.compiler.validate import validate
from dfmesh.config import FederationConfig
from dfmesh.errors import Fault, PipelineError, ValueEncodingError
from dfmesh.netir import NetIR


@dataclass(frozen=True)
class CompiledPipeline:
    """A pipeline ready to be submitted, as often as one likes.

    Attributes:
        pipeline: What the user wrote.
        homesite: Where the client attaches.
        nets: One net per taking-part site.
        graph: The logical graph.
        placement: Site, estimate and reason per node of the graph.
        costs: Sizes and times that the placement was chosen with.
        parameters: Parameters by name.
        order: Position of each statement in the pipeline, by the text of its id.
        warnings: What the validator noticed.
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

    @cached_property
    def encoded_nets(self) -> dict[str, bytes]:
        """The nets as they are submitted."""
        return {site: net.to_bytes() for site, net in self.nets.items()}

    def node(self, node_id: NodeId) -> str:
        """Give the site of the statement with this id."""
        text = node_text(node_id)
        return next(self.placement.sites[node.index] for node in self.graph.nodes if node.node == text)

    def parameter_set(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check one parameter set and fill in defaults.

        Raises:
            PipelineError: parameters are missing, unknown, or cannot be sent.
        """
        faults = []
        for name in given:
            if name not in self.parameters:
                faults.append(
                    Fault(f"the pipeline has no parameter {name!r}", hint=did_you_mean(name, list(self.parameters)))
                )
        filled: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name in given:
                filled[name] = given[name]
            elif parameter.default is not NO_DEFAULT:
                filled[name] = parameter.default
            else:
                faults.append(Fault(f"the parameter {name!r} is not given", hint=f"give {name}=..."))
                continue
            try:
                values.normalise(filled[name])
            except ValueEncodingError as error:
                faults.append(Fault(f"the parameter {name!r} cannot be sent to a site: {error}"))
        if faults:
            raise PipelineError("the parameters do not fit the pipeline", faults)
        return filled


def compile_pipeline(
    pipeline: Pipeline,
    federation: FederationConfig,
    homesite: str,
    *,
    restrict_to_sites: Iterable[str] | None = None,
) -> CompiledPipeline:
    """Compile a pipeline for a federation.

    Args:
        pipeline: What the user wrote.
        federation: The sites and what they offer.
        homesite: Where the client attaches, one of the sites.
        restrict_to_sites: Sites that may take part, besides the homesite; None for all.

    Raises:
        PipelineError: the pipeline has faults; all of them are listed.
    """
    if restrict_to_sites is not None:
        federation = _restricted(federation, {*restrict_to_sites, homesite})
    warnings = validate(pipeline, federation)
    graph = lower(pipeline, federation)
    costs = Costs(graph, federation)
    placement = place(graph, costs, homesite, list(federation.sites))
    nets = route(graph, placement.sites, homesite)
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
    )


def _restricted(federation: FederationConfig, allowed: set[str]) -> FederationConfig:
    unknown = sorted(allowed - federation.sites.keys())
    if unknown:
        faults = [Fault(f"the federation has no site {site!r}", hint=did_you_mean(site, list(federation.sites))) for site in unknown]
        raise PipelineError("restrict_to_sites names sites that are not there", faults)
    return replace(federation, sites={name: site for name, site in federation.sites.items() if name in allowed})
