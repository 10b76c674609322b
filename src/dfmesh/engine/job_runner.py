"""JobRunner: the site. Hosts many jobs at once, and is the homesite of those that clients submit to it."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.call_log import CallLog, NoCallLog
from dfmesh.engine.calls import Calls
from dfmesh.engine.carrier import Carrier
from dfmesh.engine.discovery import SiteDiscovery
from dfmesh.engine.home_job import HomeJob, Send
from dfmesh.engine.job_controller import JobController, SiteServices
from dfmesh.engine.messages import (
    AddParameters,
    AdviceGiven,
    AnyMessage,
    AskSites,
    CancelJob,
    CloseParameters,
    Discover,
    EndJob,
    Failure,
    FailureReport,
    FrameReport,
    JobEnded,
    JobRefused,
    JobStarted,
    Progress,
    ReportProgress,
    SiteIdle,
    SiteLost,
    SiteReport,
    StartJob,
    SubmitJob,
    YieldPackage,
)
from dfmesh.engine.site_cache import SiteCache
from dfmesh.engine.site_loss import lost_failures
from dfmesh.engine.submission import read_nets
from dfmesh.engine.worker_threads import WorkerThreads
from dfmesh.errors import DfmeshError
from dfmesh.netir import NetIR

CLIENT_PREFIX = "client:"
"""How the names of peers begin that are clients."""

SUPERVISOR = "supervisor"
"""Name of the peer that starts and watches the sites of a target; the only one believed about lost sites."""

_FROM_CLIENTS = (SubmitJob, AddParameters, CloseParameters, CancelJob, ReportProgress)
_FOR_HOME = (YieldPackage, FrameReport, FailureReport, JobStarted, JobRefused, JobEnded, Progress, SiteIdle)

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
        """
        self.site = site
        self._homesite = homesite
        self._adapters = adapters
        self._carrier = carrier
        self._loop = asyncio.get_running_loop()
        self._threads = WorkerThreads(self._loop)
        self._services = SiteServices(
            carrier,
            call_log or NoCallLog(),
            SiteCache(adapters, self._threads),
            self._make_calls,
            self._loop.call_soon,
            self._gone_wrong,
            self._threads.lag,
        )
        self._discovery = SiteDiscovery(site, homesite, adapters, carrier)
        self._jobs: dict[str, JobController] = {}
        self._home_jobs: dict[str, HomeJob] = {}

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take in a message. A message that is out of place is dropped; nothing that a peer says raises here."""
        try:
            if isinstance(message, Discover | AskSites | AdviceGiven):
                self._discovery.receive(peer, message, is_client=peer.startswith(CLIENT_PREFIX))
            elif peer.startswith(CLIENT_PREFIX):
                self._from_client(peer, message)
            elif isinstance(message, SiteLost):
                if peer == SUPERVISOR:
                    self._site_lost(message)
            elif isinstance(message, _FOR_HOME):
                self._for_home(peer, message)
            elif isinstance(message, StartJob):
                self._start_job(peer, message)
            elif isinstance(message, EndJob):
                self._end_job(peer, message.job)
            else:
                controller = self._jobs.get(message.job)
                if controller is not None:
                    controller.receive(peer, message)
        except Exception as error:
            _log.exception("site %s: a message of kind %s from %s", self.site, type(message).__name__, peer)
            self._broken(message.job, error)
            if peer.startswith(CLIENT_PREFIX) and message.job not in self._home_jobs:
                self._refuse(message.job, [f"cannot be read: {type(error).__name__}: {error}"], peer)

    def client_lost(self, peer: str) -> None:
        """A client has gone: its jobs are cancelled."""
        self._discovery.client_lost(peer)
        for home in [home for home in self._home_jobs.values() if home.client == peer]:
            self._send(home, home.handle(peer, CancelJob(home.job, "the client is gone")))

    async def close(self) -> None:
        """Give up all jobs and let the worker threads go."""
        for controller in self._jobs.values():
            controller.close()
        self._jobs.clear()
        self._home_jobs.clear()
        self._discovery.close()
        self._threads.close()

    # As a site that takes part

    def _start_job(self, peer: str, message: StartJob) -> None:
        if peer != self._homesite or message.job in self._jobs:
            return
        try:
            net = NetIR.from_bytes(message.net)
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            self._refuse(message.job, [f"the net cannot be read: {error}"])
            return
        reasons = self._objections(net)
        if reasons:
            self._refuse(message.job, reasons)
            return
        try:
            controller = JobController(message.job, net, self._services)
        except DfmeshError as error:
            self._refuse(message.job, [str(error)])
            return
        self._jobs[message.job] = controller
        self._carrier.send(peer, JobStarted(message.job))

    def _make_calls(self, controller: JobController) -> Calls:
        return Calls(self._adapters, self._threads, controller)

    def _objections(self, net: NetIR) -> list[str]:
        if net.site != self.site or net.homesite != self._homesite:
            return [f"the net is for site {net.site!r} with homesite {net.homesite!r}"]
        return [
            f"does not offer {operation}" + (f" by provider {provider!r}" if provider else "")
            for operation, provider in net.operations()
            if not self._adapters.offers(operation, provider)
        ]

    def _refuse(self, job: str, reasons: list[str], peer: str = "") -> None:
        failures = tuple(Failure(self.site, "start", "", (), "", "JobRefused", reason) for reason in reasons)
        self._carrier.send(peer or self._homesite, JobRefused(job, failures))

    def _end_job(self, peer: str, job: str) -> None:
        if peer != self._homesite:
            return
        controller = self._jobs.pop(job, None)
        report = SiteReport(self.site, (), {})
        if controller is not None:
            controller.close()
            report = controller.report()
        self._carrier.send(peer, JobEnded(job, report))

    def _gone_wrong(self, job: str, error: Exception) -> None:
        _log.error("site %s: job %s", self.site, job, exc_info=error)
        self._broken(job, error)

    def _broken(self, job: str, error: Exception) -> None:
        """End a job that this site cannot go on with, rather than leave somebody waiting."""
        controller = self._jobs.pop(job, None)
        if controller is not None:
            controller.close()
        if job:
            self._refuse(job, [f"cannot go on: {type(error).__name__}: {error}"])

    # As a homesite

    def _from_client(self, peer: str, message: AnyMessage) -> None:
        if not isinstance(message, _FROM_CLIENTS):
            return
        if isinstance(message, SubmitJob):
            self._submit(peer, message)
            return
        home = self._home_jobs.get(message.job)
        if home is not None and home.client == peer:
            self._send(home, home.handle(peer, message))

    def _submit(self, peer: str, message: SubmitJob) -> None:
        problems: list[str] = []
        nets: dict[str, NetIR] = {}
        if message.job in self._home_jobs or not message.job:
            problems.append(f"the job id {message.job!r} is in use")
        else:
            nets, problems = read_nets(message.nets)
        if problems:
            failures = tuple(Failure(self.site, "submit", "", (), "", "JobRefused", problem) for problem in problems)
            self._carrier.send(peer, JobRefused(message.job, failures))
            return
        home = HomeJob(message.job, peer, nets, message.nets)
        self._home_jobs[message.job] = home
        self._send(home, home.start())

    def _for_home(self, peer: str, message: AnyMessage) -> None:
        home = self._home_jobs.get(message.job)
        if home is not None:
            self._send(home, home.handle(peer, message))

    def _send(self, home: HomeJob, sends: list[Send]) -> None:
        for peer, message in sends:
            home.count_sent(peer, self._carrier.send(peer, message))
        if home.over:
            self._home_jobs.pop(home.job, None)

    def _site_lost(self, message: SiteLost) -> None:
        self._discovery.site_lost(message.site, message.reason)
        if message.site == self._homesite:
            for controller in self._jobs.values():
                controller.close()
            self._jobs.clear()
            return
        for home in list(self._home_jobs.values()):
            self._send(home, home.site_lost(message.site, lost_failures(home.net(message.site), home.job, message)))
