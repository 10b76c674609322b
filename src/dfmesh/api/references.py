"""References: how one statement of a pipeline names the value of another, or a value that comes at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dfmesh.api.building import OPEN_BLOCKS
from dfmesh.api.making import Making, making
from dfmesh.api.no_value import NoValueYet
from dfmesh.api.node_ids import NodeId, node_text
from dfmesh.errors import SourceLocation
from dfmesh.netir import Field, Item, Port, Selector
from dfmesh.values.plain import MAX_DEPTH

if TYPE_CHECKING:
    from dfmesh.api.blocks import Block
    from dfmesh.api.conditions import Comparison, Logic


class Value(NoValueYet):
    """Something that will have a value when the pipeline runs.

    It can be selected from (`value["key"]`, `value[3]`, `value.field("name")`) and compared. It has no value
    while the pipeline is being written, so `if value:`, `len(value)` and `for x in value:` raise TypeErrors
    that name the construct to use instead.
    """

    __slots__ = ()

    def to_reference(self) -> NodeRef | PlaceParam:
        """Give the plain reference that a document holds."""
        raise NotImplementedError

    def __getitem__(self, key: str | int) -> NodeRef | PlaceParam:
        """Refer to an item of the value."""
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise TypeError(f"a selector is a string or an integer, not {key!r}; compute anything else in an operation")
        return _selected(self, Item(key))

    def field(self, name: str) -> NodeRef | PlaceParam:
        """Refer to a data field of the value."""
        return _selected(self, Field(name))

    def __eq__(self, other: object) -> Comparison:  # type: ignore[override]
        return _compare("==", self, other)

    def __ne__(self, other: object) -> Comparison:  # type: ignore[override]
        return _compare("!=", self, other)

    def __lt__(self, other: object) -> Comparison:
        return _compare("<", self, other)

    def __le__(self, other: object) -> Comparison:
        return _compare("<=", self, other)

    def __gt__(self, other: object) -> Comparison:
        return _compare(">", self, other)

    def __ge__(self, other: object) -> Comparison:
        return _compare(">=", self, other)

    def __and__(self, other: object) -> Logic:
        return _logic("and", self, other)

    def __or__(self, other: object) -> Logic:
        return _logic("or", self, other)

    def __invert__(self) -> Logic:
        return _logic("not", self)

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a statement was written. Ids are counted from 0 in each pipeline, so an id alone does not say whose it is.

    Attributes:
        pipeline: The identity of its pipeline, which copies of that share.
        label: What the user calls the statement.
        location: The user's line.
    """

    pipeline: bytes
    label: str
    location: SourceLocation

    def __str__(self) -> str:
        """Name the statement as messages do."""
        return f"{self.label} ({self.location})"


class NodeRef(Value):
    """A reference to the value of a statement.

    Attributes:
        node: Id of the statement.
        port: Which output: VALUE, or ELEMENT / INDEX of a loop.
        select: Selectors, applied from left to right.
        origin: Where the statement was written; None if only its id is known, as in documents.
        made: In which branch the reference itself was written; None if that is the statement's value as it is.
    """

    __slots__ = ("made", "node", "origin", "port", "select")

    def __init__(
        self,
        node: NodeId,
        port: Port = Port.VALUE,
        select: Selector = (),
        origin: Origin | None = None,
        made: Making | None = None,
    ) -> None:
        self.node = node
        self.port = port
        self.select = select
        self.origin = origin
        self.made = made

    def is_foreign(self, pipeline: bytes) -> bool:
        """Tell whether it was made in another pipeline than the one with this identity."""
        return self.origin is not None and self.origin.pipeline != pipeline

    def to_reference(self) -> NodeRef:
        """Give itself."""
        return self

    def __repr__(self) -> str:
        port = "" if self.port is Port.VALUE else f".{self.port.value}"
        return f"{node_text(self.node)}{port}{''.join(map(str, self.select))}"


class _NoDefault:
    """Marks a parameter without default, since None is a default like any other."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = _NoDefault()


class PlaceParam(Value):
    """A value given when the pipeline is run: `run(p, day="1995-03-18")` fills `PlaceParam("day")`.

    The same name may stand in many places of a pipeline; it is one parameter.

    Attributes:
        place: Name of the parameter.
        default: Value where none is given; `NO_DEFAULT` if one must be given.
        select: Selectors, applied from left to right.
    """

    __slots__ = ("default", "multiuse", "place", "select")

    def __init__(self, place: str, *, default: Any = NO_DEFAULT, multiuse: bool = True, select: Selector = ()) -> None:
        """Name a parameter.

        Args:
            place: Its name, any text.
            default: Value where none is given.
            multiuse: Accepted for DFM; a name may always be used several times.
            select: Selectors; users write `PlaceParam("x")["key"]`.
        """
        self.place = place
        self.default = default
        self.multiuse = multiuse
        self.select = select

    def to_reference(self) -> PlaceParam:
        """Give itself."""
        return self

    def __repr__(self) -> str:
        return f"PlaceParam({self.place!r}){''.join(map(str, self.select))}"


def _selected(value: Value, step: Item | Field) -> NodeRef | PlaceParam:
    reference = value.to_reference()
    if isinstance(reference, PlaceParam):
        select = (*reference.select, step)
        return PlaceParam(reference.place, default=reference.default, multiuse=reference.multiuse, select=select)
    reference = with_references(reference)
    return NodeRef(reference.node, reference.port, (*reference.select, step), reference.origin, making())


def _compare(operator: str, left: Value, right: object) -> Comparison:
    from dfmesh.api.conditions import Comparison

    return Comparison(left, right, operator=operator)


def _logic(operator: str, *operands: object) -> Logic:
    from dfmesh.api.conditions import Logic

    return Logic(*operands, operator=operator)


def with_references(value: Any, blocks: tuple[Block, ...] | None = None, depth: int = 0) -> Any:
    """Copy a value with the statements inside its lists, tuples and dictionaries replaced by references to them.

    Args:
        value: What the user gave.
        blocks: The blocks in which the statement stands that it is given to, the outermost first; None for those
            that are open.
        depth: In how many lists, tuples and dictionaries it stands.
    """
    if isinstance(value, NoValueYet):
        reference = value.to_reference() if isinstance(value, Value) else value
        made: Making | None = getattr(reference, "made", None)
        return reference if made is None else made.seen_from(reference, OPEN_BLOCKS.get() if blocks is None else blocks)
    kind = type(value)
    if kind not in (list, tuple, dict) or depth > MAX_DEPTH:  # The validator refuses what is nested deeper.
        return value
    depth += 1
    if kind is dict:
        return {
            with_references(key, blocks, depth): with_references(item, blocks, depth) for key, item in value.items()
        }
    items = [with_references(item, blocks, depth) for item in value]
    return items if kind is list else tuple(items)
