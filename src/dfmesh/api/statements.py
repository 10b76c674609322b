"""Statements: the lines of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dfmesh.api.building import NodeId, current_block, current_pipeline, node_text, user_location
from dfmesh.api.conditions import Comparison, Condition, Logic
from dfmesh.api.references import NodeRef, PlaceParam, Value, with_references
from dfmesh.errors import Fault, SourceLocation

After = "Statement | NodeRef | NodeId | Sequence[Statement | NodeRef | NodeId] | None"


@dataclass(frozen=True)
class BestOf:
    """Lets the compiler choose the site, among `sites` or, where that is None, among all that offer the operation."""

    sites: Sequence[str] | None = None


@dataclass(frozen=True)
class Advise:
    """Asks the sites which values a parameter may take; only for `session.discover`."""


class Statement:
    """A line of a pipeline: base of operations, yields, loops and conditions.

    Attributes:
        node_id: Its id, unique in the pipeline.
        after: Ids of statements that must have ended before it starts, though it takes no value from them.
        location: Where the user wrote it; None if it was read from a document.
        faults: What was already seen to be wrong when it was written; reported by the validator.
    """

    def __init__(self, *, node_id: NodeId | None = None, after: Any = None) -> None:
        """Add the statement to the innermost open block.

        Args:
            node_id: A name for it; by default the next number.
            after: A statement, an id, or a list of them.

        Raises:
            PipelineError: no pipeline is being written.
        """
        self.faults: list[Fault] = []
        self.location: SourceLocation | None = user_location()
        block = current_block(self.label)
        self.node_id: NodeId = current_pipeline().next_node_id() if node_id is None else node_id
        self.after: tuple[NodeId, ...] = _node_ids(after)
        self._place_in(block)

    def _place_in(self, block: Any) -> None:
        block.body.append(self)

    @property
    def label(self) -> str:
        """What the user calls this kind of statement."""
        return type(self).__name__

    def references(self) -> Iterator[NodeRef | PlaceParam]:
        """Iterate over everything that it refers to, in the order written."""
        for value in self.values():
            yield from find_references(value)

    def values(self) -> Iterator[Any]:
        """Iterate over the values that the user gave, in the order written."""
        return iter(())

    def __repr__(self) -> str:
        return f"<{self.label} {node_text(self.node_id)}>"


class Expression(Statement, Value):
    """A statement that has a value."""

    def to_reference(self) -> NodeRef:
        """Refer to its value."""
        return NodeRef(self.node_id)

    __hash__ = Value.__hash__


class Yield(Statement):
    """Sends a value to the client, where it appears under the name `place`.

    Attributes:
        value: What to send: a reference, a parameter, a constant, or lists, tuples, dictionaries of them.
        place: Name under which the results are found.
    """

    def __init__(
        self,
        value: Any,
        place: str = "yield",
        *,
        multiuse: bool = True,
        node_id: NodeId | None = None,
        after: Any = None,
        dfm_after: Any = None,
    ) -> None:
        """Send `value` to the client.

        Args:
            value: What to send.
            place: Name under which the results are found; several yields may share one.
            multiuse: Accepted for DFM; a place may always be used several times.
            node_id: A name for the statement.
            after: Statements that must have ended before.
            dfm_after: DFM's spelling of `after`.
        """
        self.value = with_references(value)
        self.place = place
        self.multiuse = multiuse
        super().__init__(node_id=node_id, after=after if after is not None else dfm_after)

    def values(self) -> Iterator[Any]:
        """Iterate over the value sent."""
        yield self.value


class Choose(Expression):
    """Joins two values: `then` where the condition is true, else `otherwise`. Either may come from inside an If.

    Attributes:
        cond: The condition.
        then: Value where it is true.
        otherwise: Value where it is not.
    """

    def __init__(
        self, cond: Any, then: Any, otherwise: Any, *, node_id: NodeId | None = None, after: Any = None
    ) -> None:
        self.cond = condition_of(cond)
        self.then = with_references(then)
        self.otherwise = with_references(otherwise)
        super().__init__(node_id=node_id, after=after)

    __hash__ = Value.__hash__

    def values(self) -> Iterator[Any]:
        """Iterate over the condition and both values."""
        yield self.cond
        yield self.then
        yield self.otherwise


def condition_of(cond: Any) -> Any:
    """Give the condition as data; an `If` statement stands for its own condition."""
    inner = getattr(cond, "cond", None)
    if isinstance(cond, Statement) and inner is not None and not isinstance(cond, Value):
        return inner
    return cond if isinstance(cond, Condition) else with_references(cond)


def find_references(value: Any) -> Iterator[NodeRef | PlaceParam]:
    """Iterate over the references inside a value or condition, at any depth, in order."""
    if isinstance(value, NodeRef | PlaceParam):
        yield value
    elif isinstance(value, Comparison):
        yield from find_references(value.left)
        yield from find_references(value.right)
    elif isinstance(value, Logic):
        for operand in value.operands:
            yield from find_references(operand)
    elif type(value) in (list, tuple):
        for item in value:
            yield from find_references(item)
    elif type(value) is dict:
        for key, item in value.items():
            yield from find_references(key)
            yield from find_references(item)


def _node_ids(after: Any) -> tuple[NodeId, ...]:
    if after is None:
        return ()
    items = list(after) if isinstance(after, list | tuple) else [after]
    return tuple(_node_id(item) for item in items)


def _node_id(item: Any) -> NodeId:
    if isinstance(item, Statement):
        return item.node_id
    if isinstance(item, NodeRef):
        return item.node
    if isinstance(item, str) or (isinstance(item, int) and not isinstance(item, bool)):
        return item
    raise TypeError(f"after= takes a statement, the id of one, or a list of them, not {item!r}")
