"""What a site is made of on the simulator: a carrier that hands values over, and calls that take virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

from dfmesh import values
from dfmesh.engine.adapters import Adapter, AdapterKind, SiteAdapters, describe
from dfmesh.engine.call_plan import CallPlan
from dfmesh.engine.failed_iterations import with_failed_iteration
from dfmesh.engine.job_calls import JobCalls
from dfmesh.engine.live_input import StreamBrokenError
from dfmesh.engine.message_parts import Failure, Payload
from dfmesh.engine.messages import AnyMessage
from dfmesh.engine.tokens import StreamInput


class VirtualTime(Protocol):
    """What they need of the simulation."""

    def at(self, delay: float, action: Callable[[], None]) -> None:
        """Do something after a delay."""
        ...

    def delay(self) -> float:
        """Draw a delay."""
        ...

    def draw(self, count: int) -> int:
        """Draw a number below `count`."""
        ...

    def event_loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop on which coroutine adapters run, one at a time."""
        ...


class SimulatedCarrier:
    """Hands values over; refuses what a real carrier would refuse."""

    def __init__(self, site: str, deliver: Callable[[str, str, AnyMessage], None]) -> None:
        """Make the carrier of a site.

        Args:
            site: Its name.
            deliver: Takes source, destination and message.
        """
        self._site = site
        self._deliver = deliver

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        return Payload(values.normalise(value))

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        return values.private_copy(payload.data)

    def send(self, peer: str, message: AnyMessage) -> int:
        """As `Carrier.send`; the size is that of the value."""
        self._deliver(self._site, peer, message)
        payload = getattr(message, "payload", None)
        return 0 if payload is None or peer == self._site else values.size_of(payload.data)


class SimulatedCalls:
    """Makes calls take virtual time. Each runs in one go, when that time is over."""

    def __init__(self, simulation: VirtualTime, adapters: SiteAdapters, outcome: JobCalls) -> None:
        """Make the calls of one job at one site.

        Args:
            simulation: Whose time passes.
            adapters: What the site offers.
            outcome: Gets told what happens.
        """
        self._simulation = simulation
        self._adapters = adapters
        self._outcome = outcome
        self._streams: dict[int, Iterator[Any] | AsyncIterator[Any]] = {}
        self._fed: dict[int, dict[int, list[Any]]] = {}
        self._awaited: dict[int, set[int]] = {}
        self._ready: dict[int, Callable[[], None]] = {}
        self._broken: dict[int, dict[int, Failure]] = {}
        self._closed = False

    def start(self, call: int, plan: CallPlan, arguments: dict[str, Any], fed: tuple[int, ...] = ()) -> None:
        """As `Calls.start`."""
        if fed:
            self._fed[call] = {index: [] for index in fed}
            self._awaited[call] = set(fed)
            self._ready[call] = lambda: self._run_fed(call, plan, arguments)
        else:
            self._simulation.at(self._simulation.delay(), lambda: self._run(call, plan, arguments))

    def _run_fed(self, call: int, plan: CallPlan, arguments: dict[str, Any]) -> None:
        if self._closed:
            return
        fed = self._fed.pop(call)
        broken = self._broken.pop(call, {})
        adapter = self._adapters.find(plan.operation, plan.provider)
        ready = dict(arguments)
        for name, item in arguments.items():
            if type(item) is not StreamInput:
                continue
            failure = broken.get(item.index)
            if failure is not None and not adapter.streams_into(name):
                self._outcome.broken(call, failure, 0.0)
                return
            ready[name] = self._as_taken(adapter, name, fed[item.index], failure)
        self._run(call, plan, ready)

    def _as_taken(self, adapter: Adapter, parameter: str, items: list[Any], failure: Failure | None) -> Any:
        if not adapter.streams_into(parameter):
            return items
        asynchronous = adapter.kind in (AdapterKind.COROUTINE, AdapterKind.ASYNC_GENERATOR)
        return _async_iterator(items, failure) if asynchronous else _iterator(items, failure)

    def feed(self, call: int, index: int, value: Any) -> None:
        """As `Calls.feed`; a simulated adapter takes at once and runs when the stream has ended."""
        if call in self._fed:
            self._fed[call][index].append(value)
            self._simulation.at(self._simulation.delay(), lambda: self._taken(call, index))

    def _taken(self, call: int, index: int) -> None:
        if not self._closed:
            self._outcome.taken(call, index, 1)

    def feed_end(self, call: int, index: int, failure: Failure | None) -> None:
        """As `Calls.feed_end`."""
        awaited = self._awaited.get(call)
        if awaited is None:
            return
        awaited.discard(index)
        if failure is not None:
            self._broken.setdefault(call, {})[index] = failure
        if not awaited:
            del self._awaited[call]
            self._simulation.at(self._simulation.delay(), self._ready.pop(call))

    def start_all(self, first: int, plan: CallPlan, arguments: list[dict[str, Any]]) -> None:
        """As `Calls.start_all`; some of the calls end together."""
        waiting: list[tuple[int, dict[str, Any]]] = []
        for call, given in enumerate(arguments, first):
            waiting.append((call, given))
            if self._simulation.draw(3) == 0:
                self._start_alike(plan, waiting)
                waiting = []
        self._start_alike(plan, waiting)

    def _start_alike(self, plan: CallPlan, waiting: list[tuple[int, dict[str, Any]]]) -> None:
        self._simulation.at(self._simulation.delay(), lambda: self._run_all(plan, waiting))

    def _run_all(self, plan: CallPlan, waiting: list[tuple[int, dict[str, Any]]]) -> None:
        ended: list[tuple[int, Any]] = []
        for call, arguments in waiting:
            self._run(call, plan, arguments, lambda call, value: ended.append((call, value)))
        if ended and not self._closed:
            calls, given = zip(*ended, strict=True)
            following = range(calls[0], calls[-1] + 1)  # As a run of calls tells them, unless some have raised.
            told = following if len(following) == len(calls) else list(calls)
            self._outcome.all_returned(told, list(given), [0.0] * len(ended))

    def pull(self, call: int, count: int) -> None:
        """As `Calls.pull`; some of the items come together."""
        self._simulation.at(self._simulation.delay(), lambda: self._next(call, count))

    def drop(self, call: int) -> None:
        """As `Calls.drop`."""
        self._streams.pop(call, None)

    def flush_lines(self, *, unfinished: bool = True) -> None:
        """As `Calls.flush_lines`; what is printed here is nobody's."""

    def close(self) -> None:
        """As `Calls.close`."""
        self._closed = True

    def _run(
        self,
        call: int,
        plan: CallPlan,
        arguments: dict[str, Any],
        returned: Callable[[int, Any], None] | None = None,
    ) -> None:
        if self._closed:
            return
        attempt = 0
        while True:
            try:
                adapter = self._adapters.find(plan.operation, plan.provider)
                cell = [adapter.bind(arguments)()]
                if adapter.kind is AdapterKind.COROUTINE:
                    cell = [self._simulation.event_loop().run_until_complete(cell[0])]
                value = values.take_over(cell)
                break
            except BaseException as error:
                attempt += 1
                if isinstance(error, StreamBrokenError):
                    self._outcome.broken(call, error.failure, 0.0)
                    return
                if attempt > plan.retries:
                    raised = with_failed_iteration(describe(error, self._adapters.own_code), arguments)
                    raised = raised.after_calls(attempt)
                    self._outcome.raised(call, raised, 0.0)
                    return
        if isinstance(value, Iterator | AsyncIterator):
            self._streams[call] = value
            self._outcome.streams(call)
        elif returned is not None:
            returned(call, value)
        else:
            self._outcome.returned(call, value, 0.0)

    def _next(self, call: int, count: int) -> None:
        """Produce some of the items that were asked for, and the others later."""
        stream = self._streams.get(call)
        if self._closed or stream is None:  # Dropped meanwhile.
            return
        given: list[Any] = []
        ending: BaseException | None = None
        now = 1 + self._simulation.draw(count)
        try:
            while len(given) < now:
                given.append(values.take_over([self._item(stream)]))
        except BaseException as error:
            ending = error
        more = ending is not None or len(given) < count
        if given:
            self._outcome.items(call, given, 0.0, more=more)
        if self._closed or call not in self._streams:
            return
        if isinstance(ending, _Exhausted):
            self._outcome.exhausted(call)
        elif isinstance(ending, StreamBrokenError):
            self._outcome.broken(call, ending.failure, 0.0)
        elif ending is not None:
            self._outcome.raised(call, describe(ending, self._adapters.own_code), 0.0)
        elif more:
            self._simulation.at(self._simulation.delay(), lambda: self._next(call, count - len(given)))

    def _item(self, stream: Iterator[Any] | AsyncIterator[Any]) -> Any:
        if isinstance(stream, AsyncIterator):
            value = self._simulation.event_loop().run_until_complete(_next_of(stream, _END))
        else:
            value = next(stream, _END)
        if value is _END:
            raise _Exhausted
        return value


class _Exhausted(Exception):  # noqa: N818 - the end of a stream is no error
    pass


_END = object()


async def _next_of(stream: AsyncIterator[Any], end: Any) -> Any:
    return await anext(stream, end)


def _iterator(items: list[Any], failure: Failure | None) -> Iterator[Any]:
    yield from items
    if failure is not None:
        raise StreamBrokenError(failure)


async def _async_iterator(items: list[Any], failure: Failure | None) -> AsyncIterator[Any]:
    for item in items:
        yield item
    if failure is not None:
        raise StreamBrokenError(failure)
