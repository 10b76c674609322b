"""Generators of adapters, which produce items when they are asked to."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol

from dfmesh.engine.adapters import ThisCall
from dfmesh.engine.call_limits import Limits
from dfmesh.engine.worker_thread import Done
from dfmesh.values import take_over

END: Any = object()
"""Stands for the item that a generator does not produce any more."""


class OpenStream:
    """A generator that a call has returned.

    Attributes:
        items: The generator, or another iterator.
        operation: Name of the operation.
        call: What its adapter sees of the call.
        limits: What it has to keep to while it computes; None if to nothing.
        timeout: Seconds that its next item may take; None for any number.
        dropped: Nobody wants more of it.
    """

    __slots__ = ("call", "dropped", "items", "limits", "operation", "timeout")

    def __init__(
        self,
        items: Iterator[Any] | AsyncIterator[Any],
        call: ThisCall,
        limits: Limits | None = None,
        timeout: float | None = None,
    ) -> None:
        self.items = items
        self.operation = call.operation
        self.call = call
        self.limits = limits
        self.timeout = timeout
        self.dropped = False


class ItemReceiver(Protocol):
    """Who gets what a generator produces."""

    def hand_over(self, done: Done) -> None:
        """Call something on the event loop; from a thread."""
        ...

    def produced(self, call: int, stream: OpenStream, given: list[Any], seconds: float) -> None:
        """A generator has produced items, and goes on with those that it was asked for."""
        ...

    def pulled(
        self, call: int, stream: OpenStream, given: list[Any], error: BaseException | None, seconds: float
    ) -> None:
        """A generator has done what it was asked for, the last items being these, or has ended, or raised."""
        ...


class Pull:
    """Lets a generator produce items on a thread. Items that come faster than the event loop turns go together.

    Attributes:
        began: When it began to make the item that it is making; infinity before the first one.
    """

    def __init__(self, calls: ItemReceiver, call: int, stream: OpenStream, items: Iterator[Any], count: int) -> None:
        self._calls = calls
        self._call = call
        self._stream = stream
        self._items = items
        self._count = count
        self._made: deque[tuple[Any, float]] = deque()
        self._announced = False
        self._told = 0.0
        self.began = math.inf

    def __call__(self) -> Any:
        """Produce; on a thread.

        Returns:
            The last of the items asked for, or `END`.
        """
        items, made = self._items, self._made
        for _ in range(self._count - 1):
            started = self.began = time.perf_counter()
            cell = [next(items, END)]
            if cell[0] is END:
                return END
            value = take_over(cell)  # Before the generator goes on, and perhaps uses the same buffer again.
            made.append((value, time.perf_counter() - started))
            if not self._announced:
                self._announced = True
                self._calls.hand_over(self._take)
            if self._stream.dropped:
                return END
        self.began = time.perf_counter()
        return next(items, END)

    def _take(self, _value: Any, _error: BaseException | None, _seconds: float) -> None:
        self._announced = False
        given, seconds = self._drain()
        if given:
            self._told += seconds
            self._calls.produced(self._call, self._stream, given, seconds)

    def give_up(self) -> None:
        """Tell of what was made so far; the rest will not be."""
        self._take(None, None, 0.0)

    def _drain(self) -> tuple[list[Any], float]:
        made = self._made
        given: list[Any] = []
        seconds = 0.0
        while made:
            value, duration = made.popleft()
            given.append(value)
            seconds += duration
        return given, seconds

    def ended(self, value: Any, error: BaseException | None, seconds: float) -> None:
        """Tell the rest, and how it ended."""
        given, _ = self._drain()
        if error is None:
            given.append(value)
        self._calls.pulled(self._call, self._stream, given, error, max(seconds - self._told, 0.0))
