"""How often loops go round and conditions are true in a predicted run: said, known, measured, or assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

from dfmesh import values
from dfmesh.api import did_you_mean
from dfmesh.compiler import CompiledPipeline, Graph, Node
from dfmesh.errors import DfmeshError, Fault, PipelineError
from dfmesh.netir import Branch, Const, Expression, Input, LookUp, Loop, select
from dfmesh.values.elements import elements_of

ASSUMED_ITERATIONS = 10.0
"""Iterations of a loop of which nothing is known."""

_ASSUMED_SHARES: dict[type, tuple[float, str]] = {
    Branch: (0.5, "true every other time"),
    LookUp: (0.0, "nothing is found in the cache"),
}


def resolve(
    compiled: CompiledPipeline,
    parameter_sets: Sequence[Mapping[str, Any]],
    iterations: Mapping[str, float],
    shares: Mapping[str, float],
) -> tuple[dict[int, list[float]], list[str]]:
    """Find the iterations of all loops, and the shares of all conditions and look-ups.

    Args:
        compiled: The pipeline.
        parameter_sets: What is known of the parameters.
        iterations: What the user says of loops, by statement.
        shares: What the user says of conditions and look-ups, by statement.

    Returns:
        Figures by the id of the transition, one for all parameter sets or one for each; and what was assumed.

    Raises:
        PipelineError: the user's figures name what is not there, or are impossible.
    """
    nodes = [node for node in compiled.graph.nodes if isinstance(node.action, Loop | Branch | LookUp)]
    loops = [node.node for node in nodes if isinstance(node.action, Loop)]
    others = [node.node for node in nodes if not isinstance(node.action, Loop)]
    faults = [*_faults(iterations, loops, "loop", float("inf")), *_faults(shares, others, "condition or look-up", 1.0)]
    if faults:
        raise PipelineError("what is said about the run does not fit the pipeline", faults)
    said = {**iterations, **shares}
    found: dict[int, list[float]] = {}
    assumptions: list[str] = []
    for node in nodes:
        known = [said[node.node]] if node.node in said else _known(compiled, node, parameter_sets)
        found[node.index] = known or [_assumed(node, assumptions)]
    return found, assumptions


def _faults(said: Mapping[str, float], there: list[str], kind: str, most: float) -> Iterable[Fault]:
    allowed = "give a number from 0" if most == float("inf") else f"give a number from 0 to {most:g}"
    for name, figure in said.items():
        if name not in there:
            yield Fault(f"the pipeline has no {kind} {name!r}", hint=did_you_mean(name, there) if there else "")
        elif not 0 <= figure <= most:
            yield Fault(f"the {kind} {name!r} cannot have {figure:g}", hint=allowed)


def _known(compiled: CompiledPipeline, node: Node, parameter_sets: Sequence[Mapping[str, Any]]) -> list[float]:
    if isinstance(node.action, Loop):
        lengths = _lengths(compiled.graph, node, node.action.sequence, parameter_sets)
        if lengths:
            return lengths
    measured = compiled.costs.measured.counted(compiled.costs.pipeline, node.node, node.name)
    return [] if measured is None else [measured]


def _lengths(
    graph: Graph, node: Node, sequence: Expression, parameter_sets: Sequence[Mapping[str, Any]]
) -> list[float]:
    """Count the elements of a sequence that stands in the pipeline or is a parameter; nothing if it is neither."""
    if isinstance(sequence, Const):
        return _length([values.from_bytes(sequence.data)])
    if not isinstance(sequence, Input):
        return []
    edge = node.edges[sequence.index]
    if edge.parameter is None or any(edge.parameter not in given for given in parameter_sets):
        return []
    try:
        return _length(select(given[edge.parameter], (*edge.select, *sequence.select)) for given in parameter_sets)
    except DfmeshError:
        return []


def _length(sequences: Iterable[Any]) -> list[float]:
    try:
        return [
            float(len(item) if isinstance(item, Sized) else sum(1 for _ in elements_of(item))) for item in sequences
        ]
    except DfmeshError:
        return []


def _assumed(node: Node, assumptions: list[str]) -> float:
    figure, text = _ASSUMED_SHARES.get(type(node.action), (ASSUMED_ITERATIONS, f"{ASSUMED_ITERATIONS:.0f} iterations"))
    where = f" ({node.location})" if node.location else ""
    assumptions.append(f"{node.name} {node.node}{where}: {text}")
    return figure
