"""JobRunner: the site. Hosts many jobs at once, and is the homesite of those that clients submit to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.admission import objections
from dfmesh.engine.answer_watch import ANSWER_SECONDS, ANSWER_SECONDS_VARIABLE, seconds_in
from dfmesh.engine.call_limits import CallLimits
from dfmesh.engine.call_log import CallLog, NoCallLog
from dfmesh.engine.calls import Calls
from dfmesh.engine.carrier import Carrier
from dfmesh.engine.held_messages import Operations
from dfmesh.engine.home_jobs import HomeJobs
from dfmesh.engine.job_calls import JobCalls
from dfmesh.engine.job_controller import SiteServices
from dfmesh.engine.messages import (
    AddParameters,
    AdviceGiven,
    AnyMessage,
    AskSites,
    CancelJob,
    CloseParameters,
    Discover,
    EndJob,
    FailureReport,
    FrameReport,
    JobEnded,
    JobLines,
    JobRefused,
    JobStarted,
    Progress,
    ReportProgress,
    SiteIdle,
    SiteLost,
    StartJob,
    SubmitJob,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.residency import bound_values
from dfmesh.engine.site_cache import SiteCache
from dfmesh.engine.site_jobs import SiteJobs
from dfmesh.engine.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from dfmesh.engine.discovery import SiteDiscovery
    from dfmesh.engine.isolation import WorkerProcesses

CLIENT_PREFIX = "client:"
"""How the names of peers begin that are clients."""

SUPERVISOR = "supervisor"
"""Name of the peer that starts and watches the sites of a target; the only one believed about lost sites."""

CANCEL_SECONDS = 1.5
"""Time that the sites of a cancelled job have to answer, before it ends without them."""

_DISCOVERY = frozenset({Discover, AskSites, AdviceGiven})
_FROM_CLIENTS = frozenset({SubmitJob, AddParameters, CloseParameters, CancelJob, ReportProgress})
_FOR_HOME = frozenset(
    {
        YieldPackage,
        YieldPackages,
        FrameReport,
        FailureReport,
        JobStarted,
        JobRefused,
        JobEnded,
        JobLines,
        Progress,
        SiteIdle,
    }
)

_log = logging.getLogger("dfmesh.engine")


class JobRunner:
    """A site of a federation.

    Attributes:
        site: Its name.
    """

    def __init__(
        self, site: str, homesite: str, adapters: SiteAdapters, carrier: Carrier, call_log: CallLog | None = None
    ) -> None:
        """Make a site; to be called on its event loop.

        Args:
            site: Its name.
            homesite: Site whose jobs it takes part in.
            adapters: What it offers.
            carrier: Its end of the carrier.
            call_log: Notes the calls that go on; None where sites cannot die alone.

        Raises:
            SessionError: DFMESH_ANSWER_SECONDS is no number of seconds.
        """
        self.site = site
        self._homesite = homesite
        self._adapters = adapters
        self._carrier = carrier
        self._loop = asyncio.get_running_loop()
        self._threads = WorkerThreads(self._loop, f"site {site!r}")
        self._limits = CallLimits(adapters.capacity)
        # Made, and their modules loaded, when they are needed: most sites never do.
        self._processes: WorkerProcesses | None = None
        self._discovery: SiteDiscovery | None = None
        self._services = SiteServices(
            carrier,
            call_log or NoCallLog(),
            SiteCache(adapters, self._threads),
            self._make_calls,
            self._loop.call_soon,
            self._gone_wrong,
            self._threads.lag,
            self._loop.call_later,
            bound_values=lambda net: bound_values(net, adapters),
            load=self._load_modules,
        )
        self._site_jobs = SiteJobs(
            site, homesite, self._services, lambda net: objections(net, site, homesite, adapters)
        )
        answer_seconds = seconds_in(ANSWER_SECONDS_VARIABLE, ANSWER_SECONDS)
        self._home_jobs = HomeJobs(site, carrier, self._loop.call_later, answer_seconds)

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take in a message. A message that is out of place is dropped; nothing that a peer says raises here."""
        try:
            kind = type(message)
            if kind in _DISCOVERY:
                self._site_discovery().receive(peer, message, is_client=peer.startswith(CLIENT_PREFIX))
            elif peer.startswith(CLIENT_PREFIX):
                if kind in _FROM_CLIENTS:
                    self._home_jobs.from_client(peer, message)
                if isinstance(message, CancelJob) and message.job in self._home_jobs.jobs:
                    # A site may hang in the code of an adapter that does not let go of the interpreter.
                    self._loop.call_later(CANCEL_SECONDS, self._home_jobs.end_without_answers, message.job)
            elif isinstance(message, SiteLost):
                if peer == SUPERVISOR:
                    self._site_lost(message)
            elif kind in _FOR_HOME:
                self._home_jobs.from_site(peer, message)
            elif isinstance(message, StartJob):
                self._site_jobs.start(peer, message)
            elif isinstance(message, EndJob):
                self._site_jobs.end(peer, message)
            else:
                self._site_jobs.receive(peer, message)
        except Exception as error:
            _log.exception("site %s: a message of kind %s from %s", self.site, type(message).__name__, peer)
            self._site_jobs.broken(message.job, error)
            if peer.startswith(CLIENT_PREFIX) and message.job not in self._home_jobs.jobs:
                self._home_jobs.refuse(message.job, [f"cannot be read: {type(error).__name__}: {error}"], peer)

    def client_lost(self, peer: str) -> None:
        """A client has gone: its jobs are cancelled."""
        if self._discovery is not None:
            self._discovery.client_lost(peer)
        self._home_jobs.client_lost(peer)

    async def close(self) -> None:
        """Give up all jobs and let the worker threads go."""
        self._site_jobs.close()
        self._home_jobs.close()
        if self._discovery is not None:
            self._discovery.close()
        self._threads.close()
        if self._processes is not None:
            await self._processes.close()

    def _make_calls(self, outcome: JobCalls) -> Calls:
        return Calls(self._adapters, self._threads, outcome, self._worker_processes, self._limits)

    def _load_modules(self, operations: Operations, loaded: Callable[[], None]) -> None:
        named = list(operations)
        self._threads.submit(lambda: self._adapters.import_modules(named), lambda *_: loaded())

    def _worker_processes(self) -> WorkerProcesses:
        if self._processes is None:
            from dfmesh.engine.isolation import WorkerProcesses

            self._processes = WorkerProcesses(self._adapters, self._threads)
        return self._processes

    def _site_discovery(self) -> SiteDiscovery:
        if self._discovery is None:
            from dfmesh.engine.discovery import SiteDiscovery

            self._discovery = SiteDiscovery(self.site, self._homesite, self._adapters, self._carrier)
        return self._discovery

    def _gone_wrong(self, job: str, error: Exception) -> None:
        _log.error("site %s: job %s", self.site, job, exc_info=error)
        self._site_jobs.broken(job, error)

    def _site_lost(self, message: SiteLost) -> None:
        if self._discovery is not None:
            self._discovery.site_lost(message.site, message.reason)
        if message.site == self._homesite:
            self._site_jobs.close()
        else:
            self._home_jobs.site_lost(message)
