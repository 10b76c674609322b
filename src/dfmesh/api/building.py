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

OPEN_BLOCKS: ContextVar[tuple[Block, ...]] = ContextVar("dfmesh_open_blocks", default=())


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
