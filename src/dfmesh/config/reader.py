"""Reading of a federation file, with references followed, which collects faults instead of stopping at the first."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from dfmesh.api import did_you_mean
from dfmesh.config.documents import MERGE_TAG, Document, Documents, Item, kind_of
from dfmesh.config.plain_values import PlainValueReader
from dfmesh.config.pointers import parse_pointer, split_reference
from dfmesh.config.syntax import mapping_hint

Spelling = Callable[[str], str]
Chain = tuple[tuple[str, str], ...]
"""References being followed, as (file, pointer), to find circles."""

MAX_CHAIN = 50
"""References that may lead from one to the next."""

MAX_BROUGHT_IN = 200_000
"""Entries that references may bring into mappings, in all files of a federation."""

_REFERENCE_COST = 10
"""What following a reference costs, in entries."""


def as_written(key: str) -> str:
    """The spelling of keys that are names: nothing is changed."""
    return key


def snake_case(key: str) -> str:
    """The spelling of our own keys: `is-async` and `is_async` are the same."""
    return key.replace("-", "_")


class Reader(PlainValueReader):
    """Gives what stands in a federation file, and where its references lead.

    Attributes:
        documents: The files read so far.
    """

    def __init__(self) -> None:
        super().__init__()
        self.documents = Documents(self.record)
        self._circles: set[frozenset[tuple[str, str]]] = set()
        self._brought_in = 0
        self._too_much = False

    # -- mappings

    def entries(self, item: Item, spelling: Spelling = as_written, chain: Chain = ()) -> dict[str, Item] | None:
        """The entries of a mapping, with `$ref` and `<<` merged in; its own entries win.

        Args:
            item: The mapping; null is an empty one.
            spelling: Makes different spellings of a key one.
            chain: References that led here.

        Returns:
            Items by key; None if it is no mapping.
        """
        if item.is_null:
            return {}
        if not item.is_mapping:
            self.expected(item, "a mapping", mapping_hint(item.node.value) if item.is_scalar else "")
            return None
        merged: dict[str, Item] = {}
        own: dict[str, Item] = {}
        for key, entry in self.pairs(item):
            if key == "$ref":
                merged.update(self._merged(entry, item.path, spelling, chain))
            elif entry.key is not None and entry.key.tag == MERGE_TAG:
                merged.update({**self._anchored(entry, item.path, spelling, chain), **merged})
            else:
                self.add_once(own, spelling(key), entry)
        merged.update(own)
        return merged

    def _merged(self, reference: Item, path: str, spelling: Spelling, chain: Chain) -> dict[str, Item]:
        merged: dict[str, Item] = {}
        for one in self.elements(reference) if reference.is_sequence else [reference]:
            text = self.text(one)
            found = None if text is None or not self._affords(one) else self.look_up(text, one, path, chain)
            if found is not None:
                target, longer = found
                if not (target.is_mapping or target.is_null):
                    self.fault(one, f"{text} is {kind_of(target.node)}, a mapping was expected")
                    continue
                entries = self.entries(target, spelling, longer) or {}
                self._brought_in += len(entries)
                merged.update(entries)
        return merged

    def _affords(self, reference: Item) -> bool:
        """Tell whether one more reference may be followed: lists of references to such lists multiply."""
        self._brought_in += _REFERENCE_COST
        if self._brought_in > MAX_BROUGHT_IN and not self._too_much:
            self._too_much = True
            message = f"references bring in more than {MAX_BROUGHT_IN:,} entries"
            self.fault(reference, message, "references to lists of references multiply")
        return not self._too_much

    def _anchored(self, entry: Item, path: str, spelling: Spelling, chain: Chain) -> dict[str, Item]:
        merged: dict[str, Item] = {}
        nodes = entry.node.value if entry.is_sequence else [entry.node]
        step = (entry.document.name, f"<<{id(entry.node)}")
        if step in chain:
            self.fault(entry, "the anchored mapping contains itself")
            return merged
        for node in reversed(nodes):
            found = self.entries(Item(node, path, entry.document, entry.key), spelling, (*chain, step))
            merged.update(found or {})
        return merged

    def fields(self, item: Item, known: Mapping[str, bool], what: str) -> dict[str, Item] | None:
        """The entries of a mapping whose keys are ours.

        Args:
            item: The mapping.
            known: For each key in snake case, whether it must be there.
            what: What the mapping describes, for messages.

        Returns:
            Items by key in snake case, only known ones; None if it is no mapping.
        """
        entries = self.entries(item, snake_case)
        if entries is None:
            return None
        for key, entry in entries.items():
            if key not in known:
                self.fault(
                    entry,
                    f"unknown key {key if entry.key is None else entry.key.value!r} in {what}",
                    did_you_mean(key, list(known)),
                    at=entry.key,
                )
        for key, required in known.items():
            if required and key not in entries:
                entry_text = "dfm: 1.0.0" if key == "dfm" else key
                self.fault(item, f"{what} has no {key!r}", f"add {entry_text!r}", at=item.key)
        return {key: entry for key, entry in entries.items() if key in known}

    # -- references

    def follow(self, item: Item, chain: Chain = ()) -> Item | None:
        """Replace a mapping that is only a `$ref` to one place by what stands there."""
        while item.is_mapping and len(item.node.value) == 1:
            (key_node, value_node) = item.node.value[0]
            if key_node.value != "$ref" or value_node.id != "scalar":
                break
            reference = Item(value_node, f"{item.path}.$ref", item.document, key_node)
            found = self.look_up(value_node.value, reference, item.path, chain)
            if found is None:
                return None
            target, chain = found
            item = target._replace(key=item.key)
        return item

    def look_up(self, text: str, reference: Item, path: str, chain: Chain = ()) -> tuple[Item, Chain] | None:
        """Find what a reference points to.

        Args:
            text: The reference, such as `other.yaml#/operations` or `#/schemas/Grid`.
            reference: Where it stands; the file is relative to that.
            path: Key path that the result is used under.
            chain: References that led here.

        Returns:
            The place found, not yet followed further, and the chain with this reference added; None if there is no
            such place, which has been recorded.
        """
        file, pointer = split_reference(text)
        if "://" in file:
            self.fault(reference, f"{text} is on the network", "save the file beside this one and name that")
            return None
        document = reference.document if not file else self._open(file, reference)
        if document is None:
            return None
        step = (document.name, pointer)
        if step in chain:
            self.circle(reference, (*chain[chain.index(step) :], step))
            return None
        if len(chain) == MAX_CHAIN:
            self.fault(reference, f"more than {MAX_CHAIN} references lead from one to the next")
            return None
        target = self._walk(document, pointer, reference, (*chain, step))
        return None if target is None else (target._replace(path=path), (*chain, step))

    def _open(self, file: str, reference: Item) -> Document | None:
        name = os.path.normpath(os.path.join(os.path.dirname(reference.document.name), file))
        try:
            return self.documents.open(name)
        except OSError as error:
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
            self.fault(reference, f"cannot read {name}: {reason}", "paths are relative to the file they stand in")
            return None

    def circle(self, reference: Item, circle: Chain) -> None:
        """Record that references lead back to where they began, once for all places that lead into the circle.

        Args:
            reference: The one that closes it.
            circle: All of them.
        """
        members = frozenset(circle)
        if members not in self._circles:
            self._circles.add(members)
            shown = " -> ".join(f"#{pointer}" for _file, pointer in circle)
            self.fault(reference, f"references go in a circle: {shown}", "one of them must be the thing itself")

    def _walk(self, document: Document, pointer: str, reference: Item, chain: Chain) -> Item | None:
        if document.root is None:
            self.fault(reference, f"{document.name} is empty")
            return None
        item = Item(document.root, "", document, None)
        for segment in parse_pointer(pointer):
            found = self._step(item, segment, chain)
            if found is None:
                where = f"{document.name}#{pointer}"
                near = did_you_mean(segment, _keys(item))
                self.fault(reference, f"{where} does not exist: no {segment!r} in {item.path or 'the file'}", near)
                return None
            item = found
        return item

    def _step(self, item: Item, segment: str, chain: Chain) -> Item | None:
        if item.is_sequence:
            known = segment.isdecimal() and int(segment) < len(item.node.value)
            node = item.node.value[int(segment)] if known else None
            return node and Item(node, f"{item.path}[{segment}]", item.document, None)
        if not item.is_mapping:
            return None
        for key, entry in self.pairs(item):
            if key == segment:
                return entry
        if any(key.value in ("$ref", "<<") for key, _ in item.node.value):
            return (self.entries(item, chain=chain) or {}).get(segment)
        return None


def _keys(item: Item) -> list[str]:
    return [key.value for key, _value in item.node.value if key.id == "scalar"] if item.is_mapping else []
