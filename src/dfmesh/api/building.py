"""What is under construction: the open blocks of the pipeline being written, and where its author's lines stand."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING

from dfmesh.errors import Fault, PipelineError, SourceLocation
from dfmesh.user_lines import is_own, shown_file

if TYPE_CHECKING:
    from dfmesh.api.blocks import Block
    from dfmesh.api.pipeline import Pipeline

NodeId = int | str
"""Id of a statement: a number given in order of writing, or a name that the user chose."""

MAX_ID_LENGTH = 200
MAX_ID_NUMBER = 2**53
"""Beyond it, JSON numbers are not exact everywhere."""

OPEN_BLOCKS: ContextVar[tuple[Block, ...]] = ContextVar("dfmesh_open_blocks", default=())


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


def is_unicode(text: str) -> bool:
    """Tell whether a text can be sent: Python's may hold lone surrogates, such as names of undecodable files do."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


LARGEST_NUMBER = 2**63 - 1
"""The largest whole number that messages can hold outside of values."""


def number_fits(number: int) -> bool:
    """Tell whether a whole number has at most 64 bits, as messages can hold outside of values."""
    return -LARGEST_NUMBER - 1 <= number <= LARGEST_NUMBER


def user_location() -> SourceLocation:
    """Find the innermost line on the call stack that is not dfmesh's own."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return SourceLocation(shown_file(frame.f_code.co_filename), frame.f_lineno)


def current_block(what: str) -> Block:
    """Give the innermost open block.

    Raises:
        PipelineError: no pipeline is being written here.
    """
    blocks = OPEN_BLOCKS.get()
    if not blocks:
        fault = Fault(
            f"{what} stands outside of a pipeline",
            user_location(),
            hint="write it inside `with Pipeline() as p:`",
        )
        raise PipelineError("this is not part of a pipeline", [fault])
    return blocks[-1]


def current_pipeline() -> Pipeline:
    """Give the pipeline being written; only to be called while a block is open."""
    from dfmesh.api.pipeline import Pipeline

    root = OPEN_BLOCKS.get()[0]
    if not isinstance(root, Pipeline):
        raise TypeError(f"the outermost block is a {type(root).__name__}, not a Pipeline")
    return root
