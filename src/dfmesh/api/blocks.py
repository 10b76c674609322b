"""Blocks: statements that hold other statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Token
from types import TracebackType
from typing import Any, Literal, Self

from dfmesh.api.building import OPEN_BLOCKS, NodeId, current_block, user_location
from dfmesh.api.operation import Operation
from dfmesh.api.references import NO_DEFAULT, NodeRef, Value, with_references
from dfmesh.api.statements import Expression, Statement, condition_of
from dfmesh.errors import Fault, PipelineError
from dfmesh.netir import Port

OnError = Literal["fail", "skip", "collect"]


class Block:
    """A list of statements, written inside `with`.

    Attributes:
        body: The statements, in the order written.
    """

    body: list[Statement]
    _token: Token[tuple[Block, ...]] | None = None

    def __enter__(self) -> Self:
        self._token = OPEN_BLOCKS.set((*OPEN_BLOCKS.get(), self))
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

    def __init__(self) -> None:
        self.body = []
        block = current_block("Else")
        last = block.body[-1] if block.body else None
        if not isinstance(last, If) or last.otherwise is not None:
            fault = Fault("Else has no If right before it", user_location(), hint="write `with If(...):` first")
            raise PipelineError("this Else belongs to nothing", [fault])
        last.otherwise = self


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
            on_error: `fail` the job.
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
        return NodeRef(self.node_id, Port.ELEMENT)

    @property
    def index(self) -> NodeRef:
        """The position of the element, counted from 0."""
        return NodeRef(self.node_id, Port.INDEX)

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
        *,
        initial: Any = NO_DEFAULT,
        site: Any = None,
        provider: str | None = None,
        retries: int = 0,
        timeout: float | None = None,
        node_id: NodeId | None = None,
        **arguments: Any,
    ) -> Reduce:
        """Fold a value of the block over all elements, in order, as they arrive.

        `loop.reduce(ops.weather.Merge, v)` gives `Merge(Merge(v0, v1), v2)` and so on.

        Args:
            operation: An operation whose first two parameters are the value so far and the next one.
            value: A reference into the block, or lists, tuples, dictionaries with such.
            initial: Value to start from; without it an empty loop is an error.
            site: Where to fold, as in an operation.
            provider: As in an operation.
            retries: As in an operation.
            timeout: As in an operation.
            node_id: A name for the statement.
            arguments: Further arguments of the operation.
        """
        return Reduce(
            self,
            operation,
            value,
            initial=initial,
            site=site,
            provider=provider,
            retries=retries,
            timeout=timeout,
            node_id=node_id,
            **arguments,
        )

    def values(self) -> Iterator[Any]:
        """Iterate over the sequence."""
        yield self.seq

    def place_behind(self, statement: Statement) -> None:
        """Put a statement behind the loop, and behind what was put there before."""
        body = self._block.body
        at = next(index for index, item in enumerate(body) if item is self) + 1
        while at < len(body) and getattr(body[at], "loop", None) == self.node_id:
            at += 1
        body.insert(at, statement)


class _LoopResult(Expression):
    """A statement behind a loop that takes a value of each iteration."""

    def __init__(self, loop: ForEach, value: Any, *, node_id: NodeId | None) -> None:
        self.loop = loop.node_id
        self.value = with_references(value)
        self._loop_statement = loop
        super().__init__(node_id=node_id)

    __hash__ = Value.__hash__

    def _place_in(self, block: Any) -> None:
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
        *,
        initial: Any,
        site: Any,
        provider: str | None,
        retries: int,
        timeout: float | None,
        node_id: NodeId | None,
        **arguments: Any,
    ) -> None:
        from dfmesh.api.statements import BestOf

        if not (isinstance(operation, type) and issubclass(operation, Operation)):
            raise TypeError(f"reduce takes the class of an operation, such as ops.calc.Add, not {operation!r}")
        self.operation = str(operation.operation)
        self.parameters = operation.parameters
        self.initial = initial if initial is NO_DEFAULT else with_references(initial)
        self.site = BestOf() if site is None else site
        self.provider = provider
        self.retries = retries
        self.timeout = timeout
        self.arguments = {name: with_references(item) for name, item in arguments.items()}
        super().__init__(loop, value, node_id=node_id)

    __hash__ = Value.__hash__

    @property
    def label(self) -> str:
        """Name of the operation that merges."""
        return f"reduce {self.operation}"
