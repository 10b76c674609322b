"""Keys that slipped out of the thing they belong to: a site named `interface` is a line indented too little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from dfmesh.config.documents import MAPPING_TAG, NULL_TAG, Item, Node
from dfmesh.config.reader import Reader, snake_case

_TEXTS = frozenset({"description", "returns", "title", "type"})
"""Keys whose values are texts, not mappings."""


def put_back(entries: Mapping[str, Item], keys: Mapping[str, object], what: str, reader: Reader) -> dict[str, Item]:
    """Report keys of a thing that stand beside it, where names stand, and read on as if they stood in it.

    One line that is indented too little is one mistake: what it holds is not to be blamed, nor what needs it.

    Args:
        entries: Things by name, in the order of the file.
        keys: Keys of such a thing, in snake case.
        what: What it is, such as `site`.
        reader: Takes the faults.

    Returns:
        The entries without the slipped keys, each of which is in the entry before it.
    """
    kept: dict[str, Item] = {}
    for name, entry in entries.items():
        if snake_case(name) not in keys or _is_thing(entry, keys):
            kept[name] = entry
            continue
        owner = next(reversed(kept), None)
        article = "an" if what[0] in "aeiou" else "a"
        hint = f"indent it under {owner!r}" if owner else f"indent it under the {what} that it belongs to"
        reader.fault(entry, f"{article} {what} named {name!r}?", hint, at=entry.key)
        if owner is not None:
            kept[owner] = _with(kept[owner], entry)
    return kept


def _is_thing(entry: Item, keys: Mapping[str, object]) -> bool:
    """Tell whether an entry, for all its name, has nothing but the keys of such a thing."""
    pairs: list[tuple[Node, Node]] = entry.node.value if entry.is_mapping else []
    return bool(pairs) and all(
        key.id == "scalar"
        and snake_case(key.value) in keys
        and (value.id == "scalar") is (snake_case(key.value) in _TEXTS)
        for key, value in pairs
    )


def _with(owner: Item, entry: Item) -> Item:
    """Give an entry one more key, unless it has that already or can have none."""
    from yaml.nodes import MappingNode

    if not (owner.is_mapping or owner.is_null) or entry.key is None:
        return owner
    pairs: list[tuple[Node, Node]] = list(owner.node.value) if owner.is_mapping else []
    if any(key.value == entry.key.value for key, _value in pairs):
        return owner
    tag = MAPPING_TAG if owner.node.tag == NULL_TAG else owner.node.tag
    node = MappingNode(tag, [*pairs, (entry.key, entry.node)], owner.node.start_mark, None)
    return owner._replace(node=cast("Node", node))
