"""Those who take a stream item by item, instead of waiting for the list."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from dfmesh.engine import events
from dfmesh.engine.message_parts import Failure
from dfmesh.netir import Frame, Route, SendYield

if TYPE_CHECKING:
    from dfmesh.engine.loops import LoopRun
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import WiredTransition

STREAM_WINDOW = 64
"""Items of a stream on their way to one taker; as many more are sent as it has taken."""


class Taker(Protocol):
    """One who takes a stream item by item."""

    @property
    def room(self) -> int:
        """How many items it could do with at once."""
        ...

    def offer(self, index: int, values: list[Any]) -> None:
        """Give it the next items, of which the first has this index; those for which it has no room it keeps."""
        ...

    def end(self, failure: Failure | None) -> None:
        """Tell it that there are no more items."""
        ...


class LoopTaker:
    """A loop of this site."""

    def __init__(self, runner: NetRunner, run: LoopRun) -> None:
        self._runner = runner
        self._run = run

    @property
    def room(self) -> int:
        """How far the window of the loop is open."""
        return self._run.room

    def offer(self, index: int, values: list[Any]) -> None:
        """Open iterations, now or when the window allows."""
        self._run.queue.extend(values)
        self._runner.loops.advance(self._run)

    def end(self, failure: Failure | None) -> None:
        """End the loop after the items that it has."""
        self._run.exhausted = True
        self._run.failure = failure
        self._runner.loops.advance(self._run)


class YieldTaker:
    """A yield of this site: each item is a result."""

    def __init__(self, runner: NetRunner, transition: WiredTransition, frame: Frame) -> None:
        self._runner = runner
        self._transition = transition
        self._frame = frame

    @property
    def room(self) -> int:
        """Always the same."""
        return STREAM_WINDOW

    def offer(self, index: int, values: list[Any]) -> None:
        """Send the items to the client."""
        action = self._transition.ir.action
        if isinstance(action, SendYield):
            frames = [(*self._frame, index + number) for number in range(len(values))]
            self._runner.emit(events.SendYields(self._transition.position, action.place, frames, values))

    def end(self, failure: Failure | None) -> None:
        """The yield has done its work."""
        self._runner.finish(self._transition, self._frame, None)


class _WindowTaker:
    """One who is sent `STREAM_WINDOW` items, and then as many as it has taken."""

    def __init__(self) -> None:
        self._under_way = 0
        self._queue: deque[Any] = deque()
        self._ended = False
        self._failure: Failure | None = None

    @property
    def room(self) -> int:
        """How many items could be sent at once."""
        return STREAM_WINDOW - self._under_way - len(self._queue)

    def offer(self, index: int, values: list[Any]) -> None:
        """Send items, now or when others were taken."""
        self._queue.extend(values)
        self._advance()

    def taken(self, count: int) -> None:
        """It has taken items that were sent to it."""
        self._under_way -= count
        self._advance()

    def end(self, failure: Failure | None) -> None:
        """Send the end behind the last item."""
        self._ended = True
        self._failure = failure
        self._advance()

    def give_up(self) -> None:
        """It wants no more: drop what waits, and send the end."""
        self._queue.clear()
        self.end(None)

    def _advance(self) -> None:
        queue = self._queue
        count = min(len(queue), STREAM_WINDOW - self._under_way)
        if count > 0:
            self._under_way += count
            self._send([queue.popleft() for _ in range(count)])
        if self._ended and not self._queue:
            self._ended = False
            self._send_end(self._failure)

    def _send(self, values: list[Any]) -> None:
        raise NotImplementedError

    def _send_end(self, failure: Failure | None) -> None:
        raise NotImplementedError


class CallTaker(_WindowTaker):
    """A call that goes on and is fed."""

    def __init__(self, runner: NetRunner, call: int, index: int) -> None:
        super().__init__()
        self._runner = runner
        self._call = call
        self._input = index

    def _send(self, values: list[Any]) -> None:
        for value in values:
            self._runner.emit(events.FeedItem(self._call, self._input, value))

    def _send_end(self, failure: Failure | None) -> None:
        self._runner.emit(events.FeedEnd(self._call, self._input, failure))


class RouteTaker(_WindowTaker):
    """Another site."""

    def __init__(self, runner: NetRunner, transition: WiredTransition, route: Route, frame: Frame) -> None:
        super().__init__()
        self._runner = runner
        self._transition = transition
        self._route = route
        self._frame = frame

    def _send(self, values: list[Any]) -> None:
        route = self._route
        items = events.SendStreamItems(route.site, route.id, self._frame, values, self._transition.position)
        self._runner.emit(items)

    def _send_end(self, failure: Failure | None) -> None:
        self._runner.emit(events.SendStreamEnd(self._route.site, self._route.id, self._frame, failure))
        self._runner.streams.route_ended(self._route.id, self._frame)
