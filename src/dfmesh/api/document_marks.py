"""The marks of pipeline documents, which writer and reader share.

A mark is a JSON object that stands for something else than a dictionary: a reference, a parameter, a choice of
sites. They are those of DFM's pipeline format; what that format lacks is added in keys of our own.
"""

from __future__ import annotations

from typing import Any

PACKAGE = "dfmesh"
"""First part of the class names of constructs, such as `dfmesh.Yield`."""

NODE = "@dfm-node"
PLACE_PARAM = "@dfm-place-param"
BEST_OF = "@dfm-best-of"
ADVISE = "@dfm-advise"
CONDITION = "@dfmesh-condition"
"""A condition where a document has a plain value, such as the argument of an operation."""
PICKLED = "__dfm__pickled__"

_TAGS = ("@dfm", PICKLED)

LOGIC = ("and", "or", "not")

MAX_BLOCKS = 50
"""Levels of blocks inside one another that a document may have."""


def is_node(document: Any) -> bool:
    """Tell whether something is the mark of a statement's id."""
    return isinstance(document, dict) and document.get("tag") == NODE


def is_reference(document: Any) -> bool:
    """Tell whether something is the mark of a reference to a statement's value."""
    return isinstance(document, dict) and is_node(document.get("id"))


def is_condition(document: Any) -> bool:
    """Tell whether something is a condition, provided that it stands where one may stand."""
    return isinstance(document, dict) and isinstance(document.get("operator"), str)


def tag_of(document: dict[str, Any]) -> str | None:
    """Give the tag of a mark; None for a dictionary that is none."""
    tag = document.get("tag")
    return tag if isinstance(tag, str) and tag.startswith(_TAGS) else None


def looks_like_mark(value: dict[Any, Any]) -> bool:
    """Tell whether a dictionary of a user would be taken for something else when it is read again."""
    if not all(type(key) is str and not key.startswith(("@", "dfm_")) for key in value):
        return True
    return tag_of(value) is not None or "operator" in value or isinstance(value.get("id"), dict)
