"""First pass: find every fault of a pipeline at once, each with the user's line and a way out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dfmesh import values
from dfmesh.api import (
    NO_DEFAULT,
    STATUS_PLACE,
    Advise,
    Block,
    Collect,
    ForEach,
    NodeId,
    NodeRef,
    Operation,
    Pipeline,
    PlaceParam,
    Reduce,
    Statement,
    TryFromCache,
    WriteToCache,
    Yield,
    blocks_of,
    is_unicode,
    node_text,
)
from dfmesh.compiler.check_calls import CallChecker
from dfmesh.compiler.check_gathering import waits_for_end_of
from dfmesh.compiler.check_options import at_most, is_int, is_number, shown
from dfmesh.compiler.check_references import ReferenceChecker
from dfmesh.compiler.check_use import use_warnings
from dfmesh.compiler.check_values import ValueChecker
from dfmesh.compiler.fits import part_fit, sequence_fit
from dfmesh.compiler.layout import Layout, described
from dfmesh.compiler.report import Report
from dfmesh.config import FederationConfig
from dfmesh.errors import Fault, PipelineError, ValueEncodingError
from dfmesh.values.elements import has_elements


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
    return list(dict.fromkeys([*_version_warnings(pipeline, federation), *faults, *use_warnings(pipeline)]))


def _version_warnings(pipeline: Pipeline, federation: FederationConfig) -> list[Fault]:
    written_for, there_is = pipeline.api_version, federation.api_version
    if not written_for or not there_is or written_for == there_is:
        return []
    what = f"the pipeline was written for version {written_for} of the federation, which is now {there_is}"
    hint = "see what has changed, and give it the new api_version"
    return [Fault(what, pipeline.location, hint=hint, severity="warning")]


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
        self.report = Report(pipeline)
        self.fault = self.report.fault
        self.check_name()
        self.layout = Layout(pipeline, self.report)
        self.references = ReferenceChecker(pipeline, self.layout, self.report)
        self.calls = CallChecker(federation, self.report, self.layout, discovery=discovery)
        self.constants = ValueChecker(self.report)
        self.defaults: dict[str, bytes] = {}
        self.writes: dict[NodeId, list[WriteToCache]] = {}

    def faults(self) -> list[Fault]:
        for statement in self.pipeline.statements():
            if isinstance(statement, WriteToCache):
                self.writes.setdefault(statement.cached, []).append(statement)
        self.check_block(self.pipeline.body)
        if not self.pipeline.body:
            self.fault(None, "the pipeline is empty", "add an operation and a Yield")
        return self.report.found

    def check_block(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self.report.found += statement.faults
            self.report.found += statement.foreign_faults(self.pipeline.identity)
            self.check(statement)
            self.layout.note_seen(statement)
            for block in blocks_of(statement):
                self.check_entered(block)
                self.check_block(block.body)

    def check_entered(self, block: Block) -> None:
        if not block.entered:
            kind = type(block).__name__
            written = {"If": "If(...)", "Else": "Else()"}.get(kind, f"{kind}(...) as name")
            hint = f"write `with {written}:` and indent what belongs to it"
            self.report.found.append(Fault(f"this {kind} has no block", block.location, hint=hint))

    def check(self, statement: Statement) -> None:
        self.references.check(statement)
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
        own = self.writes.get(statement.node_id, [])
        writes = [write for write in own if self.is_placed(write)]
        # Without a block, or with a cache(...) elsewhere, the fault is that, and told of there.
        if statement.entered and len(writes) != 1 and (writes or not own):
            what = "stores nothing" if not writes else f"stores {len(writes)} values"
            hint = "call its cache(value) once, in the block itself, not in an If or a loop inside"
            self.fault(statement, f"the block of TryFromCache {what}", hint)
        self.calls.check_site_option(statement, statement.site, "TryFromCache")
        ttl: Any = statement.ttl
        if ttl is not None and not (is_number(ttl) and ttl > 0):
            self.fault(statement, f"TryFromCache: ttl={shown(ttl)}", "give seconds above 0, or None")

    def check_write(self, statement: WriteToCache) -> None:
        cached = self.layout.known.get(statement.cached)
        if not self.is_placed(statement) and getattr(cached, "entered", True):
            what = "cache(...) does not stand directly in the block of its TryFromCache"
            self.fault(statement, what, "move it there")

    def is_placed(self, statement: WriteToCache) -> bool:
        cached, around = self.layout.known.get(statement.cached), self.layout.around(statement)
        return isinstance(cached, TryFromCache) and bool(around) and around[-1] is cached

    def check_gathering(self, statement: Collect | Reduce) -> None:
        loop = self.layout.known.get(statement.loop)
        if not isinstance(loop, ForEach) or statement.loop not in self.layout.seen:
            self.fault(statement, f"{statement.label} names {node_text(statement.loop)!r}, which is no loop before it")
        elif not self.layout.are_together(loop, statement):
            hint = "it belongs behind the loop, in the block that the loop stands in"
            self.fault(statement, f"{statement.label} does not stand in the block of its loop", hint)
        elif (late := waits_for_end_of(loop, statement.value, self.layout)) is not None:
            what = f"{statement.label} gathers {described(late)}, which is there only when its loop has ended"
            self.fault(statement, what, "gather the rest by itself, and put both together behind the loop")

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
        elif not isinstance(sequence, NodeRef) and not has_elements(sequence):
            self.fault(statement, f"ForEach cannot go over {sequence!r:.80}", "give a list, or a reference to one")

    def check_default_sequence(self, statement: ForEach, parameter: PlaceParam) -> None:
        if parameter.default is NO_DEFAULT:
            return
        fit = part_fit(sequence_fit(in_block=bool(self.layout.around(statement))), parameter.select)
        mismatch = fit.judge(parameter.default)
        if mismatch:
            what = f"ForEach cannot go over the default of parameter {parameter.place!r}, which {mismatch}"
            self.fault(statement, what, "give a list as its default, or none")
