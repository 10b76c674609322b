"""Writes pipelines as JSON documents in DFM's pipeline format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dfmesh import values
from dfmesh.api.blocks import If
from dfmesh.api.caching import TryFromCache, WriteToCache
from dfmesh.api.conditions import Comparison, Condition, Logic
from dfmesh.api.document_marks import (
    ADVISE,
    BEST_OF,
    CONDITION,
    NODE,
    PACKAGE,
    PLACE_PARAM,
    looks_like_mark,
)
from dfmesh.api.loops import Collect, ForEach, Reduce
from dfmesh.api.node_ids import NodeId
from dfmesh.api.operation import Operation
from dfmesh.api.pipeline import Pipeline
from dfmesh.api.references import NO_DEFAULT, NodeRef, PlaceParam
from dfmesh.api.statements import Advise, BestOf, Choose, Part, Statement, Yield
from dfmesh.errors import Fault, PipelineError, ValueEncodingError
from dfmesh.netir import Item, Port, Selector
from dfmesh.values.documents import PAYLOAD, TAG
from dfmesh.values.plain import MAX_DEPTH

_CLASS_NAMES: dict[type[Statement], str] = {WriteToCache: "_WriteToCache", Part: "Choose"}


def write_document(pipeline: Pipeline) -> dict[str, Any]:
    """Give a pipeline as an object that any JSON library writes.

    Raises:
        PipelineError: it has statements that are wrong in themselves, or values that cannot be written.
    """
    writer = _Writer(pipeline.identity)
    writer.faults += pipeline.faults
    body = writer.block(pipeline.body)
    if writer.faults:
        raise PipelineError("the pipeline cannot be written as a document", writer.faults)
    return {"dfm_body": body, "api_version": pipeline.api_version, "mode": pipeline.mode, "name": pipeline.name}


class _Writer:
    def __init__(self, pipeline: bytes) -> None:
        self.pipeline = pipeline
        self.faults: list[Fault] = []

    def block(self, body: Sequence[Statement]) -> list[dict[str, Any]]:
        return [self.checked_statement(statement) for statement in body]

    def checked_statement(self, statement: Statement) -> dict[str, Any]:
        self.faults += statement.faults
        self.faults += statement.foreign_faults(self.pipeline)
        try:
            return self.statement(statement)
        except (ValueEncodingError, RecursionError) as error:
            message = f"{statement.label} has a value that cannot be written: {error}"
            self.faults.append(Fault(message, statement.location))
            return {}

    def statement(self, statement: Statement) -> dict[str, Any]:
        match statement:
            case Operation():
                own = _located(statement) | {key: _value(item) for key, item in statement.arguments.items()}
                return _head(statement, statement.operation) | own
            case Yield():
                own = {"place": statement.place, "value": _value(statement.value), "multiuse": statement.multiuse}
            case Choose():
                own = {
                    "cond": _condition(statement.cond),
                    "then": _value(statement.then),
                    "otherwise": _value(statement.otherwise),
                }
            case Reduce():
                own = _reduce(statement)
            case Collect():
                own = {"loop": _node(statement.loop), "value": _value(statement.value)}
            case WriteToCache():
                own = {"cached": _node(statement.cached), "value": _value(statement.value)}
            case _:
                own = self.block_statement(statement)
        name = _CLASS_NAMES.get(type(statement), type(statement).__name__)
        return _head(statement, f"{PACKAGE}.{name}") | own

    def block_statement(self, statement: Statement) -> dict[str, Any]:
        match statement:
            case If():
                own: dict[str, Any] = {"cond": _condition(statement.cond), "dfm_body": self.block(statement.body)}
                if statement.otherwise is not None:
                    own["dfm_else"] = self.block(statement.otherwise.body)
                return own
            case ForEach():
                own = {"seq": _value(statement.seq)}
                own |= _unless(None, window=statement.window) | _unless("fail", on_error=statement.on_error)
            case TryFromCache():
                own = {"key": _value(statement.key)} | _unless(None, ttl=statement.ttl)
                own |= _unless(BestOf(), site=statement.site)
                if "site" in own:
                    own["site"] = _site(statement.site)
            case _:
                raise TypeError(f"{type(statement).__name__} has no form in documents")
        return own | {"dfm_body": self.block(statement.body)}


def _head(statement: Statement, class_name: str) -> dict[str, Any]:
    after: Any = [_node(node_id) for node_id in statement.after]
    if len(after) < 2:  # DFM knows at most one
        after = after[0] if after else None
    return {"dfm_class_name": class_name, "dfm_node_id": _node(statement.node_id), "dfm_after": after}


def _located(statement: Operation | Reduce) -> dict[str, Any]:
    # DFM refuses keys that it does not know, so ours are there only where they say something.
    where = {"site": _site(statement.site), "provider": statement.provider}
    return where | _unless(0, retries=statement.retries) | _unless(None, timeout=statement.timeout)


def _unless(default: Any, **given: Any) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value != default}


def _reduce(statement: Reduce) -> dict[str, Any]:
    own = {"loop": _node(statement.loop), "value": _value(statement.value), "operation": statement.operation}
    if statement.initial is not NO_DEFAULT:
        own["initial"] = _value(statement.initial)
    arguments = {key: _value(item) for key, item in statement.arguments.items()}
    return own | _located(statement) | _unless({}, arguments=arguments)


def _site(site: str | BestOf | Advise) -> Any:
    if isinstance(site, BestOf):
        return {"tag": BEST_OF, "sites": None if site.sites is None else list(site.sites)}
    return _ADVISE if isinstance(site, Advise) else site


_ADVISE = {"tag": ADVISE, "advise": "Field"}


def _node(node_id: NodeId) -> dict[str, Any]:
    return {"tag": NODE, "ident": node_id}


def _reference(reference: NodeRef) -> dict[str, Any]:
    port = {"port": "index"} if reference.port is Port.INDEX else {}
    steps = _selectors(reference.select)
    if len(steps) == 1:
        return {"id": _node(reference.node), **steps[0], **port}
    deeper = {"selectors": steps} if steps else {}
    return {"id": _node(reference.node), "sel": None, "issubs": True, **deeper, **port}


def _parameter(parameter: PlaceParam) -> dict[str, Any]:
    written: dict[str, Any] = {"tag": PLACE_PARAM, "place": parameter.place, "multiuse": parameter.multiuse}
    if parameter.default is not NO_DEFAULT:
        written["default"] = _value(parameter.default)
    return written | _unless([], selectors=_selectors(parameter.select))


def _selectors(selector: Selector) -> list[dict[str, Any]]:
    return [
        {"sel": step.key, "issubs": True} if isinstance(step, Item) else {"sel": step.name, "issubs": False}
        for step in selector
    ]


def _value(value: Any, depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise ValueEncodingError(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, NodeRef):
        return _reference(value)
    if isinstance(value, PlaceParam):
        return _parameter(value)
    if isinstance(value, Condition):
        return {"tag": CONDITION, "of": _condition(value)}
    if isinstance(value, Advise):
        return _ADVISE
    if type(value) is list:
        return _values(value, depth)
    if type(value) is tuple:
        return _tagged("tuple", _values(value, depth))
    if type(value) is dict:
        if looks_like_mark(value):
            return _tagged("dict", _values((part for pair in value.items() for part in pair), depth))
        return {key: _value(item, depth + 1) for key, item in value.items()}
    return values.to_json(value)


def _values(items: Iterable[Any], depth: int) -> list[Any]:
    return [_value(item, depth + 1) for item in items]


def _tagged(tag: str, payload: Any) -> dict[str, Any]:
    return {TAG: tag, PAYLOAD: payload}


def _condition(condition: Any) -> Any:
    if isinstance(condition, Comparison):
        sides = {"left": _condition(condition.left), "right": _condition(condition.right)}
        return {"operator": condition.operator, **sides}
    if isinstance(condition, Logic):
        operands = [_condition(operand) for operand in condition.operands]
        return {"operator": condition.operator, "exp": operands[0] if condition.operator == "not" else operands}
    return _value(condition)
