"""First pass: find every fault of a pipeline at once, each with the user's line and a way out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from dfmesh import values
from dfmesh.api import (
    NO_DEFAULT,
    STATUS_PLACE,
    Advise,
    Block,
    Choose,
    Collect,
    Else,
    ForEach,
    If,
    NodeId,
    NodeRef,
    Operation,
    Part,
    Pipeline,
    PlaceParam,
    Reduce,
    Statement,
    TryFromCache,
    WriteToCache,
    Yield,
    did_you_mean,
    is_unicode,
    node_id_problem,
    node_text,
    number_fits,
)
from dfmesh.compiler.check_calls import CallChecker, ValueChecker, at_most, is_int, is_number, shown
from dfmesh.compiler.check_use import use_warnings
from dfmesh.compiler.loop_sequences import loop_takes, sequence_fit
from dfmesh.config import FederationConfig
from dfmesh.errors import Fault, PipelineError, ValueEncodingError
from dfmesh.netir import Field, Item, Port


def validate(pipeline: Pipeline, federation: FederationConfig, *, discovery: bool = False) -> list[Fault]:
    """Check a pipeline against a federation.

    Args:
        pipeline: What the user wrote.
        federation: The sites and what they offer.
        discovery: Whether it is for discovery: arguments and sites may be `Advise()`, and that no site can run an
            operation is no fault but an answer.

    Returns:
        Warnings, in the order of the pipeline.

    Raises:
        PipelineError: it has faults; all of them are listed.
    """
    if not isinstance(pipeline, Pipeline):
        raise TypeError(not_a_pipeline(pipeline))
    # A line that a Python loop ran several times is one place, and what is wrong there is wrong once.
    faults = list(dict.fromkeys(_Validator(pipeline, federation, discovery=discovery).faults()))
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        name = f"pipeline {pipeline.name!r}" if pipeline.name else "the pipeline"
        raise PipelineError(f"{name} has {len(errors)} fault{'s' * (len(errors) != 1)}", faults)
    return list(dict.fromkeys([*faults, *use_warnings(pipeline)]))


def not_a_pipeline(given: object) -> str:
    """Say what to do about something that was given in place of a pipeline."""
    hint = ""
    if isinstance(given, str | os.PathLike):
        hint = "; Pipeline.load(path) reads one from a JSON document, `dfmesh run` runs that of a script"
    elif callable(given):
        hint = "; call it, and give what it returns"
    return f"a Pipeline is expected, not {given!r:.80} ({type(given).__name__}){hint}"


class _Validator:
    def __init__(self, pipeline: Pipeline, federation: FederationConfig, *, discovery: bool) -> None:
        self.pipeline = pipeline
        self.discovery = discovery
        self.federation = federation
        self.known: dict[NodeId, Statement] = {}
        self.around: dict[int, tuple[tuple[Statement, int], ...]] = {}
        self.seen: set[NodeId] = set()
        self.found: list[Fault] = []
        self.calls = CallChecker(federation, self.fault, self.known, discovery=discovery)
        self.constants = ValueChecker(self.fault)
        self.defaults: dict[str, bytes] = {}

    def faults(self) -> Iterator[Fault]:
        self.check_name()
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
            problem = node_id_problem(statement.node_id)
            if problem:
                self.fault(statement, problem, "leave node_id= out, or give another")
            elif statement.node_id in self.known:
                other = self.known[statement.node_id]
                what = f"the id {node_text(statement.node_id)!r} is used twice"
                self.fault(statement, what, f"{_described(other)} has it; give each statement its own node_id")
            if isinstance(statement.node_id, int | str):
                self.known.setdefault(statement.node_id, statement)
            self.around[id(statement)] = around
            if isinstance(statement, Block):
                self.index(statement.body, (*around, (statement, 0)))
            if isinstance(statement, If) and statement.otherwise is not None:
                self.index(statement.otherwise.body, (*around, (statement, 1)))

    def check_block(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self.found += statement.faults
            self.found += statement.foreign_faults(self.pipeline.identity)
            if isinstance(statement, Block) and not statement.entered:
                named = "" if statement.label == "If" else " as name"
                hint = f"write `with {statement.label}(...){named}:` and indent what belongs to it"
                self.fault(statement, f"this {statement.label} has no block", hint)
            self.check(statement)
            if isinstance(statement.node_id, int | str):
                self.seen.add(statement.node_id)
            if isinstance(statement, Block):
                self.check_block(statement.body)
            if isinstance(statement, If) and statement.otherwise is not None:
                self.check_else(statement.otherwise)

    def check_else(self, block: Else) -> None:
        if not block.entered:
            hint = "write `with Else():` and indent what belongs to it"
            self.found.append(Fault("this Else has no block", block.location, hint=hint))
        self.check_block(block.body)

    def check(self, statement: Statement) -> None:
        self.check_references(statement)
        for node_id in statement.after:
            self.check_reference(statement, NodeRef(node_id), after=True)
        for value in statement.values():
            if not (self.discovery and isinstance(value, Advise) and isinstance(statement, Operation | Reduce)):
                self.constants.check(statement, value)
        self.check_parameters(statement)
        if isinstance(statement, Operation | Reduce):
            self.calls.check(statement)
        if isinstance(statement, Yield):
            self.check_place(statement)
        if isinstance(statement, ForEach):
            self.check_loop(statement)
        if isinstance(statement, TryFromCache):
            self.check_cache(statement)
        if isinstance(statement, WriteToCache) and not statement.foreign:
            self.check_write(statement)
        if isinstance(statement, Collect | Reduce) and not statement.foreign:
            self.check_gathering(statement)

    # References

    def check_references(self, statement: Statement) -> None:
        outer = {id(item) for item in statement.outer_references()} if isinstance(statement, Reduce) else set()
        for reference in statement.references():
            for step in reference.select:
                self.check_step(statement, step)
            if isinstance(reference, NodeRef) and not reference.is_foreign(self.pipeline.identity):
                self.check_reference(statement, reference, outer=id(reference) in outer)

    def check_step(self, statement: Statement, step: Item | Field) -> None:
        key = step.key if isinstance(step, Item) else step.name
        if isinstance(key, str) and not is_unicode(key):
            self.fault(statement, f"{statement.label} selects {key!r}, which is not Unicode", "give another key")
        if isinstance(key, int) and not number_fits(key):
            what = f"{statement.label} selects [{shown(key)}], which has more than 64 bits"
            self.fault(statement, what, "select it in an operation")

    def check_reference(
        self, statement: Statement, reference: NodeRef, *, after: bool = False, outer: bool = False
    ) -> None:
        """Check one reference.

        Args:
            statement: What refers.
            reference: To what.
            after: It only says that the statement comes after the other.
            outer: The statement gathers from a loop, but this one must come from outside of it.
        """
        target = self.known.get(reference.node)
        if target is None:
            verb = "comes after" if after else "uses"
            what = f"{statement.label} {verb} {node_text(reference.node)!r}, which is no statement of this pipeline"
            self.fault(statement, what, self.names_hint(reference.node))
            return
        problem = (
            self.after_problem(statement, target) if after else self.use_problem(statement, target, reference, outer)
        )
        if problem is not None:
            self.fault(statement, *problem)

    def names_hint(self, node_id: NodeId) -> str:
        names = [known for known in self.known if isinstance(known, str)]
        given = "hand over the statement itself, or give it a node_id"
        return did_you_mean(str(node_id), names) if names else given

    def after_problem(self, statement: Statement, target: Statement) -> tuple[str, str] | None:
        what = f"{statement.label} comes after {_described(target)}"
        if target.node_id not in self.seen:
            return f"{what}, which stands behind it", "move that before this one"
        if self.stands_in(statement, target):
            return f"{what}, in which it stands", "a statement cannot wait for the end of its own block; leave this out"
        if not self.in_scope(statement, target, NodeRef(target.node_id), after=True):
            return f"{what}, which stands in a block that has ended", "name the block itself, or a statement behind it"
        return None

    def use_problem(
        self, statement: Statement, target: Statement, reference: NodeRef, outer: bool
    ) -> tuple[str, str] | None:
        what = f"{statement.label} uses {_described(target)}"
        if target.node_id not in self.seen:
            return f"{what}, which stands behind it", "move that before this one"
        if not self.has_value(target, reference):
            return f"{what}, which has no value", _VALUES.get(type(target), "name a statement that has one")
        if isinstance(target, TryFromCache) and self.stands_in(statement, target):
            return f"{what} in its own block, where it has no value yet", "use it behind the block"
        if self.in_scope(statement, target, reference, outer=outer):
            return None
        if isinstance(target, ForEach):
            what = f"{statement.label} uses the {reference.port.value} of {_described(target)}"
        return f"{what} outside of {self.block_left(statement, target)}", self.way_out(target)

    def stands_in(self, statement: Statement, block: Statement) -> bool:
        return any(around[0] is block for around in self.around[id(statement)])

    def block_left(self, statement: Statement, target: Statement) -> str:
        """Name the outermost block around a statement that another does not stand in."""
        visible = {_key(block) for block in self.around[id(statement)]}
        left = [block for block, number in self.around[id(target)] if _key((block, number)) not in visible]
        if not left or isinstance(target, ForEach):
            return "its block"
        return f"the {left[0].label} in which that is made"

    def has_value(self, target: Statement, reference: NodeRef) -> bool:
        if reference.port in (Port.ELEMENT, Port.INDEX):
            return isinstance(target, ForEach)
        return isinstance(target, Operation | Collect | Reduce | Choose | TryFromCache)

    def in_scope(
        self, statement: Statement, target: Statement, reference: NodeRef, *, after: bool = False, outer: bool = False
    ) -> bool:
        visible = list(self.around[id(statement)])
        needed = list(self.around[id(target)])
        if reference.port in (Port.ELEMENT, Port.INDEX) and not after:
            needed.append((target, 0))
        if isinstance(statement, Collect | Reduce) and not after and not outer:
            loop = self.known.get(statement.loop)
            visible.append((loop, 0) if loop is not None else (statement, 0))
        if isinstance(statement, Choose | Collect | Reduce) and not after and not outer:
            # Choose joins values of branches, and a loop's result leaves out what was skipped.
            needed = [block for block in needed if not isinstance(block[0], If)]
            visible = [block for block in visible if not isinstance(block[0], If)]
        return [_key(block) for block in needed] == [_key(block) for block in visible[: len(needed)]]

    def way_out(self, target: Statement) -> str:
        inner = self.around[id(target)]
        if isinstance(target, ForEach):
            return "the element of a loop exists in its block only; use loop.collect(...) or loop.reduce(...)"
        if inner and isinstance(inner[-1][0], If) and isinstance(target, Part):
            return "join the branches with Choose(cond, a, b), or write that where it is used"
        if inner and isinstance(inner[-1][0], If):
            return "join the branches with Choose(cond, a, b)"
        if inner and isinstance(inner[-1][0], TryFromCache):
            return "use the value of the TryFromCache; its block is left out where the cache has one"
        return "bring it out of the loop with loop.collect(...) or loop.reduce(...)"

    # Names

    def check_name(self) -> None:
        name: Any = self.pipeline.name
        if name is not None and not (isinstance(name, str) and is_unicode(name)):
            self.fault(None, f"name={name!r:.80} is no name for a pipeline", "give a text in Unicode, or None")

    def check_place(self, statement: Yield) -> None:
        if not isinstance(statement.place, str) or not statement.place or not is_unicode(statement.place):
            self.fault(statement, f"place={statement.place!r} is no name", "give a text")
        elif statement.place == STATUS_PLACE:
            hint = "callbacks are told there how the job goes; give another name"
            self.fault(statement, f"place={statement.place!r} is reserved", hint)

    def check_parameters(self, statement: Statement) -> None:
        """Check that a parameter that stands in several places has one default."""
        for reference in statement.references():
            if not isinstance(reference, PlaceParam) or reference.default is NO_DEFAULT:
                continue
            try:
                default = values.to_bytes(reference.default)
            except ValueEncodingError:
                continue  # Reported with the constants.
            if self.defaults.setdefault(reference.place, default) != default:
                what = f"the parameter {reference.place!r} has another default ({reference.default!r:.60}) here"
                self.fault(statement, what, "make one PlaceParam and use it in both places")

    # Blocks

    def check_cache(self, statement: TryFromCache) -> None:
        writes = [inner for inner in statement.body if isinstance(inner, WriteToCache)]
        if len(writes) != 1:
            what = "stores nothing" if not writes else f"stores {len(writes)} values"
            hint = "call its cache(value) once, in the block itself, not in an If or a loop inside"
            self.fault(statement, f"the block of TryFromCache {what}", hint)
        self.calls.check_site_option(statement, statement.site, "TryFromCache")
        ttl: Any = statement.ttl
        if ttl is not None and not (is_number(ttl) and ttl > 0):
            self.fault(statement, f"TryFromCache: ttl={shown(ttl)}", "give seconds above 0, or None")

    def check_write(self, statement: WriteToCache) -> None:
        around = self.around[id(statement)]
        if not around or around[-1][0] is not self.known.get(statement.cached):
            self.fault(
                statement, "cache(...) does not stand directly in the block of its TryFromCache", "move it there"
            )

    def check_gathering(self, statement: Collect | Reduce) -> None:
        loop = self.known.get(statement.loop)
        if not isinstance(loop, ForEach) or statement.loop not in self.seen:
            self.fault(statement, f"{statement.label} names {node_text(statement.loop)!r}, which is no loop before it")
        elif self.around[id(loop)] != self.around[id(statement)]:
            hint = "it belongs behind the loop, in the block that the loop stands in"
            self.fault(statement, f"{statement.label} does not stand in the block of its loop", hint)

    def check_loop(self, statement: ForEach) -> None:
        window: Any = statement.window
        if window is not None and not (is_int(window) and window >= 1):
            hint = f"give a whole number of at least 1{at_most(window)}, or None"
            self.fault(statement, f"ForEach: window={shown(window)}", hint)
        if statement.on_error not in ("fail", "skip", "collect"):
            self.fault(statement, f"ForEach: on_error={statement.on_error!r}", "give 'fail', 'skip' or 'collect'")
        sequence = statement.seq
        if isinstance(sequence, PlaceParam):
            self.check_default_sequence(statement, sequence)
        elif not isinstance(sequence, NodeRef) and not loop_takes(sequence):
            self.fault(statement, f"ForEach cannot go over {sequence!r:.80}", "give a list, or a reference to one")

    def check_default_sequence(self, statement: ForEach, parameter: PlaceParam) -> None:
        if parameter.default is NO_DEFAULT or parameter.select:
            return
        mismatch = sequence_fit(in_block=bool(self.around[id(statement)])).judge(parameter.default)
        if mismatch:
            what = f"ForEach cannot go over the default of parameter {parameter.place!r}, which {mismatch}"
            self.fault(statement, what, "give a list as its default, or none")


_VALUES: dict[type[Statement], str] = {
    If: "a block has no value; Choose(cond, a, b) gives that of one branch or the other",
    Yield: "a Yield sends a value to the client; use that value itself",
    WriteToCache: "use the value of the TryFromCache, behind its block",
}
"""What to use instead of a statement that has no value."""


def _described(statement: Statement) -> str:
    where = statement.location or (f"id {node_text(statement.node_id)}")
    return f"{statement.label} ({where})"


def _key(block: tuple[Statement, int]) -> tuple[int, int]:
    return id(block[0]), block[1]
