"""The jobs of a session: what comes for them, and what becomes of them when somebody is gone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import AnyMessage, CancelJob, JobFinished, SiteLost, SubmitJob
from dfmesh.engine.submitted_job import SubmittedJob
from dfmesh.session.connection import Connection
from dfmesh.session.cost_store import CostStore
from dfmesh.session.hosted_jobs import HostedJobs
from dfmesh.session.job_inbox import JobInbox, JobStatus
from dfmesh.session.measuring import Loaded, measure

if TYPE_CHECKING:
    from dfmesh.session.discovery import Inquiry

_log = logging.getLogger("dfmesh.session")


class SessionJobs:
    """The jobs that a session has submitted, and its inquiries. Called on the client's event loop, except as noted."""

    def __init__(self, connection: Connection, hosted: HostedJobs, costs: CostStore | None) -> None:
        """Begin with none.

        Args:
            connection: With the homesite.
            hosted: Jobs that were attached to, which end with the connection too.
            costs: Learns from jobs; None if nobody does.
        """
        self._connection = connection
        self._hosted = hosted
        self._costs = costs
        self._loaded: Loaded = set()
        self._jobs: dict[str, JobInbox] = {}
        self._inquiries: dict[str, Inquiry] = {}

    def add(self, inbox: JobInbox) -> None:
        """Take a job that is about to be submitted; from any thread."""
        self._jobs[inbox.job] = inbox

    def end_if_late(self) -> None:
        """End what was added after the end of the session, or of its host; from any thread."""
        if self._connection.state == "closed":
            self._connection.call_soon(self.give_up)
        elif self._connection.gone:
            self._connection.call_soon(partial(self._host_lost, self._connection.gone))

    @contextmanager
    def asking(self, inquiry: Inquiry) -> Iterator[None]:
        """Have answers to an inquiry handed to it, as long as this context is open; from any thread."""
        self._inquiries[inquiry.id] = inquiry
        try:
            yield
        finally:
            del self._inquiries[inquiry.id]

    # What is said

    def sending(self, message: AnyMessage) -> None:
        """Note what is sent to the homesite, so that it can be sent again to its next life."""
        job = self._jobs.get(message.job)
        if job is None or self._connection.hosting is not None:
            return
        if job.submitted is not None:
            job.submitted.sent(message)
        elif isinstance(message, SubmitJob):
            job.submitted = SubmittedJob(message, job.plan.compiled.nets)

    def receive(self, message: AnyMessage) -> None:
        """Take in a message of the homesite."""
        job = self._jobs.get(message.job)
        if job is None:
            inquiry = self._inquiries.get(message.job)
            if inquiry is not None:
                inquiry.receive(message)
            return
        submitted = job.submitted
        taken = message if submitted is None or not submitted.resumable else submitted.received(message)
        if taken is not None:
            self._take_in(job, taken)

    def _take_in(self, job: JobInbox, message: AnyMessage) -> None:
        if self._costs is not None and type(message) is JobFinished:
            self._measure(self._costs, job, message)
        job.receive(message)
        if job.over:
            job.submitted = None
            self._jobs.pop(job.job, None)

    def _measure(self, costs: CostStore, job: JobInbox, message: JobFinished) -> None:
        """Learn from a job, before whoever waits for it goes on."""
        if message.status != JobStatus.FINISHED.value or job.restarts:
            return  # Of a job that was begun again the reports tell a part only.
        try:
            costs.add(measure(job.plan.compiled, message.reports, self._loaded))
        except Exception:  # What sites report must not keep a job from ending.
            _log.exception("job %s: its reports cannot be read", job.job)

    # Who is gone

    def unsendable(self, job_id: str, error: Exception) -> None:
        """Something of a job cannot be sent to the homesite: the job is over, and says so."""
        job = self._jobs.pop(job_id, None)
        if job is not None:
            failure = Failure("", "submit", "", (), "", type(error).__name__, str(error))
            job.end(JobStatus.FAILED, [failure])
            self._connection.post(CancelJob(job_id, "a message of its client could not be sent"))

    def lost(self, lost: SiteLost) -> None:
        """The homesite is gone: its jobs are submitted to its next life again, or are over and say so."""
        if self._connection.hosting is not None:
            self._host_lost(lost.reason)
            return
        for inquiry in list(self._inquiries.values()):
            inquiry.give_up(f"the homesite was lost: {lost.reason}")
        for job in list(self._jobs.values()):
            if job.submitted is not None:  # Else it has not been sent yet, and goes to the next life anyway.
                resubmission = job.submitted.homesite_lost(lost)
                self._connection.send_again(resubmission.send)
                self._take_in(job, resubmission.take_in)

    def _host_lost(self, reason: str) -> None:
        """The host is gone: what becomes of its jobs is seen when it is started again."""
        self._connection.gone = reason
        what = f"{reason}; when it is up again, `dfmesh attach` tells what became of the job"
        self._end_all(JobStatus.FAILED, [Failure("", "session", "", (), "", "HostLost", what)], reason)

    def give_up(self) -> None:
        """The session is closed: its jobs are cancelled, or go on at their host without us."""
        reason = "the session was closed"
        if self._connection.hosting is not None:
            self._end_all(JobStatus.DETACHED, [], reason)
        else:
            self._end_all(JobStatus.CANCELLED, [Failure("", "session", "", (), "", "Cancelled", reason)], reason)

    def _end_all(self, status: JobStatus, failures: list[Failure], reason: str) -> None:
        for inquiry in list(self._inquiries.values()):
            inquiry.give_up(reason)
        for job in list(self._jobs.values()):
            job.end(status, failures)
        self._jobs.clear()
        self._hosted.end(status, failures)


__all__ = ["SessionJobs"]
