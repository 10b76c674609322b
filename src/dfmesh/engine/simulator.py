"""A whole federation on a virtual clock, with seeded delays: any order of events is a seed that can be run again.

The simulator runs the same HomeJob, JobController and NetRunner as a real site; only the carrier, the calls and the
clock are its own. Messages between two peers keep their order; everything else is shuffled by the delays.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from dfmesh import values
from dfmesh.engine.adapters import Adapter, AdapterKind, SiteAdapters, describe
from dfmesh.engine.call_log import NoCallLog
from dfmesh.engine.calls import CallPlan
from dfmesh.engine.home_job import HomeJob
from dfmesh.engine.job_controller import JobController, SiteServices
from dfmesh.engine.live_input import StreamBrokenError
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    CloseParameters,
    EndJob,
    Failure,
    JobEnded,
    JobFinished,
    JobRefused,
    JobStarted,
    Payload,
    StartJob,
)
from dfmesh.engine.site_cache import Cache, MemoryCache
from dfmesh.engine.tokens import StreamInput
from dfmesh.errors import DfmeshError
from dfmesh.netir import NetIR

CLIENT = "client:simulated"

JOB = "simulated"


class SimulationStuckError(DfmeshError):
    """Nothing is left to happen and the job is not over: a fault of the engine."""


class Simulation:
    """One job of one federation, on a virtual clock.

    Attributes:
        now: Virtual time in seconds.
        to_client: Messages that the client has got, in order.
        messages: Messages sent between sites.
    """

    def __init__(
        self,
        nets: Mapping[str, NetIR],
        adapters: Mapping[str, SiteAdapters],
        homesite: str,
        seed: int,
        caches: Mapping[str, Cache] | None = None,
    ) -> None:
        """Prepare a job.

        Args:
            nets: Nets by site.
            adapters: What each site offers.
            homesite: Where the client attaches.
            seed: Decides all delays.
            caches: Caches by site, to keep them over several runs; new ones by default.
        """
        self._caches: dict[str, Cache] = dict(caches or {})
        self.now = 0.0
        self.to_client: list[AnyMessage] = []
        self.messages = 0
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._latest: dict[tuple[str, str], float] = {}
        self._homesite = homesite
        self._adapters = adapters
        self._loop: asyncio.AbstractEventLoop | None = None
        self._home = HomeJob(JOB, CLIENT, nets, {site: net.to_bytes() for site, net in nets.items()})
        self._controllers: dict[str, JobController] = {}

    def run(self, parameter_sets: list[dict[str, Any]]) -> JobFinished | JobRefused:
        """Run the job to its end.

        Args:
            parameter_sets: Checked and complete.

        Raises:
            SimulationStuckError: the job does not end.
        """
        for peer, message in self._home.start():
            self.send(self._homesite, peer, message)
        for index, parameters in enumerate(parameter_sets):
            payloads = {name: Payload(values.normalise(value)) for name, value in parameters.items()}
            self.send(CLIENT, self._homesite, AddParameters(JOB, (index,), payloads))
        self.send(CLIENT, self._homesite, CloseParameters(JOB))
        try:
            while self._agenda:
                self.now, _, action = heapq.heappop(self._agenda)
                action()
        finally:
            if self._loop is not None:
                self._loop.close()
        if not self.to_client or not isinstance(self.to_client[-1], JobFinished | JobRefused):
            raise SimulationStuckError(f"the job is {self._home.status} and nothing is left to happen")
        return self.to_client[-1]

    def at(self, delay: float, action: Callable[[], None]) -> None:
        """Do something after a delay."""
        self._scheduled += 1
        heapq.heappush(self._agenda, (self.now + delay, self._scheduled, action))

    def delay(self) -> float:
        """Draw a delay: mostly short, sometimes long, so that every order of events comes up."""
        return self._random.choice((0.0, 1.0, 1.0, 10.0)) * self._random.random()

    def send(self, source: str, destination: str, message: AnyMessage) -> None:
        """Deliver a message after a delay, behind those sent before it to the same peer."""
        self.messages += 1
        arrival = self.now + (self.delay() if source != destination else 0.0)
        arrival = max(arrival, self._latest.get((source, destination), 0.0))
        self._latest[source, destination] = arrival
        self.at(arrival - self.now, lambda: self._deliver(source, destination, message))

    def _deliver(self, source: str, destination: str, message: AnyMessage) -> None:
        if destination == CLIENT:
            self.to_client.append(message)
        elif isinstance(message, StartJob):
            self._start(destination, message)
        elif isinstance(message, EndJob):
            self._end(destination)
        elif destination == self._homesite and (controller := self._controllers.get(destination)):
            controller.receive(source, message)
            self._for_home(source, message)
        elif destination == self._homesite:
            self._for_home(source, message)
        elif controller := self._controllers.get(destination):
            controller.receive(source, message)

    def _for_home(self, source: str, message: AnyMessage) -> None:
        for peer, answer in self._home.handle(source, message):
            self.send(self._homesite, peer, answer)

    def _start(self, site: str, message: StartJob) -> None:
        carrier = SimulatedCarrier(self, site)

        def make_calls(controller: JobController) -> Any:
            return SimulatedCalls(self, self._adapters[site], controller)

        def soon(action: Callable[[], None]) -> None:
            self.at(0.0, action)

        net = NetIR.from_bytes(message.net)
        cache = self._caches.setdefault(site, MemoryCache())
        self._controllers[site] = JobController(JOB, net, SiteServices(carrier, NoCallLog(), cache, make_calls, soon))
        self.send(site, self._homesite, JobStarted(JOB))

    def _end(self, site: str) -> None:
        controller = self._controllers.pop(site)
        controller.close()
        self.send(site, self._homesite, JobEnded(JOB, controller.report()))

    def event_loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop on which coroutine adapters run, one at a time."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop


class SimulatedCarrier:
    """Hands values over; refuses what a real carrier would refuse."""

    def __init__(self, simulation: Simulation, site: str) -> None:
        self._simulation = simulation
        self._site = site

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        return Payload(values.normalise(value))

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        return values.private_copy(payload.data)

    def send(self, peer: str, message: AnyMessage) -> int:
        """As `Carrier.send`; the size is that of the value."""
        self._simulation.send(self._site, peer, message)
        payload = getattr(message, "payload", None)
        return 0 if payload is None or peer == self._site else values.size_of(payload.data)


class SimulatedCalls:
    """Makes calls take virtual time. Each runs in one go, when that time is over."""

    def __init__(self, simulation: Simulation, adapters: SiteAdapters, controller: JobController) -> None:
        self._simulation = simulation
        self._adapters = adapters
        self._controller = controller
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
                self._controller.broken(call, failure, 0.0)
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
            self._controller.taken(call, index, 1)

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

    def pull(self, call: int) -> None:
        """As `Calls.pull`."""
        self._simulation.at(self._simulation.delay(), lambda: self._next(call))

    def drop(self, call: int) -> None:
        """As `Calls.drop`."""
        self._streams.pop(call, None)

    def close(self) -> None:
        """As `Calls.close`."""
        self._closed = True

    def _run(self, call: int, plan: CallPlan, arguments: dict[str, Any]) -> None:
        if self._closed:
            return
        attempt = 0
        while True:
            try:
                adapter = self._adapters.find(plan.operation, plan.provider)
                value = adapter.bind(arguments)()
                if adapter.kind is AdapterKind.COROUTINE:
                    value = self._simulation.event_loop().run_until_complete(value)
                break
            except BaseException as error:
                attempt += 1
                if isinstance(error, StreamBrokenError):
                    self._controller.broken(call, error.failure, 0.0)
                    return
                if attempt > plan.retries:
                    raised = describe(error, self._adapters.own_code)
                    self._controller.raised(call, raised, 0.0)
                    return
        if isinstance(value, Iterator | AsyncIterator):
            self._streams[call] = value
            self._controller.streams(call)
        else:
            self._controller.returned(call, value, 0.0)

    def _next(self, call: int) -> None:
        if self._closed:
            return
        end = object()
        stream = self._streams.get(call)
        if stream is None:  # Dropped meanwhile.
            return
        try:
            if isinstance(stream, AsyncIterator):
                value = self._simulation.event_loop().run_until_complete(_next_of(stream, end))
            else:
                value = next(stream, end)
        except StreamBrokenError as error:
            self._controller.broken(call, error.failure, 0.0)
            return
        except BaseException as error:
            raised = describe(error, self._adapters.own_code)
            self._controller.raised(call, raised, 0.0)
            return
        if value is end:
            self._controller.exhausted(call)
        else:
            self._controller.item(call, value, 0.0)


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
