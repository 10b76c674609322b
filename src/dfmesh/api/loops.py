"""Loops, and what gathers the values of their iterations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

from dfmesh.api.blocks import Block, blocks_of
from dfmesh.api.building import OPEN_BLOCKS, current_block
from dfmesh.api.making import making
from dfmesh.api.node_ids import NodeId
from dfmesh.api.operation import Operation
from dfmesh.api.references import NO_DEFAULT, NodeRef, PlaceParam, Value, with_references
from dfmesh.api.statements import BestOf, Expression, Statement, find_references
from dfmesh.netir import Port

OnError = Literal["fail", "skip", "collect"]


class ForEach(Expression, Block):
    """Runs its block for each element of a sequence: `with ForEach(hours) as hour:`.

    The object stands for the element inside the block. Elements run concurrently, `window` of them at a time,
    and start in order.

    Attributes:
        seq: The sequence: a reference, a parameter, or a constant.
        window: How many elements run at a time; None leaves it to the engine.
        on_error: What an error in an iteration does.
        body: The block.
    """

    def __init__(
        self,
        seq: Any,
        *,
        window: int | None = None,
        on_error: OnError = "fail",
        node_id: NodeId | None = None,
        after: Any = None,
    ) -> None:
        """Open a loop.

        Args:
            seq: The sequence, or a generator's stream, taken element by element.
            window: How many elements run at a time, at least 1.
            on_error: What an error in an iteration does: `fail` the job; `skip` leaves values that failed out of
                what is collected and reduced; `collect` puts an `IterationError` in their place in what is
                collected, and leaves them out of what is reduced. With the latter two the job does not fail.
            node_id: A name for the statement.
            after: Statements that must have ended before.
        """
        self.seq = with_references(seq)
        self.window = window
        self.on_error = on_error
        self.body = []
        self._block = current_block("ForEach")
        super().__init__(node_id=node_id, after=after)

    __hash__ = Value.__hash__

    def to_reference(self) -> NodeRef:
        """Refer to the element."""
        return NodeRef(self.node_id, Port.ELEMENT, origin=self.origin)

    @property
    def element(self) -> NodeRef:
        """The element, as a value of the branch in which this is written.

        `kept = x.element` under an If is left out of `x.collect(kept)` where the condition is false; `kept = x` would
        only be another name for each element.
        """
        return NodeRef(self.node_id, Port.ELEMENT, origin=self.origin, made=making())

    @property
    def index(self) -> NodeRef:
        """The position of the element, counted from 0."""
        return NodeRef(self.node_id, Port.INDEX, origin=self.origin, made=making())

    def collect(self, value: Any, *, node_id: NodeId | None = None) -> Collect:
        """Give the list of a value of the block over all elements, in order.

        May be called inside the block or after it; the result belongs to the block around the loop.

        Args:
            value: A reference into the block, or lists, tuples, dictionaries with such.
            node_id: A name for the statement.
        """
        return Collect(self, value, node_id=node_id)

    def reduce(
        self,
        operation: type[Operation],
        value: Any,
        /,
        *more: Any,
        initial: Any = NO_DEFAULT,
        site: Any = None,
        provider: str | None = None,
        retries: int = 0,
        timeout: float | None = None,
        node_id: NodeId | None = None,
        **arguments: Any,
    ) -> Reduce | Operation:
        """Fold a value of the block over all elements, in order, as they arrive.

        `loop.reduce(ops.weather.Merge, v)` gives `Merge(Merge(v0, v1), v2)` and so on. Of several values,
        `loop.reduce(ops.weather.Merge, us, ca, mx)`, each is folded by itself, so at the site where it is if that
        offers the operation, and then what came of them is merged, in the order given. That is one result whatever
        the sites only if the operation is associative and commutative, as sums, counts and histograms are.

        Args:
            operation: An operation whose first two parameters are the value so far and the next one.
            value: A reference into the block, or lists, tuples, dictionaries with such.
            more: Further values, folded by themselves.
            initial: Value to start from; without it an empty loop is an error. Where several values are folded each
                starts from it, so that it must be neutral, such as 0 for a sum.
            site: Where to fold, as in an operation; all of it, also of several values.
            provider: As in an operation.
            retries: As in an operation.
            timeout: As in an operation.
            node_id: A name for the statement; of several values for the last merge.
            arguments: Further arguments of the operation.
        """
        options: dict[str, Any] = {"site": site, "provider": provider, "retries": retries, "timeout": timeout}
        options |= arguments
        if not more:
            return Reduce(self, operation, value, initial=initial, node_id=node_id, **options)
        parts = [Reduce(self, operation, item, initial=initial, **options) for item in (value, *more)]
        names = [parameter.name for parameter in operation.parameters or ()][:2]
        merged: Reduce | Operation = parts[0]
        for part in parts[1:]:
            given: dict[str, Any] = dict(zip(names, (merged, part), strict=False))
            options["node_id"] = node_id if part is parts[-1] else None
            merged = self._behind(functools.partial(operation, **given, **options))
        return merged

    def _behind(self, make: Callable[[], Operation]) -> Operation:
        """Make an operation and put it behind the loop, wherever the user is writing now."""
        aside = Block()
        aside.body = []
        with aside:
            operation = make()
        self.place_behind(operation)
        return operation

    def values(self) -> Iterator[Any]:
        """Iterate over the sequence."""
        yield self.seq

    def belong_to(self, block: Block) -> None:
        """Note the block that the loop stands in, where `collect` and `reduce` put their statements."""
        self._block = block

    def place_behind(self, statement: Statement) -> None:
        """Put a statement into the block around the loop: at its end, or before the block that the user writes in."""
        if statement.origin.pipeline != self.origin.pipeline:  # A fault, which stands where the user writes.
            OPEN_BLOCKS.get()[-1].body.append(statement)
            return
        body = self._block.body
        inner = self._written_in()
        if inner is None or inner is self:
            body.append(statement)
        else:
            at = next(index for index, item in enumerate(body) for block in blocks_of(item) if block is inner)
            body.insert(at, statement)

    def _written_in(self) -> Block | None:
        """Give the open block that stands right in the block around the loop, if there is one."""
        blocks = OPEN_BLOCKS.get()
        around = next((depth for depth, block in enumerate(blocks) if block is self._block), len(blocks))
        return blocks[around + 1] if around + 1 < len(blocks) else None


class _LoopResult(Expression):
    """A statement behind a loop that takes a value of each iteration."""

    def __init__(
        self,
        loop: ForEach,
        value: Any,
        *,
        node_id: NodeId | None = None,
        after: Any = None,
        behind_loop: bool = True,
    ) -> None:
        self.loop = loop.node_id
        self.value = with_references(value, loop.inside)
        self._loop_statement = loop if behind_loop else None
        super().__init__(node_id=node_id, after=after)

    __hash__ = Value.__hash__

    def _place_in(self, block: Any) -> None:
        if self._loop_statement is None:
            super()._place_in(block)
        else:
            self._is_own(self._loop_statement.origin)
            self._loop_statement.place_behind(self)

    def values(self) -> Iterator[Any]:
        """Iterate over the value gathered."""
        yield self.value


class Collect(_LoopResult):
    """The list of a value over all iterations of a loop; made by `loop.collect(value)`.

    Attributes:
        loop: Id of the loop.
        value: What is gathered.
    """


class Reduce(_LoopResult):
    """The fold of a value over all iterations of a loop; made by `loop.reduce(operation, value)`.

    Attributes:
        loop: Id of the loop.
        value: What is folded.
        operation: Name of the operation that merges two values.
        parameters: What that operation takes; None if unknown.
        initial: Value to start from, or `NO_DEFAULT`.
        site: As in Operation, as are provider, retries, timeout and arguments.
    """

    def __init__(
        self,
        loop: ForEach,
        operation: type[Operation],
        value: Any,
        /,
        *,
        initial: Any = NO_DEFAULT,
        site: Any = None,
        provider: str | None = None,
        retries: int = 0,
        timeout: float | None = None,
        node_id: NodeId | None = None,
        behind_loop: bool = True,
        **arguments: Any,
    ) -> None:
        if not (isinstance(operation, type) and issubclass(operation, Operation)):
            raise TypeError(f"reduce takes the class of an operation, such as ops.calc.Add, not {operation!r}")
        self.operation = str(operation.operation)
        self.parameters = operation.parameters
        self.initial = initial if initial is NO_DEFAULT else with_references(initial, loop.inside)
        self.site = BestOf() if site is None else site
        self.provider = provider
        self.retries = retries
        self.timeout = timeout
        self.arguments = {name: with_references(item, loop.inside) for name, item in arguments.items()}
        super().__init__(loop, value, node_id=node_id, behind_loop=behind_loop)

    __hash__ = Value.__hash__

    def values(self) -> Iterator[Any]:
        """Iterate over the value folded, the value to start from, and the arguments."""
        yield self.value
        yield from self.outer_values()

    def outer_values(self) -> Iterator[Any]:
        """Iterate over the values that come from outside the loop."""
        if self.initial is not NO_DEFAULT:
            yield self.initial
        yield from self.arguments.values()

    def outer_references(self) -> Iterator[NodeRef | PlaceParam]:
        """Iterate over the references to what is outside the loop."""
        for value in self.outer_values():
            yield from find_references(value)

    @property
    def label(self) -> str:
        """Name of the operation that merges."""
        return f"reduce {self.operation}"
