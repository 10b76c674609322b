"""Reading of values of which each stands where it is wanted: texts, numbers, lists, and plain Python of any kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dfmesh.config.documents import (
    BOOL_TAG,
    FLOAT_TAG,
    INT_TAG,
    MERGE_TAG,
    NULL_TAG,
    Item,
    Node,
    kind_of,
    scalar_value,
)
from dfmesh.config.mistakes import Mistakes

_NO_TEXT_TAGS = frozenset({INT_TAG, FLOAT_TAG, BOOL_TAG, NULL_TAG})


class PlainValueReader(Mistakes):
    """Gives values of a federation file in Python; `$ref` has no meaning in them.

    Every method that finds a mistake records one fault and returns None (or leaves the entry out), so that
    the caller goes on with the rest.
    """

    def elements(self, item: Item) -> list[Item]:
        """The elements of a list; empty if it is none, which is recorded."""
        if not item.is_sequence:
            self.expected(item, "a list")
            return []
        return [Item(node, f"{item.path}[{index}]", item.document, None) for index, node in enumerate(item.node.value)]

    def text(self, item: Item) -> str | None:
        """A text."""
        if item.is_scalar and item.node.tag not in _NO_TEXT_TAGS:
            return str(item.node.value)
        quotes = item.node.tag in _NO_TEXT_TAGS and not item.is_null
        self.expected(item, "text", "put it in quotes" if quotes else "")
        return None

    def texts(self, item: Item) -> list[str]:
        """A list of texts."""
        return [text for text in map(self.text, self.elements(item)) if text is not None]

    def flag(self, item: Item) -> bool | None:
        """True or false."""
        if item.node.tag == BOOL_TAG:
            return bool(scalar_value(item.node))
        self.expected(item, "true or false")
        return None

    def number(self, item: Item, what: str, *, whole: bool = False, positive: bool = False) -> float | None:
        """A number from zero on.

        Args:
            item: Where it stands.
            what: What is counted, for messages, such as `seconds`.
            whole: Whether it must be a whole number.
            positive: Whether zero is too small.
        """
        least = "a number above 0" if positive else "a number from 0 on"
        value = _number(item.node)
        if value is None or not (value > 0 or (value == 0 and not positive)) or (whole and value != int(value)):
            self.expected(item, f"{'a whole number from 0 on' if whole else least} ({what})")
            return None
        return int(value) if whole else value

    def data(self, item: Item, inside: tuple[Node, ...] = ()) -> Any:
        """Any value, as plain Python; `$ref` has no meaning in it."""
        node = item.node
        if node in inside:
            self.fault(item, "contains itself through an anchor")
            return None
        if node.id == "sequence":
            return [self.data(element, (*inside, node)) for element in self.elements(item)]
        if node.id == "mapping":
            return self._plain_mapping(item, (*inside, node))
        try:
            return scalar_value(node)
        except (ValueError, TypeError, OverflowError):
            self.fault(item, f"{node.value!r:.80} has the tag {node.tag:.80}, which dfmesh has no value for")
            return None

    def _plain_mapping(self, item: Item, inside: tuple[Node, ...]) -> dict[str, Any]:
        entries: dict[str, Item] = {}
        merged: dict[str, Any] = {}
        for key, entry in self.pairs(item):
            if entry.key is not None and entry.key.tag == MERGE_TAG:
                for one in self.elements(entry) if entry.is_sequence else [entry]:
                    value = self.data(one, inside)
                    merged = {**(value if isinstance(value, dict) else {}), **merged}
            else:
                self.add_once(entries, key, entry)
        merged.update({key: self.data(entry, inside) for key, entry in entries.items()})
        return merged

    def mapping_data(self, item: Item) -> dict[str, Any]:
        """A mapping of any values, as plain Python; null is an empty one."""
        if not (item.is_mapping or item.is_null):
            self.expected(item, "a mapping")
            return {}
        return self.data(item) or {}

    def pairs(self, item: Item) -> Iterator[tuple[str, Item]]:
        """Iterate over the keys and entries of a mapping, as they stand there."""
        for key_node, value_node in item.node.value:
            if key_node.id != "scalar":
                self.fault(item, f"expected a name as key, found {kind_of(key_node)}", at=key_node)
                continue
            key = key_node.value
            path = f"{item.path}.{key}" if item.path else key
            yield key, Item(value_node, path, item.document, key_node)

    def add_once(self, entries: dict[str, Item], key: str, entry: Item) -> None:
        """Add an entry to others; that its key is there already is a mistake."""
        first = entries.get(key)
        if first is None or first.key is None or entry.key is None:
            entries[key] = entry
            return
        same = f"{entry.key.value!r} is given twice"
        spelled = "" if first.key.value == entry.key.value else f", first as {first.key.value!r}"
        self.fault(entry, f"{same}{spelled} (first in line {first.key.start_mark.line + 1})", at=entry.key)


def _number(node: Node) -> float | None:
    if node.id != "scalar" or node.tag in (BOOL_TAG, NULL_TAG):
        return None
    try:
        # YAML 1.1 reads 1e9 as text; a user means the number
        value = scalar_value(node) if node.tag in (INT_TAG, FLOAT_TAG) else float(node.value)
        return value if math.isfinite(value) else None
    except (ValueError, OverflowError):  # no number, or one with too many digits
        return None
