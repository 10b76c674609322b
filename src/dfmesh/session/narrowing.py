"""Copying a pipeline with what a discovery found put in."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from dfmesh.api import (
    Advise,
    BestOf,
    Block,
    ForEach,
    If,
    NodeId,
    Operation,
    Pipeline,
    Reduce,
    Statement,
    did_you_mean,
    node_text,
    with_references,
)
from dfmesh.errors import Fault, PipelineError
from dfmesh.session.discovery_result import DiscoveryResult, NodeDiscovery


def narrow(
    result: DiscoveryResult,
    pipeline: Pipeline,
    choices: Mapping[NodeId, Mapping[str, Any]],
    *,
    include_unsure: bool,
) -> Pipeline:
    """As `DiscoveryResult.narrow`."""
    narrowing = _Narrowing(result, choices, include_unsure=include_unsure)
    clone = copy.copy(pipeline)
    narrowing.copy_block(pipeline.body, clone)
    if narrowing.faults:
        raise PipelineError("the pipeline cannot be narrowed to what the sites allow", narrowing.faults)
    return clone


class _Narrowing:
    def __init__(
        self, result: DiscoveryResult, choices: Mapping[NodeId, Mapping[str, Any]], *, include_unsure: bool
    ) -> None:
        self._result = result
        self._choices = choices
        self._include_unsure = include_unsure
        self.faults = [
            Fault(
                f"choices for {node_text(node)!r}, which is no operation of the discovery",
                hint=did_you_mean(node_text(node), [node_text(known) for known in result.nodes]),
            )
            for node in choices
            if node not in result.nodes
        ]

    def copy_block(self, body: Sequence[Statement], target: Block) -> None:
        target.body = []
        for statement in body:
            clone = copy.copy(statement)
            target.body.append(clone)
            if isinstance(clone, ForEach):
                clone.belong_to(target)
            if isinstance(statement, Block) and isinstance(clone, Block):
                self.copy_block(statement.body, clone)
            if isinstance(statement, If) and isinstance(clone, If) and statement.otherwise is not None:
                clone.otherwise = copy.copy(statement.otherwise)
                self.copy_block(statement.otherwise.body, clone.otherwise)
            if isinstance(clone, Operation | Reduce) and clone.node_id in self._result.nodes:
                self._narrow(clone, self._result.nodes[clone.node_id])

    def _narrow(self, clone: Operation | Reduce, found: NodeDiscovery) -> None:
        chosen = dict(self._choices.get(clone.node_id, {}))
        at = chosen.pop("site", None)
        unknown = [name for name in chosen if name not in clone.arguments and name not in found.fields]
        for name in unknown:
            hint = did_you_mean(name, [*found.fields, *clone.arguments])
            self.faults.append(Fault(f"{found.operation} has no field {name!r} to choose", clone.location, hint=hint))
        left = found.select(**{name: value for name, value in chosen.items() if name not in unknown})
        sites = [site for site in left.answers if site in left.sites or (self._include_unsure and site in left.unsure)]
        if not sites:
            reasons = "; ".join(f"{site}: {reason}" for site, reason in {**left.unsure, **left.cannot}.items())
            with_values = f" with {', '.join(f'{name}={value!r}' for name, value in chosen.items())}" if chosen else ""
            self.faults.append(Fault(f"no site can run {found.operation}{with_values}", clone.location, hint=reasons))
            return
        if at is not None and at not in sites:
            reason = {**left.unsure, **left.cannot}.get(str(at), f"it can run at {', '.join(sites)}")
            self.faults.append(Fault(f"{found.operation} cannot run at {at!r}", clone.location, hint=reason))
            return
        given = {**clone.arguments, **{name: with_references(value) for name, value in chosen.items()}}
        single = left.single_values()
        clone.arguments = {
            name: single[name] if isinstance(value, Advise) and name in single else value
            for name, value in given.items()
        }
        if at is not None:
            clone.site = at
        elif not isinstance(clone.site, str):
            clone.site = BestOf(sites)
