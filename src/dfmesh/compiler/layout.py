"""Where the statements of a pipeline stand: in which blocks, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dfmesh.api import Block, NodeId, Pipeline, Statement, blocks_of, node_id_problem, node_text
from dfmesh.compiler.report import Report


class Layout:
    """The statements of a pipeline with the blocks around them.

    Attributes:
        known: Statements by id; of those with the same id, the first.
        seen: Ids of the statements that the validator has come to, which those behind may refer to.
    """

    def __init__(self, pipeline: Pipeline, report: Report) -> None:
        """Look at all statements.

        Args:
            pipeline: What the user wrote.
            report: Takes the faults of ids.
        """
        self.known: dict[NodeId, Statement] = {}
        self.seen: set[NodeId] = set()
        self._around: dict[int, tuple[Block, ...]] = {}
        self._holders: dict[int, Statement] = {}
        self._positions: dict[int, int] = {}
        self._report = report
        self._index(pipeline.body, ())

    def _index(self, body: Sequence[Statement], around: tuple[Block, ...]) -> None:
        for statement in body:
            problem = node_id_problem(statement.node_id)
            if problem:
                self._report.fault(statement, problem, "leave node_id= out, or give another")
            elif statement.node_id in self.known:
                what = f"the id {node_text(statement.node_id)!r} is used twice"
                hint = f"{described(self.known[statement.node_id])} has it; give each statement its own node_id"
                self._report.fault(statement, what, hint)
            if isinstance(statement.node_id, int | str):
                self.known.setdefault(statement.node_id, statement)
            self._around[id(statement)] = around
            self._positions[id(statement)] = len(self._positions)
            for block in blocks_of(statement):
                self._holders[id(block)] = statement
                self._index(block.body, (*around, block))

    def around(self, statement: Statement) -> tuple[Block, ...]:
        """Give the blocks around a statement, the outermost first."""
        return self._around[id(statement)]

    def holders(self, statement: Statement) -> Iterator[Statement]:
        """Iterate over the statements in whose blocks one stands, the outermost first."""
        return (self._holders[id(block)] for block in self.around(statement))

    def is_in(self, statement: Statement, holder: Statement) -> bool:
        """Tell whether a statement stands in a block of another, in any depth."""
        return any(around is holder for around in self.holders(statement))

    def is_behind(self, statement: Statement, block: Statement) -> bool:
        """Tell whether a statement is written behind another and all that stands in it."""
        return self._positions[id(statement)] > self._positions[id(block)] and not self.is_in(statement, block)

    def are_together(self, one: Statement, other: Statement) -> bool:
        """Tell whether two statements stand right in the same block."""
        first, second = self.around(one), self.around(other)
        return len(first) == len(second) and begins_with(first, second)

    def note_seen(self, statement: Statement) -> None:
        """Note that the statements behind this one may refer to it."""
        if isinstance(statement.node_id, int | str):
            self.seen.add(statement.node_id)


def described(statement: Statement) -> str:
    """Name a statement in a message: by its line, or by its id where it comes from a document."""
    return f"{statement.label} ({statement.location or f'id {node_text(statement.node_id)}'})"


def begins_with(blocks: Sequence[Block], first: Sequence[Block]) -> bool:
    """Tell whether blocks, from the outside in, begin with others; some are values, which `==` does not compare."""
    return len(first) <= len(blocks) and all(block is other for block, other in zip(blocks, first, strict=False))
