"""Statements: the lines of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dfmesh.api.building import current_block, current_pipeline, user_location
from dfmesh.api.conditions import Comparison, Condition, Logic
from dfmesh.api.node_ids import NodeId, node_text
from dfmesh.api.references import NodeRef, Origin, PlaceParam, Value, with_references
from dfmesh.errors import Fault, SourceLocation
from dfmesh.values.plain import MAX_DEPTH


@dataclass(frozen=True)
class BestOf:
    """Lets the compiler choose the site, among `sites` or, where that is None, among all that offer the operation."""

    sites: Sequence[str] | None = None


@dataclass(frozen=True)
class Advise:
    """Asks the sites which values a parameter may take; only for `session.discover`."""


AFTER = "comes after"

STATUS_PLACE = "_dfm_status_"
"""Place on which DFM's callbacks are told of stops and errors; no Yield may have it."""


class Statement:
    """A line of a pipeline: base of operations, yields, loops and conditions.

    Attributes:
        node_id: Its id, unique in the pipeline.
        after: Ids of statements that must have ended before it starts, though it takes no value from them.
        location: Where the user wrote it; None if it was read from a document.
        called_at: Where the user called the sub-pipeline that it is of; None if it is of none.
        origin: To which pipeline it belongs.
        foreign: What it names by id although that belongs to another pipeline, each with how it names it.
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
        here = user_location()
        self.location: SourceLocation | None = here
        self.called_at: SourceLocation | None = None
        block = current_block(self.label)
        pipeline = current_pipeline()
        self.node_id: NodeId = pipeline.next_node_id() if node_id is None else node_id
        self.origin = Origin(pipeline.identity, self.label, here)
        self.foreign: tuple[tuple[str, Origin], ...] = ()
        self.after: tuple[NodeId, ...] = ()
        self._come_after(after)
        self._place_in(block)

    def _come_after(self, after: Any) -> None:
        for item in [] if after is None else after if isinstance(after, list | tuple) else [after]:
            if self._is_own(getattr(item, "origin", None) if isinstance(item, Statement | NodeRef) else None, AFTER):
                self.after += (_node_id(item),)

    def _is_own(self, origin: Origin | None, verb: str = "uses") -> bool:
        """Tell whether what this statement names by its id is of the same pipeline, and note it if not."""
        if origin is None or origin.pipeline == self.origin.pipeline:
            return True
        self.foreign += ((verb, origin),)
        return False

    def foreign_faults(self, pipeline: bytes) -> Iterator[Fault]:
        """Iterate over faults for what it names of another pipeline than the one it stands in.

        Args:
            pipeline: The identity of the latter.
        """
        references = (item for item in self.references() if isinstance(item, NodeRef) and item.origin is not None)
        used = [("uses", item.origin) for item in references if item.is_foreign(pipeline)]
        for verb, origin in [*self.foreign, *used]:
            what = f"{self.label} {verb} {origin}, which belongs to another pipeline"
            hint = "make it in this pipeline, or use the other one as a sub-pipeline: other(...)[place]"
            yield Fault(what, self.location, hint=hint)

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
        return NodeRef(self.node_id, origin=self.origin)

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


class Part(Choose):
    """A selection, an index or a comparison that was written in a branch and is used outside of it.

    It stands in that branch, with the line where it was written, and always takes its one value; documents have it as
    a Choose.
    """

    def __init__(self, value: Any, location: SourceLocation) -> None:
        super().__init__(True, value, None)
        self.location = location
        self.origin = Origin(self.origin.pipeline, self.label, location)

    __hash__ = Value.__hash__

    @property
    def label(self) -> str:
        """What messages call it."""
        return "comparison" if isinstance(self.then, Condition) else "selection"


def condition_of(cond: Any) -> Any:
    """Give the condition as data; an `If` statement stands for its own condition."""
    inner = getattr(cond, "cond", None)
    if isinstance(cond, Statement) and inner is not None and not isinstance(cond, Value):
        return inner
    return with_references(cond)


def find_references(value: Any, depth: int = 0) -> Iterator[NodeRef | PlaceParam]:
    """Iterate over the references inside a value or condition, in order, as deep as `with_references` puts them.

    Args:
        value: The value or condition.
        depth: In how many lists, tuples, dictionaries and conditions it stands.
    """
    if isinstance(value, NodeRef | PlaceParam):
        yield value
        return
    if isinstance(value, Comparison):
        parts: Iterable[Any] = (value.left, value.right)
    elif isinstance(value, Logic):
        parts = value.operands
    elif type(value) in (list, tuple):
        parts = value
    elif type(value) is dict:
        parts = chain.from_iterable(value.items())
    else:
        return
    if depth <= MAX_DEPTH:
        for part in parts:
            yield from find_references(part, depth + 1)


def _node_id(item: Any) -> NodeId:
    if isinstance(item, Statement):
        return item.node_id
    if isinstance(item, NodeRef):
        return item.node
    if isinstance(item, str) or (isinstance(item, int) and not isinstance(item, bool)):
        return item
    raise TypeError(f"after= takes a statement, the id of one, or a list of them, not {item!r}")
