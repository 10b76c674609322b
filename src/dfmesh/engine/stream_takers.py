"""Those who take a stream item by item, instead of waiting for the list."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from dfmesh.engine import events
from dfmesh.engine.messages import Failure
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
    def has_room(self) -> bool:
        """Whether it could do with another item at once."""
        ...

    def offer(self, index: int, value: Any) -> None:
        """Give it the next item; one who has no room keeps it for later."""
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
    def has_room(self) -> bool:
        """Whether the window of the loop is open."""
        return self._run.has_room

    def offer(self, index: int, value: Any) -> None:
        """Open an iteration, now or when the window allows."""
        self._run.queue.append(value)
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
    def has_room(self) -> bool:
        """Always."""
        return True

    def offer(self, index: int, value: Any) -> None:
        """Send the item to the client."""
        action = self._transition.ir.action
        if isinstance(action, SendYield):
            frame = (*self._frame, index)
            self._runner.emit(events.SendYield(self._transition.position, action.place, frame, value))

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
    def has_room(self) -> bool:
        """Whether an item could be sent at once."""
        return self._under_way + len(self._queue) < STREAM_WINDOW

    def offer(self, index: int, value: Any) -> None:
        """Send an item, now or when others were taken."""
        self._queue.append(value)
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
        while self._queue and self._under_way < STREAM_WINDOW:
            self._under_way += 1
            self._send(self._queue.popleft())
        if self._ended and not self._queue:
            self._ended = False
            self._send_end(self._failure)

    def _send(self, value: Any) -> None:
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

    def _send(self, value: Any) -> None:
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

    def _send(self, value: Any) -> None:
        route = self._route
        item = events.SendStreamItem(route.site, route.id, self._frame, value, self._transition.position)
        self._runner.emit(item)

    def _send_end(self, failure: Failure | None) -> None:
        self._runner.emit(events.SendStreamEnd(self._route.site, self._route.id, self._frame, failure))
        self._runner.streams.route_ended(self._route.id, self._frame)
