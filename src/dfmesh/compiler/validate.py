"""First pass: find every fault of a pipeline at once, each with the user's line and a way out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dfmesh import values
from dfmesh.api import (
    Advise,
    Block,
    Choose,
    Collect,
    Comparison,
    ForEach,
    If,
    Logic,
    NodeId,
    NodeRef,
    Operation,
    Pipeline,
    PlaceParam,
    Reduce,
    Statement,
    did_you_mean,
    find_references,
    node_text,
)
from dfmesh.compiler.candidates import candidates, exposed
from dfmesh.compiler.schema import schema_mismatch
from dfmesh.config import FederationConfig
from dfmesh.errors import Fault, PipelineError, ValueEncodingError
from dfmesh.netir import Port


def validate(pipeline: Pipeline, federation: FederationConfig) -> list[Fault]:
    """Check a pipeline against a federation.

    Returns:
        Warnings, in the order of the pipeline.

    Raises:
        PipelineError: it has faults; all of them are listed.
    """
    faults = list(_Validator(pipeline, federation).faults())
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        name = f"pipeline {pipeline.name!r}" if pipeline.name else "the pipeline"
        raise PipelineError(f"{name} has {len(errors)} fault{'s' * (len(errors) != 1)}", faults)
    return faults


class _Validator:
    def __init__(self, pipeline: Pipeline, federation: FederationConfig) -> None:
        self.pipeline = pipeline
        self.federation = federation
        self.known: dict[NodeId, Statement] = {}
        self.around: dict[NodeId, tuple[tuple[Statement, int], ...]] = {}
        self.seen: set[NodeId] = set()
        self.found: list[Fault] = []

    def faults(self) -> Iterator[Fault]:
        self.index(self.pipeline.body, ())
        self.check_block(self.pipeline.body)
        if not self.known:
            self.fault(None, "the pipeline is empty", "add an operation and a Yield")
        yield from self.found

    def fault(self, statement: Statement | None, message: str, hint: str = "") -> None:
        location = statement.location if statement is not None else self.pipeline.location
        path = "" if statement is None or location is not None else node_text(statement.node_id)
        self.found.append(Fault(message, location, path=path, hint=hint))

    def index(self, body: Sequence[Statement], around: tuple[tuple[Statement, int], ...]) -> None:
        """Note every statement with the blocks around it; an If's two blocks are numbered 0 and 1."""
        for statement in body:
            if statement.node_id in self.known:
                other = self.known[statement.node_id].location
                self.fault(
                    statement,
                    f"the id {node_text(statement.node_id)!r} is used twice",
                    f"the other one is at {other}; give each statement its own node_id",
                )
            elif isinstance(statement.node_id, str) and (not statement.node_id or statement.node_id.startswith("%")):
                self.fault(
                    statement, f"{statement.node_id!r} cannot be an id", "ids are not empty and do not start with %"
                )
            self.known.setdefault(statement.node_id, statement)
            self.around[statement.node_id] = around
            if isinstance(statement, Block):
                self.index(statement.body, (*around, (statement, 0)))
            if isinstance(statement, If) and statement.otherwise is not None:
                self.index(statement.otherwise.body, (*around, (statement, 1)))

    def check_block(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self.found += statement.faults
            self.check(statement)
            self.seen.add(statement.node_id)
            if isinstance(statement, Block):
                self.check_block(statement.body)
            if isinstance(statement, If) and statement.otherwise is not None:
                self.check_block(statement.otherwise.body)

    def check(self, statement: Statement) -> None:
        self.check_references(statement)
        for node_id in statement.after:
            self.check_reference(statement, NodeRef(node_id), after=True)
        for value in statement.values():
            self.check_constants(statement, value)
        if isinstance(statement, Operation | Reduce):
            self.check_call(statement)
        if isinstance(statement, ForEach):
            self.check_loop(statement)

    # References

    def check_references(self, statement: Statement) -> None:
        for reference in statement.references():
            if isinstance(reference, NodeRef):
                self.check_reference(statement, reference)

    def check_reference(self, statement: Statement, reference: NodeRef, *, after: bool = False) -> None:
        target = self.known.get(reference.node)
        what = f"{statement.label} {'comes after' if after else 'refers to'} {node_text(reference.node)!r}"
        if target is None:
            names = [node_text(known) for known in self.known]
            self.fault(
                statement,
                f"{what}, which is no statement of this pipeline",
                did_you_mean(node_text(reference.node), names),
            )
        elif reference.node not in self.seen:
            hint = f"move {target.label} ({target.location}) before it"
            self.fault(statement, f"{what}, which comes later", hint)
        elif not after and not self.has_value(target, reference):
            self.fault(statement, f"{what}, which has no value", f"{target.label} is a {type(target).__name__}")
        elif not self.in_scope(statement, target, reference, after=after):
            self.fault(statement, f"{what}, whose block has ended", self.way_out(target))

    def has_value(self, target: Statement, reference: NodeRef) -> bool:
        if reference.port in (Port.ELEMENT, Port.INDEX):
            return isinstance(target, ForEach)
        return isinstance(target, Operation | Collect | Reduce | Choose)

    def in_scope(self, statement: Statement, target: Statement, reference: NodeRef, *, after: bool) -> bool:
        visible = list(self.around[statement.node_id])
        needed = list(self.around[target.node_id])
        if reference.port in (Port.ELEMENT, Port.INDEX) and not after:
            needed.append((target, 0))
        if isinstance(statement, Collect | Reduce):
            loop = self.known.get(statement.loop)
            visible.append((loop, 0) if loop is not None else (statement, 0))
        if isinstance(statement, Choose | Collect | Reduce) and not after:
            # Choose joins values of branches, and a loop's result leaves out what was skipped.
            needed = [block for block in needed if not isinstance(block[0], If)]
            visible = [block for block in visible if not isinstance(block[0], If)]
        return [_key(block) for block in needed] == [_key(block) for block in visible[: len(needed)]]

    def way_out(self, target: Statement) -> str:
        inner = self.around[target.node_id]
        if isinstance(target, ForEach):
            return "the element of a loop exists in its block only; use loop.collect(...) or loop.reduce(...)"
        if inner and isinstance(inner[-1][0], If):
            return "join the branches with Choose(cond, a, b)"
        return "bring it out of the loop with loop.collect(...) or loop.reduce(...)"

    # Values

    def check_constants(self, statement: Statement, value: Any) -> None:
        if isinstance(value, NodeRef | PlaceParam):
            return
        if isinstance(value, Comparison | Logic):
            operands = value.operands if isinstance(value, Logic) else (value.left, value.right)
            for operand in operands:
                self.check_constants(statement, operand)
        elif next(find_references(value), None) is None:
            try:
                values.normalise(value)
            except ValueEncodingError as error:
                self.fault(statement, f"{statement.label} is given a value that cannot be sent to a site: {error}")
        elif isinstance(value, dict):
            for key, item in value.items():
                self.check_constants(statement, key)
                self.check_constants(statement, item)
        else:
            for item in value:
                self.check_constants(statement, item)

    # Calls

    def check_call(self, statement: Operation | Reduce) -> None:
        operation = statement.operation
        if operation not in self.federation.operations:
            hint = did_you_mean(operation, list(self.federation.operations))
            self.fault(statement, f"the federation has no operation {operation!r}", hint)
            return
        self.check_sites(statement)
        self.check_arguments(statement)
        if statement.retries < 0:
            self.fault(statement, f"{operation}: retries={statement.retries}", "give 0 or more")
        if statement.timeout is not None and statement.timeout <= 0:
            self.fault(statement, f"{operation}: timeout={statement.timeout}", "give seconds above 0, or None")

    def check_sites(self, statement: Operation | Reduce) -> None:
        if isinstance(statement.site, Advise):
            self.fault(statement, "Advise() is for session.discover(...)", "name a site, or use BestOf()")
            return
        named = [statement.site] if isinstance(statement.site, str) else list(statement.site.sites or ())
        unknown = [site for site in named if site not in self.federation.sites]
        for site in unknown:
            self.fault(
                statement, f"the federation has no site {site!r}", did_you_mean(site, list(self.federation.sites))
            )
        if unknown or candidates(statement, self.federation):
            return
        offering = self.federation.offers(statement.operation, statement.provider)
        if offering and not (named and set(named).isdisjoint(offering)):
            return  # Only the arguments do not fit; check_arguments says which.
        where = f"provider {statement.provider!r} of " if statement.provider else ""
        which = " or ".join(named) if named else "any site"
        hint = f"it is offered by {', '.join(offering)}" if offering else self.other_interfaces(statement)
        self.fault(statement, f"{statement.operation} is not offered by {where}{which}", hint)

    def other_interfaces(self, statement: Operation | Reduce) -> str:
        found = [
            f"{site.name} (provider {provider.name!r})" if provider else site.name
            for site in self.federation.sites.values()
            for provider in [None, *site.providers.values()]
            if statement.operation in (provider or site).interface
        ]
        return f"it is offered by {', '.join(found)}" if found else "no site offers it"

    def check_arguments(self, statement: Operation | Reduce) -> None:
        specification = self.federation.operations[statement.operation]
        own = {parameter.name: parameter for parameter in specification.parameters}
        given = set(statement.arguments)
        if isinstance(statement, Reduce):
            if len(own) < 2:
                self.fault(statement, f"{statement.operation} has fewer than two parameters and cannot reduce")
                return
            given |= set(list(own)[:2])
        offering = self.federation.offers(statement.operation, statement.provider)
        extra = {name for site in offering for name in exposed(statement, self.federation, site)}
        for name in sorted(given - own.keys() - extra):
            hint = did_you_mean(name, [*own, *sorted(extra)])
            self.fault(statement, f"{statement.operation} has no parameter {name!r}", hint)
        for name, parameter in own.items():
            if parameter.required and name not in given:
                self.fault(statement, f"{statement.operation} needs the parameter {name!r}", parameter.description)
        for name, value in statement.arguments.items():
            if name in own and next(find_references(value), None) is None:
                mismatch = schema_mismatch(value, own[name].schema)
                if mismatch:
                    self.fault(statement, f"{statement.operation}: {name} {mismatch}", own[name].description)

    # Blocks

    def check_loop(self, statement: ForEach) -> None:
        if statement.window is not None and (not isinstance(statement.window, int) or statement.window < 1):
            self.fault(statement, f"window={statement.window!r}", "give a whole number of at least 1, or None")
        if statement.on_error not in ("fail", "skip"):
            self.fault(statement, f"on_error={statement.on_error!r}", "give 'fail' or 'skip'")
        sequence = statement.seq
        if not isinstance(sequence, NodeRef | PlaceParam) and not _iterable(sequence):
            self.fault(statement, f"ForEach cannot go over {sequence!r}", "give a list, or a reference to one")


def _iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | bytearray)


def _key(block: tuple[Statement, int]) -> tuple[int, int]:
    return id(block[0]), block[1]
