"""YAML and JSON files as trees of nodes that know where they stand."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

from dfmesh.api.files import MEBIBYTE, read_file, real_path
from dfmesh.config.syntax import syntax_fault
from dfmesh.errors import Fault, SourceLocation

INT_TAG = "tag:yaml.org,2002:int"
FLOAT_TAG = "tag:yaml.org,2002:float"
BOOL_TAG = "tag:yaml.org,2002:bool"
NULL_TAG = "tag:yaml.org,2002:null"
MERGE_TAG = "tag:yaml.org,2002:merge"
MAPPING_TAG = "tag:yaml.org,2002:map"
STANDARD_TAGS = "tag:yaml.org,2002:"

MAX_FILE_SIZE = 4 * MEBIBYTE
"""Bytes that a federation file, or one that it refers to, may have."""


class Node(Protocol):
    """A node of PyYAML, which this package does not import before it reads a file.

    Attributes:
        id: `scalar`, `sequence` or `mapping`.
        tag: Its YAML type.
        value: Text of a scalar, nodes of a list, pairs of nodes of a mapping.
        start_mark: File, line and column where it begins, the latter two counted from 0.
    """

    id: str
    tag: str
    value: Any
    start_mark: Any


class Document(NamedTuple):
    """One file. `root` is None if it is empty."""

    name: str
    root: Node | None


class Item(NamedTuple):
    """A value in a document.

    Attributes:
        node: The value itself.
        path: Key path under which the federation uses it.
        document: The file in which it stands, against which references in it are relative.
        key: The key that it stands under; None for list elements and whole documents.
    """

    node: Node
    path: str
    document: Document
    key: Node | None

    @property
    def is_scalar(self) -> bool:
        """Whether the value is a text, number, truth value or null."""
        return self.node.id == "scalar"

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping."""
        return self.node.id == "mapping"

    @property
    def is_sequence(self) -> bool:
        """Whether the value is a list."""
        return self.node.id == "sequence"

    @property
    def place(self) -> Node:
        """Where the value's key stands, or the value where it has none."""
        return self.node if self.key is None else self.key

    def without(self, unwanted: Callable[[str], bool]) -> Item:
        """The same mapping without some of its keys."""
        from yaml.nodes import MappingNode

        pairs = [pair for pair in self.node.value if not (pair[0].id == "scalar" and unwanted(pair[0].value))]
        return self._replace(node=cast("Node", MappingNode(self.node.tag, pairs, self.node.start_mark, None)))

    @property
    def is_null(self) -> bool:
        """Whether the value is null, or nothing at all."""
        return self.node.tag == NULL_TAG


class Documents:
    """Reads each file once; files that cannot be read are reported once."""

    def __init__(self, report: Callable[[Fault], None]) -> None:
        self._report = report
        self._documents: dict[str, Document | None] = {}
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Digest of all that was read so far, in the order in which it was."""
        return self._digest.hexdigest()

    def open(self, name: str) -> Document | None:
        """Read a file.

        Args:
            name: Path as it shall be shown to the user.

        Returns:
            The document; None if it is no YAML or JSON, which has been reported.

        Raises:
            OSError: If the file cannot be read, is no regular file, or is too large.
        """
        key = real_path(name)
        if key not in self._documents:
            content = read_file(key, MAX_FILE_SIZE)
            self._digest.update(hashlib.sha256(content).digest())
            self._documents[key] = self._parse(name, content)
        return self._documents[key]

    def _parse(self, name: str, content: bytes) -> Document | None:
        import yaml

        from dfmesh.config.expansion import expansion_fault

        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        stream = _NamedBytes(content, name)
        try:
            root = cast("Node | None", yaml.compose(stream, Loader=loader))
            fault = None if root is None else expansion_fault(root)
            if fault is None:
                return Document(name, root)
            self._report(fault)
        except yaml.YAMLError as error:
            self._report(syntax_fault(name, error, content))
        except RecursionError:
            self._report(Fault("is nested too deeply", SourceLocation(name, 1, 1)))
        return None


class _NamedBytes(io.BytesIO):
    """Bytes with a name, which PyYAML puts into the marks of nodes and errors."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def location_of(node: Node) -> SourceLocation:
    """Where a node begins."""
    mark = node.start_mark
    return SourceLocation(mark.name, mark.line + 1, mark.column + 1)


def kind_of(node: Node) -> str:
    """What a node is, in the words of an error message."""
    if node.id == "mapping":
        return "a mapping"
    if node.id == "sequence":
        return "a list"
    if node.tag in _KINDS:
        return _KINDS[node.tag].format(node.value)
    return f"the text {node.value!r:.80}"


_KINDS = {
    INT_TAG: "the number {:.80}",
    FLOAT_TAG: "the number {:.80}",
    BOOL_TAG: "{} (a truth value)",
    NULL_TAG: "nothing (null)",
}


def scalar_value(node: Node) -> Any:
    """The value of a scalar: text, int, float, bool or None.

    Dates stay text, as in JSON.

    Raises:
        ValueError: If the node has a tag that JSON has no value for.
    """
    tag = node.tag
    if tag == NULL_TAG:
        return None
    if tag in (INT_TAG, FLOAT_TAG, BOOL_TAG):
        from yaml.constructor import SafeConstructor

        return SafeConstructor.yaml_constructors[tag](SafeConstructor(), node)
    if not tag.startswith(STANDARD_TAGS) or tag.endswith((":binary", ":set", ":omap")):
        raise ValueError(tag)
    return node.value
