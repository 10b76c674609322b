"""Streams: generators whose items go out as they are produced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dfmesh.engine import events
from dfmesh.engine.messages import Failure
from dfmesh.engine.tokens import Failed, Token
from dfmesh.netir import Frame, Loop, Port, Route, SendYield

if TYPE_CHECKING:
    from dfmesh.engine.loops import LoopRun
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import Target, WiredTransition


class Stream:
    """A generator that a call returned.

    Attributes:
        transition: The transition that called.
        frame: Its frame.
        items: Items kept: all of them where someone takes the list, else until all takers have fired.
        length: How many items came.
        listed: Whether someone takes the list.
        absent: Takers that have not fired yet.
        loops: Loops that take items.
        yields: Yields that take items.
        pulling: The generator is at work.
        ended: No more items come.
        failure: Why it ended early.
    """

    __slots__ = (
        "absent",
        "ended",
        "failure",
        "frame",
        "items",
        "length",
        "listed",
        "loops",
        "pulling",
        "transition",
        "yields",
    )

    def __init__(self, transition: WiredTransition, frame: Frame, *, listed: bool, takers: int) -> None:
        self.transition = transition
        self.frame = frame
        self.listed = listed
        self.absent = takers
        self.items: list[Any] = []
        self.length = 0
        self.loops: list[LoopRun] = []
        self.yields: list[WiredTransition] = []
        self.pulling = False
        self.ended = False
        self.failure: Failure | None = None

    @property
    def wanted(self) -> bool:
        """Whether the fastest taker can use another item.

        The fastest and not the slowest, since takers may wait for one another: a bound on all of them could
        turn into a deadlock.
        """
        if self.pulling or self.ended:
            return False
        return bool(self.listed or self.yields or self.absent or not self.loops) or any(
            loop.has_room for loop in self.loops
        )


class StreamToken:
    """Lies on the place of a taker where others get the list."""

    __slots__ = ("call", "stream")

    def __init__(self, call: int, stream: Stream) -> None:
        self.call = call
        self.stream = stream


class Streams:
    """The NetRunner's rules for streams: loops and yields of the same site take items, everything else the list."""

    def __init__(self, runner: NetRunner) -> None:
        self._runner = runner
        self._open: dict[int, Stream] = {}

    def opened(self, call: int) -> None:
        """A call has returned a generator."""
        transition, frame = self._runner.calls[call]
        takers = self._takers(transition)
        stream = Stream(transition, frame, listed=self._listed(transition), takers=len(takers))
        self._open[call] = stream
        for target in takers:
            self._runner.deliver(target, frame, StreamToken(call, stream))
        self.pull(call)

    def _takers(self, transition: WiredTransition) -> list[Target]:
        return [target for target in self._local_targets(transition) if takes_items(target)]

    def _local_targets(self, transition: WiredTransition) -> list[Target]:
        routes = transition.routes.get(Port.VALUE, ())
        arrivals = self._runner.wired.arrivals
        return [target for route in routes if self._whole_and_local(route) for target in arrivals[route.id]]

    def _whole_and_local(self, route: Route) -> bool:
        return route.site == self._runner.site and not route.select

    def _listed(self, transition: WiredTransition) -> bool:
        routes = transition.routes.get(Port.VALUE, ())
        elsewhere = any(not self._whole_and_local(route) for route in routes)
        return elsewhere or any(not takes_items(target) for target in self._local_targets(transition))

    def pull(self, call: int) -> None:
        """Ask the generator for another item, if somebody can use it."""
        stream = self._open.get(call)
        if stream is not None and stream.wanted:
            stream.pulling = True
            self._runner.emit(events.PullStream(call))

    def item(self, call: int, value: Any) -> None:
        """The generator has produced an item."""
        stream = self._open[call]
        stream.pulling = False
        if stream.listed or stream.absent:
            stream.items.append(value)
        index = stream.length
        stream.length += 1
        for transition in stream.yields:
            self._yield(transition, (*stream.frame, index), value)
        for run in list(stream.loops):
            run.queue.append(value)
            self._runner.loops.advance(run)
        self.pull(call)

    def _yield(self, transition: WiredTransition, frame: Frame, value: Any) -> None:
        action = transition.ir.action
        if isinstance(action, SendYield):
            self._runner.emit(events.SendYield(transition.position, action.place, frame, value))

    def take(self, run: LoopRun, stream_token: StreamToken) -> None:
        """A loop begins to take items; those that came before it are there for it."""
        stream = stream_token.stream
        run.stream = stream_token.call
        run.queue.extend(stream.items)
        stream.loops.append(run)
        self.taker_left(stream)
        run.exhausted = stream.ended
        run.failure = stream.failure
        self._runner.loops.advance(run)

    def yield_items(self, transition: WiredTransition, stream: Stream) -> None:
        """A yield begins to take items; those that came before it go out now."""
        for index, value in enumerate(stream.items):
            self._yield(transition, (*stream.frame, index), value)
        self.taker_left(stream)
        if stream.ended:
            self._runner.finish(transition, stream.frame, None)
        else:
            stream.yields.append(transition)

    def taker_left(self, stream: Stream) -> None:
        """A taker has fired, or never will; after the last one, items are not kept for takers any more."""
        stream.absent -= 1
        if not stream.absent and not stream.listed:
            stream.items.clear()

    def ended(self, call: int) -> None:
        """The generator has no more items: the call has its value, the list."""
        transition, frame = self._runner.calls.pop(call)
        stream = self._open.pop(call)
        self._close(stream, None)
        self._finish(transition, frame, list(stream.items))

    def failed(self, call: int, token: Failed) -> bool:
        """The generator has raised: what it produced so far counts, its loops end with the error.

        Returns:
            Whether the call was a stream at all; if not, nothing was done.
        """
        stream = self._open.pop(call, None)
        if stream is None:
            return False
        self._close(stream, token.failure)
        self._finish(stream.transition, stream.frame, token)
        return True

    def _close(self, stream: Stream, failure: Failure | None) -> None:
        stream.pulling = False
        stream.ended = True
        stream.failure = failure
        for run in stream.loops:
            run.exhausted = True
            run.failure = failure
            self._runner.loops.advance(run)
        for transition in stream.yields:
            self._runner.finish(transition, stream.frame, None)

    def _finish(self, transition: WiredTransition, frame: Frame, token: Token) -> None:
        """Send the list to those that did not take the items, and count the call as done."""
        for route in transition.routes.get(Port.VALUE, ()):
            if self._whole_and_local(route):
                for target in self._runner.wired.arrivals[route.id]:
                    if not takes_items(target):
                        self._runner.deliver(target, frame, token)
            else:
                self._runner.send_along(transition, route, frame, token)
        self._runner.finish_sent(transition, frame, token)


def takes_items(target: Target) -> bool:
    """Tell whether a token's target is a loop or yield that takes a stream item by item."""
    transition, index, outer, gathered = target
    if outer is not None or gathered or not isinstance(transition.ir.action, Loop | SendYield):
        return False
    return transition.streamable == index
