"""A whole federation on a virtual clock, with seeded delays: any order of events is a seed that can be run again.

The simulator runs the same HomeJob, JobController and NetRunner as a real site; only the carrier, the calls and the
clock are its own. Messages between two peers keep their order; everything else is shuffled by the delays. Sites may
die and live again, links may be slow, the client may cancel or go.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from dfmesh import values
from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.call_log import NoCallLog
from dfmesh.engine.home_job import HomeJob
from dfmesh.engine.home_jobs import HomeJobs
from dfmesh.engine.job_calls import JobCalls
from dfmesh.engine.job_controller import SiteServices
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    CancelJob,
    CloseParameters,
    EndJob,
    JobFinished,
    JobRefused,
    SiteLost,
    StartJob,
    SubmitJob,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.simulated_network import SimulatedNetwork
from dfmesh.engine.simulated_site import SimulatedCalls, SimulatedCarrier
from dfmesh.engine.site_cache import Cache, MemoryCache
from dfmesh.engine.site_jobs import SiteJobs
from dfmesh.engine.submitted_job import SubmittedJob
from dfmesh.errors import DfmeshError
from dfmesh.netir import NetIR

CLIENT = "client:simulated"

JOB = "simulated"


class SimulationStuckError(DfmeshError):
    """Nothing is left to happen and the job is not over: a fault of the engine."""


@dataclass(eq=False, slots=True)
class _Loss:
    """A death that not all sites have noted yet.

    Attributes:
        site: Who died.
        life: Which life of it.
        home_life: Which life of the homesite it was; a later one is not told.
        waiting: Who has not noted it yet.
    """

    site: str
    life: int
    home_life: int
    waiting: set[str]


class Simulation:
    """One job of one federation, on a virtual clock.

    Attributes:
        now: Virtual time in seconds.
        to_client: Messages that the client has taken in, in order.
        messages: Messages sent between sites.
        submitted: The job as its client sees it.
        sites: What each site that lives does.
        slow: Source and destination to how much longer messages take there.
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
        self.now = 0.0
        self.to_client: list[AnyMessage] = []
        self.messages = 0
        self.slow: dict[tuple[str, str], float] = {}
        self._caches: dict[str, Cache] = dict(caches or {})
        self._random = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._whole = bool(seed % 2)  # Whether a job of one parameter set is submitted in one go.
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._latest: dict[tuple[str, str], float] = {}
        self._homesite = homesite
        self._nets = nets
        self._adapters = adapters
        self._loop: asyncio.AbstractEventLoop | None = None
        encoded = {site: net.to_bytes() for site, net in nets.items()}
        self._submit = SubmitJob(JOB, "", encoded)
        self.submitted = SubmittedJob(self._submit, nets)
        self._network = SimulatedNetwork([CLIENT, homesite, *nets], self._deliver_letter)
        self._losses: list[_Loss] = []
        self.sites = {site: self._make_site(site) for site in dict.fromkeys([homesite, *nets])}
        self._home = HomeJobs(homesite, SimulatedCarrier(homesite, self.send))

    def run(self, parameter_sets: list[dict[str, Any]]) -> JobFinished | JobRefused:
        """Run the job to its end.

        Args:
            parameter_sets: Checked and complete.

        Raises:
            SimulationStuckError: the job does not end.
        """
        adds = [
            AddParameters(JOB, (index,), {name: Payload(values.normalise(value)) for name, value in given.items()})
            for index, given in enumerate(parameter_sets)
        ]
        if len(adds) == 1 and self._whole:
            opening = msgspec.structs.replace(adds[0], last=True)
            submit = msgspec.structs.replace(self._submit, opening=opening)
            self.submitted = SubmittedJob(submit, self._nets)
            self._begin(submit)
        else:
            self._begin(self._submit)
            for add in adds:
                self._from_client(add)
            self._from_client(CloseParameters(JOB))
        try:
            while self._agenda:
                self.now, _, action = heapq.heappop(self._agenda)
                action()
        finally:
            if self._loop is not None:
                self._loop.close()
        if not self.to_client or not isinstance(self.to_client[-1], JobFinished | JobRefused):
            raise SimulationStuckError(f"the job is {self.status} and nothing is left to happen")
        return self.to_client[-1]

    @property
    def status(self) -> str:
        """How the job stands at its homesite."""
        home = self._home.jobs.get(JOB)
        return "unknown to its homesite" if home is None else home.status

    # Time

    def at(self, delay: float, action: Callable[[], None]) -> None:
        """Do something after a delay."""
        self._schedule(self.now + delay, action)

    def _schedule(self, when: float, action: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._agenda, (when, self._scheduled, action))

    def delay(self) -> float:
        """Draw a delay: mostly short, sometimes long, so that every order of events comes up."""
        return self._random.choice((0.0, 1.0, 1.0, 10.0)) * self._random.random()

    def draw(self, count: int) -> int:
        """Draw a number below `count`."""
        return self._random.randrange(count)

    def event_loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop on which coroutine adapters run, one at a time."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop

    # Messages

    def send(self, source: str, destination: str, message: AnyMessage) -> None:
        """Deliver a message after a delay, behind those sent before it to the same peer."""
        self.messages += 1
        taken = self.delay() * self.slow.get((source, destination), 1.0) if source != destination else 0.0
        arrival = max(self.now + taken, self._latest.get((source, destination), 0.0))
        self._latest[source, destination] = arrival
        letter = self._network.letter(source, destination, message)
        # Not as a delay: rounding could let a message overtake another one that arrives at the same time.
        self._schedule(arrival, lambda: self._network.arrived(letter))

    def _deliver_letter(self, source: str, destination: str, message: AnyMessage) -> None:
        self._deliver(source, destination, message)

    def _deliver(self, source: str, destination: str, message: AnyMessage) -> None:
        if destination == CLIENT:
            self._to_client(message)
            return
        if destination == self._homesite:
            if source == CLIENT:
                self._begin(message) if isinstance(message, SubmitJob) else self._home.from_client(source, message)
                return
            self._for_home(source, message)
        site = self.sites[destination]
        if isinstance(message, StartJob):
            site.start(source, message)
            self._started(destination, message.job)
        elif isinstance(message, EndJob):
            self._ending(destination, message)
            site.end(source, message)
        else:
            site.receive(source, message)

    def _for_home(self, source: str, message: AnyMessage) -> None:
        if not isinstance(message, StartJob | EndJob):
            self._home.from_site(source, message)

    def _started(self, site: str, attempt: str) -> None:
        """An attempt has started at a site."""

    def _ending(self, site: str, message: EndJob) -> None:
        """An attempt is about to end at a site."""

    # The client

    def _begin(self, submit: SubmitJob) -> None:
        self._home.begin(HomeJob(JOB, CLIENT, self._nets, submit.nets, submit.submission), submit.opening)

    def _from_client(self, message: AnyMessage) -> None:
        self.submitted.sent(message)
        self.send(CLIENT, self._homesite, message)

    def _to_client(self, message: AnyMessage) -> None:
        taken = self.submitted.received(message)
        if taken is not None:
            self.to_client += _one_by_one(taken)

    def cancel(self, when: float) -> None:
        """Let the client cancel the job."""
        self.at(when, lambda: self._from_client(CancelJob(JOB, "enough")))

    def leave(self, when: float) -> None:
        """Let the client go."""
        self.at(when, lambda: self._home.client_lost(CLIENT))

    # Sites

    def _make_site(self, site: str) -> SiteJobs:
        return SiteJobs(site, self._homesite, self._services(site), lambda _: [])

    def _services(self, site: str) -> SiteServices:
        """Make what a site has for its jobs."""

        def make_calls(outcome: JobCalls) -> Any:
            return SimulatedCalls(self, self._adapters[site], outcome)

        def soon(action: Callable[[], None]) -> None:
            self.at(0.0, action)

        def later(_seconds: float, action: Callable[[], None]) -> None:
            self.at(self.delay(), action)  # Whatever comes first then is what might.

        cache = self._caches.setdefault(site, MemoryCache())
        carrier = SimulatedCarrier(site, self.send)
        return SiteServices(carrier, NoCallLog(), cache, make_calls, soon, later=later, now=lambda: self.now)

    def kill(self, site: str, when: float, back_after: float | None = 2.0) -> None:
        """Let a site die; the others hear of it a little later, the homesite after them.

        Args:
            site: Which; nothing happens if it is dead.
            when: Virtual time.
            back_after: Seconds after which it is started again; None for never.
        """
        self.at(when, lambda: self._die(site, back_after))

    def _die(self, site: str, back_after: float | None) -> None:
        if site not in self._network.alive:
            return
        self._network.die(site)
        self.sites.pop(site).close()
        for earlier in list(self._losses):
            self._noted(earlier, site)
        home_life = self._network.life(self._homesite)
        waiting = {other for other in self.sites if other != self._homesite}
        loss = _Loss(site, self._network.life(site), home_life, waiting)
        self._losses.append(loss)
        if site != self._homesite:
            self._network.part(self._homesite, site)
        for other in sorted(waiting):
            self.at(self.delay(), partial(self._tell, loss, other))
        if site == self._homesite:
            self._home = HomeJobs(site, SimulatedCarrier(site, self.send))
            self.at(self.delay(), lambda: self._homesite_lost(loss.life))
        self._noted(loss, "")
        if back_after is not None:
            self.at(back_after, lambda: self._revive(site))

    def _revive(self, site: str) -> None:
        self.sites[site] = self._make_site(site)
        self._network.revive(site)

    def _tell(self, loss: _Loss, other: str) -> None:
        if other in loss.waiting:
            if self._network.is_news(other, loss.site, loss.life):
                if loss.site == self._homesite:
                    self.sites[other].close()
                self._network.note(other, loss.site, loss.life)
            self._noted(loss, other)

    def _noted(self, loss: _Loss, other: str) -> None:
        """A site has noted a loss, or died itself; the homesite hears of it when all have."""
        loss.waiting.discard(other)
        if not loss.waiting and loss in self._losses:
            self._losses.remove(loss)
            self._network.meet(self._homesite, loss.site, loss.life)
            self.at(self.delay(), lambda: self._tell_homesite(loss))

    def _tell_homesite(self, loss: _Loss) -> None:
        home, network = self._homesite, self._network
        if loss.site == home or home not in network.alive or network.life(home) != loss.home_life:
            return
        if network.is_news(home, loss.site, loss.life):
            network.note(home, loss.site, loss.life)
            self._home.site_lost(SiteLost("", loss.site, "killed", ()))

    def _homesite_lost(self, life: int) -> None:
        if not self._network.is_news(CLIENT, self._homesite, life):
            return
        self._network.note(CLIENT, self._homesite, life)
        if self.to_client and isinstance(self.to_client[-1], JobFinished | JobRefused):
            return
        resubmission = self.submitted.homesite_lost(SiteLost("", self._homesite, "killed", ()))
        for message in resubmission.send:
            self.send(CLIENT, self._homesite, message)
        self.to_client.append(resubmission.take_in)


__all__ = ["CLIENT", "JOB", "Simulation", "SimulationStuckError"]


def _one_by_one(message: AnyMessage) -> list[AnyMessage]:
    if not isinstance(message, YieldPackages):
        return [message]
    job, place, node, site = message.job, message.place, message.node, message.site
    found = enumerate(zip(message.frames, message.payload.data, strict=True))
    return [
        YieldPackage(job, place, frame, node, site, Payload(value))
        for position, (frame, value) in found
        if position not in message.left_out
    ]
