"""A stream on its way into an adapter: an iterator, an async iterator, or a list, whichever the adapter takes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import Any

from dfmesh.engine.call_limits import Permit
from dfmesh.engine.message_parts import Failure
from dfmesh.errors import DfmeshError

TAKEN_AT_ONCE = 16
"""Items that are taken before that is told; telling of each would cost more than the item."""


class StreamBrokenError(DfmeshError):
    """A stream that an adapter reads has ended with an error.

    Attributes:
        failure: Where and why it broke.
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(f"the stream from {failure.operation} broke: {failure.kind}: {failure.message}")


class LiveInput:
    """One stream that a call is fed with. Made, fed and closed on the event loop; may be read on another thread.

    Attributes:
        consumed: Whether its reader has begun.
        permit: What an async reader gives back while it waits for an item; None if it needs none.
    """

    def __init__(
        self, taken: Callable[[int], None], waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """Make one.

        Args:
            taken: Gets told, on the event loop, how many further items were taken.
            waiting: Entered by a thread while it waits for an item.
        """
        self._waiting = waiting
        self._taken = taken
        self._loop = asyncio.get_running_loop()
        self._items: deque[Any] = deque()
        self._ended = False
        self._failure: Failure | None = None
        self._changed = asyncio.Event()
        self._queue: SimpleQueue[tuple[str, Any]] | None = None
        self._list: list[Any] | None = None
        self.consumed = False
        self.permit: Permit | None = None

    def put(self, value: Any) -> None:
        """Add an item."""
        if self._queue is not None:
            self._queue.put(("item", value))
            return
        self._items.append(value)
        self._changed.set()

    def end(self, failure: Failure | None) -> None:
        """Add no more items."""
        self._ended = True
        self._failure = failure
        if self._queue is not None:
            self._queue.put(("end", failure))
        self._changed.set()

    def iterate(self) -> Iterator[Any]:
        """Give an iterator that blocks its thread while there is no item."""
        self.consumed = True
        queue = self._queue = SimpleQueue()
        for item in self._items:
            queue.put(("item", item))
        self._items.clear()
        if self._ended:
            queue.put(("end", self._failure))
        return self._blocking(queue)

    def _blocking(self, queue: SimpleQueue[tuple[str, Any]]) -> Iterator[Any]:
        taken = 0
        while True:
            if taken and (taken >= TAKEN_AT_ONCE or queue.empty()):
                self._loop.call_soon_threadsafe(self._taken, taken)
                taken = 0
            if queue.empty():
                with self._waiting():
                    kind, value = queue.get()
            else:
                kind, value = queue.get()
            if kind == "end":
                if value is not None:
                    raise StreamBrokenError(value)
                return
            taken += 1
            yield value

    async def iterate_async(self) -> AsyncIterator[Any]:
        """Give an async iterator."""
        self.consumed = True
        while True:
            while self._items:
                item = self._items.popleft()
                self._taken(1)
                yield item
            if self._ended:
                if self._failure is not None:
                    raise StreamBrokenError(self._failure)
                return
            self._changed.clear()
            if self.permit is not None:
                self.permit.pause()
            await self._changed.wait()
            if self.permit is not None:
                await self.permit.resumed()

    async def gather(self) -> list[Any]:
        """Wait for the end and give the list; may be called again."""
        if self._list is None:
            consumed = self.consumed
            self._list = [item async for item in self.iterate_async()]
            self.consumed = consumed
        return self._list
