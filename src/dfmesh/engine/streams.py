"""Streams: generators whose items go out as they are produced, to any number of takers at any sites.

A stream lives at the site that produces it and, as a relay, at each site that takes it live. Loops, yields and calls
take items; whatever cannot gets the list when the stream has ended. The source goes at the pace of the fastest taker,
not of the slowest, since takers may wait for one another: a bound on all of them could turn into a deadlock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dfmesh.engine import events
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.stream_takers import STREAM_WINDOW, CallTaker, LoopTaker, RouteTaker, Taker, YieldTaker
from dfmesh.engine.tokens import Failed, Token
from dfmesh.netir import Call, Frame, Loop, Port, Route, SendYield

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dfmesh.engine.loops import LoopRun
    from dfmesh.engine.net_runner import NetRunner
    from dfmesh.engine.wiring import Target, WiredTransition

_Source = tuple[str, int, Frame]
"""`("call", number, frame)` of a generator here, or `("route", id, frame)` of a stream that another site sends."""


class Stream:
    """A stream at one site.

    Attributes:
        source: Where it comes from.
        listed: Whether someone here takes the list.
        awaited: Whether something waits for its end. That may be the body of a loop that takes items, so the source
            must not stop for it.
        absent: Takers that have not fired yet.
        takers: Those that have.
        items: Items kept: all where someone takes the list, else until all takers are there.
        length: How many items came.
        pulling: The generator is at work on the next one.
        uncredited: Items that came from another site and were not told as taken.
        closing: The source was told that nobody wants more.
        ended: No more items come.
        failure: Why it ended early.
    """

    __slots__ = (
        "absent",
        "awaited",
        "closing",
        "ended",
        "failure",
        "items",
        "length",
        "listed",
        "pulling",
        "source",
        "takers",
        "uncredited",
    )

    def __init__(self, source: _Source, *, listed: bool, absent: int) -> None:
        self.source = source
        self.listed = listed
        self.awaited = False
        self.absent = absent
        self.takers: list[Taker] = []
        self.items: list[Any] = []
        self.length = 0
        self.pulling = False
        self.uncredited = 0
        self.closing = False
        self.ended = False
        self.failure: Failure | None = None

    @property
    def wanted(self) -> int:
        """How many items the fastest taker can use now."""
        if self.ended or self.closing:
            return 0
        if self.listed or self.awaited or self.absent or not self.takers:
            return STREAM_WINDOW
        return min(max(taker.room for taker in self.takers), STREAM_WINDOW)

    def join(self, taker: Taker) -> None:
        """Let a taker in; the items that came before it are there for it."""
        if self.items:
            taker.offer(0, list(self.items))
        self.leave()
        if self.ended:
            taker.end(self.failure)
        else:
            self.takers.append(taker)

    def leave(self) -> None:
        """One fewer taker is awaited; when none is, items are not kept for takers any more."""
        self.absent -= 1
        if not self.absent and not self.listed:
            self.items.clear()


class StreamItems:
    """Lies on the place of a yield that is inside a loop, where the stream is not: the items of the whole stream.

    Attributes:
        items: The items; each is a result, as if they had come one by one.
    """

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


class StreamToken:
    """Lies on the place of a taker, where others get the list."""

    __slots__ = ("stream",)

    def __init__(self, stream: Stream) -> None:
        self.stream = stream


class Streams:
    """The NetRunner's rules for streams."""

    def __init__(self, runner: NetRunner) -> None:
        self._runner = runner
        self._streams: dict[_Source, Stream] = {}
        self._routes: dict[tuple[int, Frame], tuple[Stream, RouteTaker]] = {}
        self._fed: dict[tuple[int, int], tuple[Stream, CallTaker]] = {}

    # A generator of this site

    def opened(self, call: int) -> None:
        """A call has returned a generator."""
        transition, frame = self._runner.calls[call]
        routes = transition.routes.get(Port.VALUE, ()) if not transition.reduces else ()
        local = [target for route in routes if self._whole_and_local(route) for target in self._arrivals(route.id)]
        live = [route for route in routes if self._relayed(route)]
        listed = transition.reduces or any(not (self._whole_and_local(item) or self._relayed(item)) for item in routes)
        stream = self._open(("call", call, frame), local, listed=listed, routes=len(live))
        stream.awaited = transition.awaited
        for route in live:
            taker = RouteTaker(self._runner, transition, route, frame)
            self._routes[route.id, frame] = (stream, taker)
            stream.join(taker)
        self.pull(stream)

    def _open(self, source: _Source, targets: Iterable[Target], *, listed: bool, routes: int = 0) -> Stream:
        takers = [target for target in targets if takes_items(target)]
        listed = listed or any(not takes_items(target) for target in targets)
        stream = self._streams[source] = Stream(source, listed=listed, absent=len(takers) + routes)
        for target in takers:
            self._runner.deliver(target, source[2], StreamToken(stream))
        return stream

    def _arrivals(self, route: int) -> list[Target]:
        return self._runner.wired.arrivals[route]

    def _whole_and_local(self, route: Route) -> bool:
        return route.site == self._runner.site and not route.select

    def _relayed(self, route: Route) -> bool:
        return route.live and route.site != self._runner.site

    def items(self, call: int, values: list[Any], *, more: bool) -> None:
        """The generator has produced items; if `more`, it goes on with those that it was asked for."""
        stream = self._streams["call", call, self._runner.calls[call][1]]
        stream.pulling = more
        self._offer(stream, values)
        self.pull(stream)

    def _offer(self, stream: Stream, values: list[Any]) -> None:
        if stream.listed or stream.absent:
            stream.items += values
        index = stream.length
        stream.length += len(values)
        for taker in list(stream.takers):
            taker.offer(index, values)

    def pull(self, stream: Stream) -> None:
        """Ask for another item, if somebody can use it."""
        wanted = stream.wanted
        if wanted <= 0:
            return
        kind, number, frame = stream.source
        if kind == "route":
            if stream.uncredited:
                count, stream.uncredited = stream.uncredited, 0
                source = self._runner.wired.net.arrivals[number].source
                self._runner.emit(events.SendStreamCredit(source, number, frame, count))
        elif not stream.pulling:
            stream.pulling = True
            self._runner.emit(events.PullStream(number, wanted))

    def left(self, stream: Stream) -> None:
        """A taker has gone, or will not come. When the last one has, the source is told to stop, else it goes on."""
        if stream.takers or stream.absent or stream.listed or stream.awaited or stream.ended:
            self.pull(stream)
            return
        kind, number, frame = stream.source
        if stream.closing:
            return
        stream.closing = True
        if kind == "route":
            source = self._runner.wired.net.arrivals[number].source
            self._runner.emit(events.SendStreamCredit(source, number, frame, 0, unwanted=True))
        else:
            self._runner.emit(events.CloseStream(number))

    def ended(self, call: int) -> None:
        """The generator has no more items: the call has its value, the list."""
        transition, frame = self._runner.calls.pop(call)
        self.call_over(call, transition)
        stream = self._close(("call", call, frame), None)
        if transition.reduces:
            self._runner.gatherings.folded(transition, frame, list(stream.items))
        else:
            self._finish(transition, frame, list(stream.items))

    def failed(self, call: int, frame: Frame, transition: WiredTransition, token: Failed) -> bool:
        """The generator has raised: what it produced so far counts, those who take items end with the error.

        Returns:
            Whether the call was a stream at all; if not, nothing was done.
        """
        if ("call", call, frame) not in self._streams:
            return False
        self._close(("call", call, frame), token.failure)
        if transition.reduces:
            self._runner.gatherings.fold_failed(transition, frame, token)
        else:
            self._finish(transition, frame, token)
        return True

    def _close(self, source: _Source, failure: Failure | None) -> Stream:
        stream = self._streams.pop(source)
        stream.pulling = False
        stream.ended = True
        stream.failure = failure
        takers, stream.takers = stream.takers, []
        for taker in takers:
            taker.end(failure)
        return stream

    def _finish(self, transition: WiredTransition, frame: Frame, token: Token) -> None:
        """Send the list to those who did not take the items, and count the call as done."""
        for route in transition.routes.get(Port.VALUE, ()):
            if self._whole_and_local(route):
                self._deliver_list(route.id, frame, token)
            elif not self._relayed(route):
                self._runner.send_along(transition, route, frame, token)
        self._runner.finish_sent(transition, frame, token)

    def _deliver_list(self, route: int, frame: Frame, token: Token) -> None:
        for target in self._arrivals(route):
            if takes_items(target):
                continue
            transition, index, _, _ = target
            yields_items = isinstance(transition.ir.action, SendYield) and transition.streamable == index
            if yields_items and isinstance(token, list):
                self._runner.deliver(target, frame, StreamItems(token))
            else:
                self._runner.deliver(target, frame, token)

    # A stream that another site sends

    def items_arrived(self, route: int, frame: Frame, values: list[Any]) -> None:
        """Another site has sent items."""
        stream = self._arriving(route, frame)
        stream.uncredited += len(values)
        self._offer(stream, values)
        if stream.uncredited * 2 >= STREAM_WINDOW:  # Credit in bulk, but before the sender has to stop.
            self.pull(stream)

    def end_arrived(self, route: int, frame: Frame, failure: Failure | None) -> None:
        """Another site has no more items."""
        stream = self._arriving(route, frame)
        self._close(stream.source, failure)
        self._deliver_list(route, frame, list(stream.items) if failure is None else Failed(failure))

    def site_gone(self, failure: Failure) -> None:
        """A site has died: end the streams that came from there."""
        for kind, route, frame in list(self._streams):
            if kind == "route" and self._runner.wired.net.arrivals[route].source == failure.site:
                self.end_arrived(route, frame, failure)

    @property
    def idle(self) -> bool:
        """Whether there is no stream."""
        return not (self._streams or self._routes or self._fed)

    @property
    def relaying(self) -> bool:
        """Whether items of some stream are still to be sent to another site."""
        return bool(self._routes)

    @property
    def feeding(self) -> bool:
        """Whether some call is fed with a stream."""
        return bool(self._fed)

    @property
    def paused(self) -> int:
        """How many generators wait until somebody can use another item."""
        return sum(stream.source[0] == "call" and not stream.pulling for stream in self._streams.values())

    def _arriving(self, route: int, frame: Frame) -> Stream:
        source: _Source = ("route", route, frame)
        stream = self._streams.get(source)
        return stream if stream is not None else self._open(source, self._arrivals(route), listed=False)

    def credited(self, route: int, frame: Frame, count: int) -> None:
        """Another site has taken items of a stream of this one."""
        relay = self._routes.get((route, frame))
        if relay is not None:
            stream, taker = relay
            taker.taken(count)
            self.pull(stream)

    def unwanted(self, route: int, frame: Frame) -> None:
        """Another site wants no more items of a stream of this one; it still gets the end."""
        relay = self._routes.get((route, frame))
        if relay is not None:
            stream, taker = relay
            if taker in stream.takers:
                stream.takers.remove(taker)
            taker.give_up()
            self.left(stream)

    def route_ended(self, route: int, frame: Frame) -> None:
        """All of a stream has been sent along a route."""
        self._routes.pop((route, frame), None)

    # Takers of this site

    def take(self, run: LoopRun, token: StreamToken) -> None:
        """A loop begins to take items."""
        run.stream = token.stream
        token.stream.join(LoopTaker(self._runner, run))
        self._runner.loops.advance(run)

    def yield_items(self, transition: WiredTransition, frame: Frame, token: StreamToken) -> None:
        """A yield begins to take items."""
        token.stream.join(YieldTaker(self._runner, transition, frame))
        self.pull(token.stream)

    def feed(self, call: int, index: int, token: StreamToken) -> None:
        """A call has begun that takes items."""
        taker = CallTaker(self._runner, call, index)
        self._fed[call, index] = (token.stream, taker)
        token.stream.join(taker)
        self.pull(token.stream)

    def fed_items_taken(self, call: int, index: int, count: int) -> None:
        """A call has taken items that it was fed with."""
        fed = self._fed.get((call, index))
        if fed is not None:
            stream, taker = fed
            taker.taken(count)
            self.pull(stream)

    def call_over(self, call: int, transition: WiredTransition) -> None:
        """A call has ended, whether or not it has taken all items: it wants no more."""
        for index in transition.stream_inputs:
            fed = self._fed.pop((call, index), None)
            if fed is not None and fed[1] in fed[0].takers:
                fed[0].takers.remove(fed[1])
                self.left(fed[0])


def takes_items(target: Target) -> bool:
    """Tell whether a token's target is something that takes a stream item by item."""
    transition, index, outer, gathered = target
    if outer is not None or gathered:
        return False
    if isinstance(transition.ir.action, Call):
        return index in transition.stream_inputs
    return isinstance(transition.ir.action, Loop | SendYield) and transition.streamable == index
