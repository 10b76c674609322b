"""Reads the values of a pipeline document: references, parameters, conditions, constants."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from dfmesh import values
from dfmesh.api import document_marks as marks
from dfmesh.api.conditions import Comparison, Logic
from dfmesh.api.document_marks import is_condition, is_node, is_reference, tag_of
from dfmesh.api.node_ids import NodeId, node_id_problem
from dfmesh.api.references import NO_DEFAULT, NodeRef, PlaceParam
from dfmesh.api.sendable import is_unicode, number_fits
from dfmesh.api.statements import Advise, BestOf
from dfmesh.errors import Fault, ValueDecodingError
from dfmesh.netir import COMPARISONS, Field, Item, Port, Selector
from dfmesh.values.documents import PAYLOAD, TAG
from dfmesh.values.plain import MAX_DEPTH

T = TypeVar("T")

MAX_TEXT = 1000
"""Characters that a name may have in a document."""


class ValueReader:
    """Reads values and notes what is wrong with them, with the key path.

    What cannot be read gives some harmless value; a document with faults is not used.

    Attributes:
        faults: What was wrong so far.
        loops: Ids of the loops of the document that have been read so far.
        references: Ids that the document refers to, with the key path at which it does.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.loops: set[NodeId] = set()
        self.references: list[tuple[NodeId, str]] = []

    def fault(self, path: str, message: str, hint: str = "") -> None:
        """Note a fault."""
        self.faults.append(Fault(message, path=path, hint=hint))

    # Plain fields

    def text(self, document: Any, path: str) -> str:
        """Read a name."""
        problem = text_problem(document)
        if problem:
            self.fault(path, problem)
            return ""
        return str(document)

    def optional(self, document: Any, read: Callable[[Any, str], T], path: str) -> T | None:
        """Read something that may be null."""
        return None if document is None else read(document, path)

    def number(self, document: Any, path: str) -> float:
        """Read a number."""
        if isinstance(document, bool) or not isinstance(document, int | float):
            self.fault(path, f"expected a number, found {shown(document)}")
            return 1
        return self._sendable(document, path) if isinstance(document, int) else document

    def integer(self, document: Any, path: str) -> int:
        """Read a whole number."""
        if isinstance(document, bool) or not isinstance(document, int):
            self.fault(path, f"expected a whole number, found {shown(document)}")
            return 1
        return self._sendable(document, path)

    def _sendable(self, number: int, path: str) -> int:
        if number_fits(number):
            return number
        self.fault(path, f"found {shown(number)}: numbers beyond 64 bits cannot be sent to a site")
        return 1

    def choice(self, document: Any, options: tuple[str, ...], path: str) -> str:
        """Read one of some words."""
        if document not in options or not isinstance(document, str):
            self.fault(path, f"expected {' or '.join(map(repr, options))}, found {shown(document)}")
            return options[0]
        return document

    def flag(self, document: Any, path: str) -> bool:
        """Read true or false."""
        if not isinstance(document, bool):
            self.fault(path, f"expected true or false, found {shown(document)}")
        return document is True

    # Ids and sites

    def node(self, document: Any, path: str) -> NodeId:
        """Read the id of a statement."""
        if not is_node(document):
            self.fault(path, f"expected the id of a statement, found {shown(document)}", _NODE_FORM)
            return 0
        self.known_keys(document, ("tag", "ident"), path)
        ident = document.get("ident")
        problem = node_id_problem(ident)
        if problem:
            self.fault(f"{path}.ident", problem)
            return 0
        node_id: NodeId = ident
        return node_id

    def link(self, document: Any, path: str) -> NodeId:
        """Read the id of another statement."""
        node_id = self.node(document, path)
        self.references.append((node_id, path))
        return node_id

    def links(self, document: Any, path: str) -> list[NodeId]:
        """Read the ids that a statement comes after: none, one, or a list of them."""
        if document is None:
            return []
        if isinstance(document, list):
            return [self.link(_id_of(item), f"{path}[{index}]") for index, item in enumerate(document)]
        return [self.link(_id_of(document), path)]

    def site(self, document: Any, path: str) -> str | BestOf | Advise:
        """Read where a statement may run."""
        if document is None:
            return BestOf()
        tag = document.get("tag") if isinstance(document, dict) else None
        if tag == marks.BEST_OF:
            self.known_keys(document, ("tag", "sites"), path)
            return BestOf(self.optional(document.get("sites"), self.texts, f"{path}.sites"))
        if tag == marks.ADVISE:
            return Advise()
        return self.text(document, path)

    def texts(self, document: Any, path: str) -> list[str]:
        """Read a list of names."""
        if not isinstance(document, list):
            self.fault(path, f"expected a list, found {shown(document)}")
            return []
        return [self.text(item, f"{path}[{index}]") for index, item in enumerate(document)]

    def known_keys(self, document: dict[str, Any], known: tuple[str, ...], path: str) -> None:
        """Fault every key that is not one of those known."""
        for key in document:
            if key not in known:
                self.fault(f"{path}.{shown_key(key)}", "this key is not known here", f"known are {', '.join(known)}")

    # Values

    def value(self, document: Any, path: str, depth: int = 0) -> Any:
        """Read a value with references at any depth."""
        if depth > MAX_DEPTH:
            self.fault(_cut(path), f"nested more than {MAX_DEPTH} levels deep")
            return None
        if isinstance(document, list):
            return self.items(document, path, depth)
        if not isinstance(document, dict):
            return document
        if TAG in document:
            return self.tagged(document, path, depth)
        if is_reference(document):
            return self.reference(document, path)
        tag = tag_of(document)
        if tag is not None:
            return self.mark(tag, document, path, depth)
        if is_node(document.get("dfm_node_id")):  # DFM writes statements inside dictionaries out in full
            return self.to(self.link(document["dfm_node_id"], f"{path}.dfm_node_id"))
        return {key: self.value(item, f"{path}.{shown_key(key)}", depth + 1) for key, item in document.items()}

    def items(self, document: list[Any], path: str, depth: int) -> list[Any]:
        """Read the items of a list."""
        return [self.value(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(document)]

    def tagged(self, document: dict[str, Any], path: str, depth: int) -> Any:
        """Read a value that JSON has no form for."""
        payload = document.get(PAYLOAD)
        if document[TAG] in ("tuple", "dict") and isinstance(payload, list) and len(document) == 2:
            items = self.items(payload, path, depth)
            return tuple(items) if document[TAG] == "tuple" else self.pairs(items, path)
        try:
            return values.from_json(document)
        except ValueDecodingError as error:
            self.fault(path, str(error))
            return None

    def pairs(self, items: list[Any], path: str) -> dict[Any, Any]:
        """Make a dictionary of its keys and values in turn."""
        if len(items) % 2:
            self.fault(path, "a dictionary has a key without a value")
            return {}
        try:
            return dict(zip(items[::2], items[1::2], strict=True))
        except TypeError as error:
            self.fault(path, f"a dictionary has a key that cannot be one: {error}")
            return {}

    def mark(self, tag: str, document: dict[str, Any], path: str, depth: int) -> Any:
        """Read a mark that is no reference."""
        match tag:
            case marks.PLACE_PARAM:
                return self.parameter(document, path, depth)
            case marks.NODE:  # DFM takes an id for a reference in places
                return self.to(self.link(document, path))
            case marks.ADVISE:
                return Advise()
            case marks.CONDITION:
                self.known_keys(document, ("tag", "of"), path)
                return self.condition(document.get("of"), f"{path}.of", depth + 1)
        pickled = "it is a pickled object, which is not read since reading one runs code"
        hint = "write the value as JSON, or make it in an operation" if tag == marks.PICKLED else f"known are {_MARKS}"
        self.fault(path, pickled if tag == marks.PICKLED else f"the mark {shown(tag)} is not known", hint)
        return None

    def parameter(self, document: dict[str, Any], path: str, depth: int) -> PlaceParam:
        """Read a parameter."""
        self.known_keys(document, ("tag", "place", "multiuse", "default", "selectors"), path)
        default = NO_DEFAULT
        if "default" in document:
            default = self.value(document["default"], f"{path}.default", depth + 1)
        return PlaceParam(
            self.text(document.get("place"), f"{path}.place"),
            default=default,
            multiuse=self.flag(document.get("multiuse", False), f"{path}.multiuse"),
            select=self.selectors(document, path),
        )

    def reference(self, document: dict[str, Any], path: str) -> NodeRef:
        """Read a reference."""
        self.known_keys(document, ("id", "sel", "issubs", "selectors", "port"), path)
        node_id = self.link(document["id"], f"{path}.id")
        port = self.choice(document.get("port", "value"), ("value", "index"), f"{path}.port")
        step = () if document.get("sel") is None else (self.step(document, path),)
        return self.to(node_id, (*step, *self.selectors(document, path)), port)

    def to(self, node_id: NodeId, select: Selector = (), port: str = "value") -> NodeRef:
        """Refer to a statement; to a loop means to its element."""
        if port == "index":
            return NodeRef(node_id, Port.INDEX, select)
        return NodeRef(node_id, Port.ELEMENT if node_id in self.loops else Port.VALUE, select)

    def selectors(self, document: dict[str, Any], path: str) -> Selector:
        """Read the selectors of a reference or parameter that has several."""
        path = f"{path}.selectors"
        steps = document.get("selectors", [])
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            self.fault(path, f"expected a list of selectors, found {shown(steps)}", '{"sel": "name", "issubs": true}')
            return ()
        return tuple(self.step(step, f"{path}[{index}]") for index, step in enumerate(steps))

    def step(self, document: dict[str, Any], path: str) -> Item | Field:
        """Read one selector: `sel` is a key (or a number) if `issubs`, else the name of a field."""
        selected = document.get("sel")
        subscript = self.flag(document.get("issubs", True), f"{path}.issubs")
        if isinstance(selected, int) and not isinstance(selected, bool):
            return Item(self._sendable(selected, f"{path}.sel"))
        name = self.text(selected, f"{path}.sel")
        return Item(name) if subscript else Field(name)

    # Conditions

    def condition(self, document: Any, path: str, depth: int = 0) -> Any:
        """Read a condition, or the value that stands for one."""
        if not is_condition(document) or depth > MAX_DEPTH:
            return self.value(document, path, depth)
        operator = document["operator"]
        if operator in COMPARISONS:
            self.known_keys(document, ("operator", "left", "right"), path)
            left, right = (self.operand(document, side, path, depth) for side in ("left", "right"))
            return Comparison(left, right, operator=operator)
        if operator not in marks.LOGIC:
            known = " ".join([*COMPARISONS, *marks.LOGIC])
            self.fault(f"{path}.operator", f"the operator {shown(operator)} is not known", f"known are {known}")
            return None
        self.known_keys(document, ("operator", "exp"), path)
        return Logic(*self.operands(document, path, depth), operator=operator)

    def operand(self, document: dict[str, Any], key: str, path: str, depth: int) -> Any:
        """Read one side of a comparison, or what is negated."""
        if key not in document:
            self.fault(path, f"the condition has no {key!r}")
        return self.condition(document.get(key), f"{path}.{key}", depth + 1)

    def operands(self, document: dict[str, Any], path: str, depth: int) -> list[Any]:
        """Read what is joined or negated."""
        inner = document.get("exp")
        if document["operator"] == "not":
            return [self.operand(document, "exp", path, depth)]
        if not isinstance(inner, list):
            self.fault(f"{path}.exp", f"expected a list of conditions, found {shown(inner)}")
            return []
        return [self.condition(item, f"{path}.exp[{index}]", depth + 1) for index, item in enumerate(inner)]


_NODE_FORM = f'{{"tag": "{marks.NODE}", "ident": 3}}'
_MARKS = ", ".join((marks.PLACE_PARAM, marks.BEST_OF, marks.ADVISE, marks.NODE, marks.CONDITION))


def text_problem(document: Any) -> str:
    """Say why something is no name; empty if it is one."""
    if not isinstance(document, str):
        return f"expected text, found {shown(document)}"
    if not document or len(document) > MAX_TEXT:
        return f"expected 1 to {MAX_TEXT} characters, found {len(document)}"
    return "" if is_unicode(document) else f"the text {document!r:.80} is not Unicode"


def shown(document: Any) -> str:
    """Show a part of a document in a message, cut to a readable length."""
    if document is None:
        return "nothing"
    if isinstance(document, int) and abs(document) > 10**40:
        return "a huge number"
    text = f"{document!r:.60}" if isinstance(document, str) else json.dumps(document)
    return text if len(text) <= 60 else f"{text[:60]}..."


def shown_key(key: str) -> str:
    """Show a key as part of a key path."""
    return key if key.isidentifier() and len(key) < 80 else f"{key[:80]!r}"


def _cut(path: str) -> str:
    return path if len(path) <= 120 else f"{path[:120]}..."


def _id_of(document: Any) -> Any:
    return document["id"] if is_reference(document) else document
