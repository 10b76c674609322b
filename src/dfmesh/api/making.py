"""Where a reference or condition was made: under an If, it is a value of that branch only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dfmesh.api.building import OPEN_BLOCKS, user_location

if TYPE_CHECKING:
    from dfmesh.api.blocks import Block
    from dfmesh.api.references import NodeRef


class Making:
    """The blocks in which a selection, an index or a comparison was written.

    Attributes:
        blocks: The open blocks, the outermost first.
        location: The user's line.
    """

    __slots__ = ("_kept", "blocks", "location")

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self.location = user_location()
        self._kept: NodeRef | None = None

    def seen_from(self, made: Any, blocks: tuple[Block, ...]) -> Any:
        """Give what was made as a statement has it that stands in other blocks.

        That is itself, unless it was made in a branch in which the statement does not stand. Then it is made a
        statement of that branch, as an operation written there would be: left out, or refused, like one.

        Args:
            made: The reference or condition.
            blocks: The blocks in which the statement stands, the outermost first.
        """
        inside = {id(block) for block in blocks}
        if all(id(block) in inside for block in self.blocks if block.conditional):
            return made
        if self._kept is None:
            from dfmesh.api.statements import Part

            token = OPEN_BLOCKS.set(self.blocks)
            try:
                self._kept = Part(made, self.location).to_reference()
            finally:
                OPEN_BLOCKS.reset(token)
        return self._kept


def making() -> Making | None:
    """Note the blocks that are open; None if no branch is among them."""
    blocks = OPEN_BLOCKS.get()
    return Making(blocks) if any(block.conditional for block in blocks) else None
