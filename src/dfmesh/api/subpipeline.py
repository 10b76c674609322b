"""Sub-pipelines: one pipeline used as a statement of another.

Calling a pipeline while another is being written copies its statements there, with new ids, its parameters replaced by
what the call gives, and its yields turned into values of the caller.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dfmesh.api.blocks import Block, If, blocks_of
from dfmesh.api.building import OPEN_BLOCKS, current_block, current_pipeline, user_location
from dfmesh.api.caching import TryFromCache, WriteToCache
from dfmesh.api.conditions import Comparison, Condition, Logic
from dfmesh.api.loops import Collect, ForEach, Reduce
from dfmesh.api.node_ids import NodeId
from dfmesh.api.operation import Operation
from dfmesh.api.references import NO_DEFAULT, NodeRef, Origin, PlaceParam, with_references
from dfmesh.api.statements import Choose, Statement, Yield, find_references
from dfmesh.api.suggestion import did_you_mean
from dfmesh.errors import Fault, PipelineError
from dfmesh.netir import SelectorError, select

if TYPE_CHECKING:
    from dfmesh.api.pipeline import Pipeline


class SubPipelineValues(Mapping[str, Any]):
    """What a sub-pipeline yields, by place: references for the statements that follow.

    A yield inside a loop of the sub-pipeline gives the list over all iterations.
    """

    def __init__(self, outputs: dict[str, Any]) -> None:
        self._outputs = outputs

    def __getitem__(self, place: str) -> Any:
        """Refer to what was yielded to a place."""
        if place not in self._outputs:
            raise KeyError(f"no place {place!r}: {did_you_mean(place, list(self._outputs))}")
        return self._outputs[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._outputs)

    def __len__(self) -> int:
        return len(self._outputs)


def inline(pipeline: Pipeline, arguments: dict[str, Any]) -> SubPipelineValues:
    """Copy a pipeline into the one that is being written.

    Args:
        pipeline: The one to copy; it is not changed.
        arguments: Its parameters: references, parameters of the caller, or constants.

    Raises:
        PipelineError: no pipeline is being written, or the arguments do not fit.
    """
    block = current_block(pipeline.name or "a sub-pipeline")
    if pipeline is current_pipeline():
        raise _misuse([Fault("a pipeline is called in itself", user_location(), hint="call another one")])
    if pipeline.faults:
        raise _misuse(pipeline.faults)
    for reference in find_references(with_references(list(arguments.values()))):
        if isinstance(reference, PlaceParam):
            current_pipeline().note_passed_on(reference)
    return SubPipelineValues(_Inlining(pipeline.identity, _bound(pipeline, arguments)).run(pipeline.body, block))


def _bound(pipeline: Pipeline, arguments: dict[str, Any]) -> dict[str, Any]:
    parameters = pipeline.parameters()
    here = user_location()
    faults = [
        Fault(f"the sub-pipeline has no parameter {name!r}", here, hint=did_you_mean(name, list(parameters)))
        for name in arguments
        if name not in parameters
    ]
    bound = {name: with_references(value) for name, value in arguments.items()}
    for name, parameter in parameters.items():
        if name not in bound and parameter.default is NO_DEFAULT:
            faults.append(Fault(f"the sub-pipeline needs the parameter {name!r}", here, hint=f"give {name}=..."))
        bound.setdefault(name, parameter.default)
    if faults:
        raise _misuse(faults)
    return bound


def _misuse(faults: list[Fault]) -> PipelineError:
    return PipelineError("the sub-pipeline cannot be used like this", faults)


class _Inlining:
    def __init__(self, source: bytes, arguments: dict[str, Any]) -> None:
        self._source = source
        self._target = current_pipeline().identity
        self._arguments = arguments
        self._ids: dict[NodeId, NodeId] = {}
        self._loops: list[ForEach] = []
        self._called_at = user_location()
        self._around = OPEN_BLOCKS.get()
        self._branches = 0
        self._outputs: dict[str, list[Any]] = {}

    def run(self, body: Sequence[Statement], target: Block) -> dict[str, Any]:
        self._block(body, target)
        outputs = {place: found[0] if len(found) == 1 else found for place, found in self._outputs.items()}
        return {place: _handed_through(value) for place, value in outputs.items()}

    def _block(self, body: Sequence[Statement], target: Block) -> None:
        for statement in body:
            if isinstance(statement, Yield):
                self._output(statement)
            else:
                self._copy(statement, target)

    def _copy(self, statement: Statement, target: Block) -> None:
        clone = copy.copy(statement)
        clone.node_id = self._ids[statement.node_id] = current_pipeline().next_node_id()
        clone.origin = self._moved(clone.origin)
        clone.called_at = self._called_at
        clone.after = tuple(self._ids[node] for node in statement.after if node in self._ids)
        self._rewrite(clone)
        target.body.append(clone)
        if isinstance(clone, ForEach):
            clone.belong_to(target)
        self._copy_blocks(statement, clone)

    def _copy_blocks(self, statement: Statement, clone: Statement) -> None:
        if isinstance(clone, If) and clone.otherwise is not None:
            clone.otherwise = copy.copy(clone.otherwise)
        if isinstance(clone, ForEach):
            self._loops.append(clone)
        self._branches += not isinstance(clone, ForEach)
        for source, block in zip(blocks_of(statement), blocks_of(clone), strict=True):
            self._fill(block, source)
        self._branches -= not isinstance(clone, ForEach)
        if isinstance(clone, ForEach):
            self._loops.pop()

    def _fill(self, clone: Block, source: Block) -> None:
        around = self._around
        clone.body = []
        clone.inside = self._around = (*around, clone)
        self._block(source.body, clone)
        self._around = around

    def _rewrite(self, clone: Statement) -> None:
        match clone:
            case Operation():
                clone.arguments = {name: self._value(value) for name, value in clone.arguments.items()}
            case Choose():
                clone.cond = self._value(clone.cond)
                clone.then, clone.otherwise = self._value(clone.then), self._value(clone.otherwise)
            case If():
                clone.cond = self._value(clone.cond)
            case ForEach():
                clone.seq = self._value(clone.seq)
            case TryFromCache():
                clone.key = self._value(clone.key)
            case WriteToCache():
                clone.cached = self._ids[clone.cached]
                clone.value = self._value(clone.value)
            case Reduce():
                clone.arguments = {name: self._value(value) for name, value in clone.arguments.items()}
                clone.initial = clone.initial if clone.initial is NO_DEFAULT else self._value(clone.initial)
                self._rewrite_gathering(clone)
            case Collect():
                self._rewrite_gathering(clone)

    def _rewrite_gathering(self, clone: Collect | Reduce) -> None:
        clone.loop = self._ids[clone.loop]
        clone.value = self._value(clone.value)

    def _output(self, statement: Yield) -> None:
        if self._branches:
            fault = Fault(
                f"the sub-pipeline yields to {statement.place!r} inside a conditional block",
                statement.location,
                hint="join the branches with Choose and yield the outcome",
            )
            raise _misuse([fault])
        value = self._value(statement.value)
        for loop in reversed(self._loops):
            value = loop.collect(value).to_reference()
        self._outputs.setdefault(statement.place, []).append(value)

    def _moved(self, origin: Origin) -> Origin:
        return Origin(self._target, origin.label, origin.location)

    def _value(self, value: Any) -> Any:
        """Rewrite the references inside a value or condition."""
        if isinstance(value, NodeRef):
            if value.origin is None:
                return NodeRef(self._ids.get(value.node, value.node), value.port, value.select)
            if value.origin.pipeline != self._source:
                return value  # Of the caller, or a fault that the validator will report.
            return NodeRef(self._ids[value.node], value.port, value.select, self._moved(value.origin))
        if isinstance(value, PlaceParam):
            return _selected(self._arguments[value.place], value)
        if isinstance(value, Comparison):
            return Comparison(self._value(value.left), self._value(value.right), operator=value.operator)
        if isinstance(value, Logic):
            return Logic(*(self._value(operand) for operand in value.operands), operator=value.operator)
        if next(find_references(value), None) is None:
            return value
        if isinstance(value, dict):
            return {self._value(key): self._value(item) for key, item in value.items()}
        return type(value)(self._value(item) for item in value)


def _handed_through(value: Any) -> Any:
    """Give what a sub-pipeline yields: what the caller gave it is no value of the branch in which it is called."""
    if isinstance(value, NodeRef):
        return NodeRef(value.node, value.port, value.select, value.origin)
    if isinstance(value, Condition):
        condition = copy.copy(value)
        condition.made = None
        return condition
    if isinstance(value, dict):
        return {_handed_through(key): _handed_through(item) for key, item in value.items()}
    return type(value)(map(_handed_through, value)) if type(value) in (list, tuple) else value


def _selected(argument: Any, parameter: PlaceParam) -> Any:
    if isinstance(argument, PlaceParam):
        return PlaceParam(argument.place, default=argument.default, select=(*argument.select, *parameter.select))
    if isinstance(argument, NodeRef):
        return NodeRef(argument.node, argument.port, (*argument.select, *parameter.select), argument.origin)
    try:
        return select(argument, parameter.select)
    except SelectorError as error:
        fault = Fault(f"{parameter!r}: {error}", user_location())
        raise _misuse([fault]) from None
