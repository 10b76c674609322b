"""Blocks: statements that hold other statements, and the conditional one."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Token
from types import TracebackType
from typing import Any, ClassVar, Self

from dfmesh.api.building import OPEN_BLOCKS, current_block, user_location
from dfmesh.api.node_ids import NodeId
from dfmesh.api.statements import Statement, condition_of
from dfmesh.errors import Fault, PipelineError, SourceLocation


class Block:
    """A list of statements, written inside `with`.

    Attributes:
        body: The statements, in the order written.
        location: Where the user opened it; None if it was read from a document.
        entered: Whether it stood in a `with`.
        conditional: Whether it is a branch, which is left out at times.
        inside: The blocks in which its statements stand, itself the last; empty if it was never entered.
    """

    body: list[Statement]
    location: SourceLocation | None = None
    entered = False
    conditional: ClassVar[bool] = False
    inside: tuple[Block, ...] = ()
    _token: Token[tuple[Block, ...]] | None = None

    def __enter__(self) -> Self:
        if self.entered:
            kind = type(self).__name__
            what = f"this {kind} ({self.location}) has its statements already"
            hint = "put all of them into one block"
            raise PipelineError(
                f"the block of {kind} is written in one piece", [Fault(what, user_location(), hint=hint)]
            )
        self.entered = True
        self.inside = (*OPEN_BLOCKS.get(), self)
        self._token = OPEN_BLOCKS.set(self.inside)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            OPEN_BLOCKS.reset(self._token)
            self._token = None


class If(Statement, Block):
    """Runs its block only where the condition is true. `with Else():` right after it runs where it is false.

    Attributes:
        cond: The condition.
        body: The block.
        otherwise: The block of its Else; None if it has none.
    """

    conditional = True

    def __init__(self, cond: Any, *, node_id: NodeId | None = None, after: Any = None) -> None:
        """Open a conditional block.

        Args:
            cond: A comparison, And / Or / Not, or a value taken by its truth.
            node_id: A name for the statement.
            after: Statements that must have ended before.
        """
        self.cond = condition_of(cond)
        self.body = []
        self.otherwise: Else | None = None
        super().__init__(node_id=node_id, after=after)

    def values(self) -> Iterator[Any]:
        """Iterate over the condition."""
        yield self.cond


class Else(Block):
    """The other block of the If that stands right before it.

    Raises:
        PipelineError: there is no If right before it, or that If has an Else already.
    """

    conditional = True

    def __init__(self) -> None:
        self.body = []
        self.location = here = user_location()
        block = current_block("Else")
        last = block.body[-1] if block.body else None
        if not isinstance(last, If):
            fault = Fault("Else has no If right before it", here, hint="write `with If(...):` first")
            raise PipelineError("this Else belongs to nothing", [fault])
        if last.otherwise is not None:
            fault = Fault("the If before it has an Else already", here, hint="put all of it into that one")
            raise PipelineError("this Else is one too many", [fault])
        last.otherwise = self


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Give the blocks of a statement: none, its own, or its own and that of its Else."""
    if isinstance(statement, If):
        return (statement,) if statement.otherwise is None else (statement, statement.otherwise)
    return (statement,) if isinstance(statement, Block) else ()


def statements_in(block: Block) -> Iterator[Statement]:
    """Iterate over the statements of a block, those of blocks inside after the block's own, in the order written."""
    for statement in block.body:
        yield statement
        for inner in blocks_of(statement):
            yield from statements_in(inner)
