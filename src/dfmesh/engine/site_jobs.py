"""SiteJobs: the jobs that a site takes part in, as their homesite starts, ends and begins them again."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dfmesh.engine.attempts import job_of, runs_once
from dfmesh.engine.job_controller import JobController, SiteServices
from dfmesh.engine.kept_calls import KeptCalls, OnceCalls
from dfmesh.engine.messages import AnyMessage, EndJob, Failure, JobEnded, JobRefused, JobStarted, SiteReport, StartJob
from dfmesh.errors import DfmeshError
from dfmesh.netir import NetIR


class SiteJobs:
    """All attempts of jobs that go on at one site. A pure state machine, as far as its services are.

    Attributes:
        controllers: What runs, by attempt.
    """

    def __init__(
        self, site: str, homesite: str, services: SiteServices, objections: Callable[[NetIR], list[str]]
    ) -> None:
        """Begin with none.

        Args:
            site: Name of the site.
            homesite: Site whose jobs it takes part in.
            services: What it has for its jobs.
            objections: Says why it will not run a net.
        """
        self.controllers: dict[str, JobController] = {}
        self._site = site
        self._homesite = homesite
        self._objections = objections
        self._services = services
        self._leaving: dict[str, JobController] = {}
        self._kept: dict[str, KeptCalls] = {}

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take in a message about a job from another site. One about a job that is not there is dropped."""
        controller = self.controllers.get(message.job)
        if controller is not None:
            controller.receive(peer, message)

    def start(self, peer: str, message: StartJob) -> None:
        """Get ready for an attempt, and say so or why not."""
        if peer != self._homesite or message.job in self.controllers:
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
            once = self._once_calls(message.job, net) if message.resumable else None
            controller = JobController(message.job, net, self._services, once)
        except DfmeshError as error:
            self._refuse(message.job, [str(error)])
            return
        self.controllers[message.job] = controller
        self._services.carrier.send(peer, JobStarted(message.job))

    def _once_calls(self, attempt: str, net: NetIR) -> OnceCalls | None:
        if not any(runs_once(transition) for transition in net.transitions):
            return None
        kept = self._kept.setdefault(job_of(attempt), KeptCalls())
        return OnceCalls(self._site, net.transitions, kept)

    def end(self, peer: str, message: EndJob) -> None:
        """End an attempt, and say so with its report."""
        if peer != self._homesite:
            return
        attempt = message.job
        controller = self.controllers.pop(attempt, None)
        if controller is not None and message.again:
            self._leaving[attempt] = controller
            controller.leave(lambda: self._left(attempt))
            return
        controller = controller or self._leaving.pop(attempt, None)
        if not message.again:
            self._kept.pop(job_of(attempt), None)
        report = SiteReport(self._site, (), {})
        if controller is not None:
            controller.close()
            report = controller.report()
        self._services.carrier.send(peer, JobEnded(attempt, report))

    def _left(self, attempt: str) -> None:
        controller = self._leaving.pop(attempt, None)
        if controller is not None:
            controller.close()
            ended = JobEnded(attempt, controller.report(), controller.unrepeatable)
            self._services.carrier.send(self._homesite, ended)

    def broken(self, attempt: str, error: Exception) -> None:
        """End a job that this site cannot go on with, rather than leave somebody waiting."""
        controller = self.controllers.pop(attempt, None) or self._leaving.pop(attempt, None)
        if controller is not None:
            controller.close()
        if attempt:
            self._refuse(attempt, [f"cannot go on: {type(error).__name__}: {error}"])

    def _refuse(self, attempt: str, reasons: list[str]) -> None:
        failures = tuple(Failure(self._site, "start", "", (), "", "JobRefused", reason) for reason in reasons)
        self._services.carrier.send(self._homesite, JobRefused(attempt, failures))

    def close(self) -> None:
        """Give up all jobs: the homesite is gone, or the site itself ends."""
        for controller in [*self.controllers.values(), *self._leaving.values()]:
            controller.close()
        self.controllers.clear()
        self._leaving.clear()
        self._kept.clear()
