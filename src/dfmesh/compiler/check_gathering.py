"""What a loop cannot gather: a value that is there only when the loop has ended, so that it would wait for itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dfmesh.api import (
    Collect,
    ForEach,
    NodeId,
    NodeRef,
    PlaceParam,
    Reduce,
    Statement,
    blocks_of,
    find_references,
    statements_in,
)
from dfmesh.compiler.layout import Layout
from dfmesh.netir import Port

Point = tuple[Statement, bool]
"""The end of a statement with all that stands in it, if True; else its beginning, when what it refers to is there."""


def waits_for_end_of(loop: ForEach, value: Any, layout: Layout) -> Statement | None:
    """Find a statement in a value that is gathered from a loop for which the end of the loop has to be waited for.

    Args:
        loop: The loop.
        value: What is gathered.
        layout: The statements of the pipeline, whose references need not be sound.
    """
    waits = _Waits(loop, layout)
    return next((point[0] for point in waits.of(find_references(value)) if waits.reach_end(point)), None)


class _Waits:
    def __init__(self, loop: ForEach, layout: Layout) -> None:
        self._loop = loop
        self._layout = layout

    def reach_end(self, start: Point) -> bool:
        """Tell whether a point waits for the end of the loop."""
        seen: set[tuple[int, bool]] = set()
        waiting = [start]
        while waiting:
            statement, ended = waiting.pop()
            if ended and statement is self._loop:
                return True
            # What is written before the loop, or in it, cannot name what comes behind.
            if (id(statement), ended) not in seen and self._layout.is_behind(statement, self._loop):
                seen.add((id(statement), ended))
                waiting += self._before(statement, ended)
        return False

    def of(self, references: Iterable[NodeRef | PlaceParam]) -> Iterator[Point]:
        """Iterate over the points that references wait for."""
        for reference in references:
            if isinstance(reference, NodeRef):
                yield from self._point(reference.node, reference.port is Port.VALUE)

    def _point(self, node_id: NodeId, ended: bool) -> Iterator[Point]:
        found = self._layout.known.get(node_id)
        if found is not None:
            yield found, ended

    def _before(self, statement: Statement, ended: bool) -> Iterator[Point]:
        if ended:
            inside = (inner for block in blocks_of(statement) for inner in statements_in(block))
            yield from ((inner, True) for inner in inside)
        yield from self.of(statement.references())
        for node_id in statement.after:
            yield from self._point(node_id, True)
        yield from ((holder, False) for holder in self._layout.holders(statement))
        if isinstance(statement, Collect | Reduce):
            yield from self._point(statement.loop, True)
