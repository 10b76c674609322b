"""Ids of statements."""

from __future__ import annotations

from dfmesh.api.sendable import is_unicode

NodeId = int | str
"""Id of a statement: a number given in order of writing, or a name that the user chose."""

MAX_ID_LENGTH = 200
MAX_ID_NUMBER = 2**53
"""Beyond it, JSON numbers are not exact everywhere."""


def node_text(node: NodeId) -> str:
    """Write a statement's id as users see it: `%3` for a number, the name itself for a name."""
    return node if isinstance(node, str) else f"%{node}"


def node_id_problem(node_id: object) -> str:
    """Say why something cannot be the id of a statement; empty if it can."""
    if isinstance(node_id, str):
        if not node_id or node_id.startswith("%"):
            return f"{node_id!r} cannot be an id: ids are not empty and do not start with %"
        if len(node_id) > MAX_ID_LENGTH:
            return f"{node_id[:40]!r}... cannot be an id: it has more than {MAX_ID_LENGTH} characters"
        if not is_unicode(node_id):
            return f"{node_id!r} cannot be an id: it is not Unicode"
        return ""
    if isinstance(node_id, bool) or not isinstance(node_id, int):
        return f"{node_id!r:.80} cannot be an id: an id is a text or a whole number"
    return "" if 0 <= node_id <= MAX_ID_NUMBER else f"ids that are numbers are between 0 and {MAX_ID_NUMBER}"
