"""Reads pipelines from JSON documents in DFM's pipeline format.

Documents come from elsewhere. What a document names is looked up in the table of constructs, or is the name of an
operation, which is data; nothing is imported or run.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

from dfmesh.api.blocks import Block, Else, If
from dfmesh.api.caching import TryFromCache, WriteToCache
from dfmesh.api.document_fields import HEAD, Fields
from dfmesh.api.document_marks import MAX_BLOCKS, PACKAGE
from dfmesh.api.document_text import parse_document
from dfmesh.api.document_values import ValueReader, shown, shown_key, text_problem
from dfmesh.api.loops import Collect, ForEach, Reduce
from dfmesh.api.node_ids import NodeId, node_text
from dfmesh.api.operation import RESERVED_PARAMETERS, Operation, undeclared_operation
from dfmesh.api.pipeline import Pipeline
from dfmesh.api.references import NO_DEFAULT
from dfmesh.api.statements import Choose, Statement, Yield
from dfmesh.api.suggestion import did_you_mean
from dfmesh.errors import Fault, PipelineError

_CONSTRUCT_PREFIXES = (f"{PACKAGE}.", "nv_dfm_core.", "dfm.")
_GENERATED = (".fed.api.", ".fed.site.")
"""What the class names of packages that DFM generates have before the name of the operation."""

_LOCATED = ("site", "provider", "retries", "timeout")


def read_document(text: str, cls: type[Pipeline] = Pipeline, *, name: str = "<document>") -> Pipeline:
    """Read a pipeline from JSON text.

    Args:
        text: The text.
        cls: Class of the pipeline to make.
        name: What to call the text in messages about its syntax.

    Raises:
        PipelineError: it is not a pipeline; lists every fault with its key path.
    """
    document = parse_document(text, name)
    # In a context of its own, so that one may read a pipeline while another is being written.
    return contextvars.Context().run(_DocumentReader().pipeline, document, cls)


class _DocumentReader:
    def __init__(self) -> None:
        self.values = ValueReader()
        self.ids: dict[NodeId, str] = {}
        self.constructs: dict[str, Callable[[Fields, list[NodeId]], Statement | None]] = {
            "Yield": self.yield_,
            "If": self.if_,
            "ForEach": self.for_each,
            "Choose": self.choose,
            "Collect": self.collect,
            "Reduce": self.reduce,
            "TryFromCache": self.try_from_cache,
            "_WriteToCache": self.write_to_cache,
        }
        self.loops: dict[NodeId, ForEach] = {}
        self.caches: list[TryFromCache] = []
        self.depth = 0

    def pipeline(self, document: Any, cls: type[Pipeline]) -> Pipeline:
        if not isinstance(document, dict):
            raise PipelineError("this is no pipeline", [Fault(f"expected a JSON object, found {shown(document)}")])
        fields = Fields(document, "", self.values)
        fields.asked.clear()
        pipeline = cls(
            fields.take("name", lambda name, path: self.values.optional(name, self.values.text, path)),
            mode=fields.take("mode", self.mode, "execute"),
            api_version=fields.take("api_version", self.version, ""),
        )
        pipeline.location = None
        with pipeline:
            fields.need("dfm_body", self.body)
        fields.refuse_others()
        self.check_references()
        faults = [_without_dot(fault) for fault in self.values.faults]
        if faults:
            raise PipelineError(f"the document has {len(faults)} fault{'s' * (len(faults) != 1)}", faults)
        numbers = [node_id for node_id in self.ids if isinstance(node_id, int)]
        pipeline.reserve_node_ids(max(numbers, default=-1) + 1)
        return pipeline

    def mode(self, document: Any, path: str) -> str:
        return self.values.choice(document, ("execute", "discovery"), path)

    def version(self, document: Any, path: str) -> str:
        return "" if document == "" else self.values.text(document, path)

    def check_references(self) -> None:
        for node_id, path in self.values.references:
            if node_id not in self.ids:
                hint = did_you_mean(node_text(node_id), [node_text(known) for known in self.ids])
                self.values.fault(path, f"there is no statement {node_text(node_id)!r}", hint)

    # Blocks

    def body(self, document: Any, path: str) -> None:
        """Read statements into the innermost open block."""
        if not isinstance(document, list):
            self.values.fault(path, f"expected a list of statements, found {shown(document)}")
            return
        if self.depth == MAX_BLOCKS:
            self.values.fault(path[:120], f"there are more than {MAX_BLOCKS} blocks inside one another")
            return
        self.depth += 1
        for index, item in enumerate(document):
            self.statement(item, f"{path}[{index}]")
        self.depth -= 1

    def fill(self, block: Block, fields: Fields) -> None:
        with block:
            fields.need("dfm_body", self.body)

    def statement(self, document: Any, path: str) -> None:
        if not isinstance(document, dict):
            self.values.fault(path, f"expected a statement, found {shown(document)}")
            return
        fields = Fields(document, path, self.values)
        class_name = fields.need("dfm_class_name", self.values.text)
        after = fields.take("dfm_after", self.values.links, [])
        node_id = fields.need("dfm_node_id", lambda item, where: self.own_id(item, where, class_name))
        if not class_name or node_id is None:
            return
        construct = self.construct(class_name, fields)
        statement = construct(fields, after) if construct is not None else None
        if statement is not None:
            statement.location = None

    def own_id(self, document: Any, path: str, class_name: str) -> NodeId | None:
        count = len(self.values.faults)
        node_id = self.values.node(document, path)
        if len(self.values.faults) > count:
            return None
        if node_id in self.ids:
            self.values.fault(path, f"the id {node_text(node_id)!r} is used twice", f"first at {self.ids[node_id][1:]}")
        self.ids.setdefault(node_id, path)
        return node_id

    def construct(self, class_name: str, fields: Fields) -> Callable[[Fields, list[NodeId]], Statement | None] | None:
        """Find what reads a statement of this class."""
        if not class_name.startswith(_CONSTRUCT_PREFIXES) or any(part in class_name for part in _GENERATED):
            return self.operation
        name = class_name.rpartition(".")[2]
        found = self.constructs.get(name)
        if found is None:
            hint = did_you_mean(name, [known for known in self.constructs if known.isalpha()])
            self.values.fault(fields.at("dfm_class_name"), f"there is no construct {shown(class_name)}", hint)
        return found

    # Statements

    def operation(self, fields: Fields, after: list[NodeId]) -> Statement:
        class_name = str(fields.document["dfm_class_name"])
        located = self.located(fields)
        name = _operation_of(class_name, located["site"], located["provider"])
        statement: Operation = undeclared_operation(name)(**located, after=after, node_id=self.node_of(fields))
        statement.arguments = self.arguments(fields, drop_null=name != class_name)
        return statement

    def arguments(self, fields: Fields, *, drop_null: bool) -> dict[str, Any]:
        """Read the keys that are left as arguments.

        Args:
            fields: The statement's keys.
            drop_null: DFM writes null for each optional parameter that the user did not give.
        """
        arguments = {}
        for key in fields.others():
            if key in RESERVED_PARAMETERS or key.startswith("dfm_") or text_problem(key):
                hint = did_you_mean(f"dfm_{key}", [*HEAD, *_LOCATED])
                self.values.fault(fields.at(key), "this key is not known here", hint)
            elif fields.document[key] is not None or not drop_null:
                arguments[key] = self.values.value(fields.document[key], fields.at(key))
        return arguments

    def located(self, fields: Fields) -> dict[str, Any]:
        take, read = fields.take, self.values
        return {
            "site": take("site", read.site),
            "provider": take("provider", lambda item, path: read.optional(item, read.text, path)),
            "retries": take("retries", read.integer, 0),
            "timeout": take("timeout", lambda item, path: read.optional(item, read.number, path)),
        }

    def node_of(self, fields: Fields) -> NodeId:
        node_id: NodeId = fields.document["dfm_node_id"]["ident"]
        return node_id

    def yield_(self, fields: Fields, after: list[NodeId]) -> Statement:
        statement = Yield(
            fields.need("value", self.values.value),
            fields.take("place", self.values.text, "yield"),
            multiuse=fields.take("multiuse", self.values.flag, False),
            node_id=self.node_of(fields),
            after=after,
        )
        fields.refuse_others()
        return statement

    def if_(self, fields: Fields, after: list[NodeId]) -> Statement:
        statement = If(fields.need("cond", self.values.condition), node_id=self.node_of(fields), after=after)
        self.fill(statement, fields)
        if "dfm_else" in fields.document:
            with Else():
                fields.take("dfm_else", self.body)
        fields.refuse_others()
        return statement

    def for_each(self, fields: Fields, after: list[NodeId]) -> Statement:
        read = self.values
        statement = ForEach(
            fields.need("seq", read.value),
            window=fields.take("window", lambda item, path: read.optional(item, read.integer, path)),
            on_error=fields.take(
                "on_error", lambda item, path: read.choice(item, ("fail", "skip", "collect"), path), "fail"
            ),
            node_id=self.node_of(fields),
            after=after,
        )
        read.loops.add(statement.node_id)
        self.loops[statement.node_id] = statement
        self.fill(statement, fields)
        fields.refuse_others()
        return statement

    def choose(self, fields: Fields, after: list[NodeId]) -> Statement:
        statement = Choose(
            fields.need("cond", self.values.condition),
            fields.need("then", self.values.value),
            fields.need("otherwise", self.values.value),
            node_id=self.node_of(fields),
            after=after,
        )
        fields.refuse_others()
        return statement

    def loop_of(self, fields: Fields) -> ForEach | None:
        loop = self.loops.get(fields.need("loop", self.values.link))
        if loop is None:
            self.values.fault(fields.at("loop"), "it names no loop that stands before this statement")
        return loop

    def collect(self, fields: Fields, after: list[NodeId]) -> Statement | None:
        loop, value = self.loop_of(fields), fields.need("value", self.values.value)
        fields.refuse_others()
        if loop is None:
            return None
        return Collect(loop, value, node_id=self.node_of(fields), after=after, behind_loop=False)

    def reduce(self, fields: Fields, after: list[NodeId]) -> Statement | None:
        loop, value = self.loop_of(fields), fields.need("value", self.values.value)
        operation = undeclared_operation(fields.need("operation", self.values.text) or "")
        initial = fields.take("initial", self.values.value, NO_DEFAULT)
        arguments = fields.take("arguments", self.named_values, {})
        located = self.located(fields)
        fields.refuse_others()
        if loop is None:
            return None
        statement = Reduce(
            loop, operation, value, initial=initial, node_id=self.node_of(fields), **located, behind_loop=False
        )
        statement.after = tuple(after)
        statement.arguments = arguments
        return statement

    def named_values(self, document: Any, path: str) -> dict[str, Any]:
        if not isinstance(document, dict):
            self.values.fault(path, f"expected an object, found {shown(document)}")
            return {}
        return {key: self.values.value(item, f"{path}.{shown_key(key)}") for key, item in document.items()}

    def try_from_cache(self, fields: Fields, after: list[NodeId]) -> Statement:
        read = self.values
        site = fields.take("site", read.site)
        statement = TryFromCache(
            fields.need("key", read.value),
            ttl=fields.take("ttl", lambda item, path: read.optional(item, read.number, path)),
            site=site,
            node_id=self.node_of(fields),
            after=after,
        )
        self.caches.append(statement)
        self.fill(statement, fields)
        self.caches.pop()
        fields.refuse_others()
        return statement

    def write_to_cache(self, fields: Fields, after: list[NodeId]) -> Statement | None:
        # DFM repeats the key here and leaves the block to be guessed: the innermost one.
        around = self.caches[-1].node_id if self.caches else None
        cached = fields.take("cached", self.values.link, around)
        fields.take("key", self.values.value)
        value = fields.need("value", self.values.value)
        fields.refuse_others()
        if cached is None:
            self.values.fault(fields.path, "it stands in no TryFromCache block")
            return None
        return WriteToCache(cached, value, node_id=self.node_of(fields), after=after)


def _operation_of(class_name: str, site: Any, provider: str | None) -> str:
    """Give the name of the operation that a class of a package generated by DFM stands for.

    `pkg.fed.api.weather.Bin`, and `pkg.fed.site.us.weather.Bin` for site `us`, are `weather.Bin`. Any other name is
    the operation's own.

    Args:
        class_name: Name of the class.
        site: Site of the statement.
        provider: Provider of the statement.
    """
    for infix in _GENERATED:
        _, found, name = class_name.partition(infix)
        if found and name:
            if infix == ".fed.site.":
                name = name.removeprefix(f"{site}.").removeprefix(f"{provider}.")
            return name
    return class_name


def _without_dot(fault: Fault) -> Fault:
    return Fault(fault.message, fault.location, fault.path.removeprefix("."), fault.hint)
