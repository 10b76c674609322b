"""SiteJobs: the jobs that a site takes part in, as their homesite starts, ends and begins them again."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dfmesh.engine.attempts import job_of, runs_once
from dfmesh.engine.held_messages import HeldMessages
from dfmesh.engine.job_controller import JobController, SiteServices
from dfmesh.engine.kept_calls import KeptCalls, OnceCalls
from dfmesh.engine.message_parts import Failure, SiteReport
from dfmesh.engine.messages import AnyMessage, EndJob, JobEnded, JobRefused, JobStarted, StartJob
from dfmesh.engine.prepared_nets import PreparedNets
from dfmesh.errors import DfmeshError, UnknownClassError
from dfmesh.netir import NetIR

PATIENCE = 0.01
"""Seconds after which a job is long enough to say that it has started, where no other site waits for that."""


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
            objections: Says why it will not run a net; always the same of the same one.
        """
        self.controllers: dict[str, JobController] = {}
        self._site = site
        self._homesite = homesite
        self._nets = PreparedNets(objections, services.bound_values)
        self._services = services
        self._leaving: dict[str, JobController] = {}
        self._kept: dict[str, KeptCalls] = {}
        self._held = HeldMessages(services.load)
        self._untold: list[str] = []  # Attempts that may be over before they have to say that they have started.

    def receive(self, peer: str, message: AnyMessage) -> None:
        """Take in a message about a job from another site. One about a job that is not there is dropped."""
        if self._held.hold_behind(peer, message):
            return
        controller = self.controllers.get(message.job)
        if controller is None:
            return
        try:
            controller.receive(peer, message)
        except UnknownClassError:
            controller.knows_all()
            if not self._held.hold(peer, message, controller.prepared.net.operations(), self._deliver):
                controller.receive(peer, message)

    def _deliver(self, peer: str, message: AnyMessage) -> None:
        """Take in a message that was held."""
        try:
            if isinstance(message, StartJob):
                self.start(peer, message)
            else:
                self.receive(peer, message)
        except Exception as error:  # Where nobody else would end the job.
            if self._services.broken is None:
                raise
            self._services.broken(message.job, error)

    def start(self, peer: str, message: StartJob) -> None:
        """Get ready for an attempt, and say so or why not."""
        if peer != self._homesite or message.job in self.controllers:
            return
        try:
            prepared, reasons = self._nets.take(message.net)
        except UnknownClassError as error:
            operations = NetIR.from_bytes(message.net).operations()
            if self._held.hold(peer, message, operations, self._deliver):
                return
            prepared, reasons = None, [str(error.at(f"at site {self._site!r}"))]
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            prepared, reasons = None, [f"the net cannot be read: {error}"]
        except DfmeshError as error:
            prepared, reasons = None, [str(error)]
        if prepared is None:
            self._refuse(message.job, reasons)
            return
        once = self._once_calls(message.job, prepared.net) if message.resumable else None
        controller = JobController(message.job, prepared, self._services, once)
        self.controllers[message.job] = controller
        if message.alone and not message.resumable:
            controller.on_last = lambda: self._forget(message.job)
        if message.alone and self._services.later is not None:
            if not self._untold:
                self._services.later(PATIENCE, self._tell_started)
            self._untold.append(message.job)
        else:
            self._services.carrier.send(peer, JobStarted(message.job, patient=message.alone))
        if message.opening is not None:
            self.receive(peer, message.opening)

    def _tell_started(self) -> None:
        """Say so for all that have begun since the first of them, if they go on."""
        untold, self._untold = self._untold, []
        for attempt in untold:
            controller = self.controllers.get(attempt)
            if controller is not None and not controller.told_last:
                self._services.carrier.send(self._homesite, JobStarted(attempt))

    def _once_calls(self, attempt: str, net: NetIR) -> OnceCalls | None:
        if not any(runs_once(transition) for transition in net.transitions):
            return None
        kept = self._kept.setdefault(job_of(attempt), KeptCalls())
        return OnceCalls(self._site, net.transitions, kept)

    def end(self, peer: str, message: EndJob) -> None:
        """End an attempt, and say so with its report, unless its last report is known."""
        if peer != self._homesite:
            return
        attempt = message.job
        self._held.drop(attempt)
        controller = self.controllers.pop(attempt, None)
        if controller is not None and message.again:
            self._leaving[attempt] = controller
            controller.leave(lambda: self._left(attempt))
            return
        controller = controller or self._leaving.pop(attempt, None)
        if not message.again:
            self._kept.pop(job_of(attempt), None)
        report = SiteReport(self._site, (), {})
        if message.patient:
            if controller is not None:  # The next job, which may have come with this message, goes first.
                self._services.soon(lambda: self._clear(controller))
            return
        if controller is not None:
            self._clear(controller)
            report = controller.report()
        self._services.carrier.send(peer, JobEnded(attempt, report))

    def _forget(self, attempt: str) -> None:
        controller = self.controllers.pop(attempt, None)
        if controller is not None:
            self._clear(controller)
            self._held.drop(attempt)

    def _clear(self, controller: JobController) -> None:
        controller.close()
        if controller.leaves_nothing:
            self._nets.give_back(controller.prepared)

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
            texts = None if controller is None else controller.prepared.runner.wired.texts
            said = f"{type(error).__name__}: {error}" if texts is None else texts.of_job(error)
            self._refuse(attempt, [f"cannot go on: {said}"])

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
        self._held.close()
