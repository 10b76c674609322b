"""HomeJobs: the jobs that clients have submitted to a site, which is their homesite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dfmesh.engine.answer_watch import ANSWER_SECONDS, AnswerWatch
from dfmesh.engine.attempts import is_job_id, job_of
from dfmesh.engine.carrier import Carrier, gauge
from dfmesh.engine.home_job import HomeJob, Send
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import AddParameters, AnyMessage, CancelJob, JobRefused, SiteLost, SubmitJob
from dfmesh.engine.site_loss import lost_failures
from dfmesh.engine.submission import read_nets
from dfmesh.netir import NetIR


class HomeJobs:
    """All jobs of one homesite. A pure state machine, as far as its carrier is.

    Attributes:
        jobs: Those that are not over, by id.
    """

    def __init__(
        self,
        site: str,
        carrier: Carrier,
        later: Callable[[float, Callable[[], None]], Any] | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Begin with none.

        Args:
            site: Name of the homesite.
            carrier: Sends messages.
            later: Calls a function after some seconds; None where all sites are known to answer.
            answer_seconds: How long a site may take to answer when a job starts or ends; 0 for ever.
        """
        self.jobs: dict[str, HomeJob] = {}
        self._answer_seconds = answer_seconds
        self._watch = AnswerWatch(self.jobs, answer_seconds, later, self._overdue) if later and answer_seconds else None
        self._site = site
        self._carrier = carrier
        self._gauge = gauge(carrier)
        self._held: dict[str, str] = {}  # job whose client does not keep up -> the attempt that is held

    def from_client(self, peer: str, message: AnyMessage) -> None:
        """Take in a message of a client. One about a job that is not that client's is dropped."""
        if isinstance(message, SubmitJob):
            self._submit(peer, message)
            return
        home = self.jobs.get(message.job)
        if home is not None and home.client == peer:
            self._send(home, home.handle(peer, message))

    def from_site(self, peer: str, message: AnyMessage) -> None:
        """Take in a message of a site that takes part."""
        home = self.jobs.get(message.job) or self.jobs.get(job_of(message.job))
        if home is not None:
            self._send(home, home.handle(peer, message))

    def _submit(self, peer: str, message: SubmitJob) -> None:
        problems: list[str] = []
        nets: dict[str, NetIR] = {}
        if message.job in self.jobs:
            problems.append(f"the job id {message.job!r} is in use")
        elif not is_job_id(message.job):
            problems.append(f"{message.job!r} is no job id")
        else:
            nets, problems = read_nets(message.nets)
        if problems:
            self.refuse(message.job, problems, peer)
            return
        self.begin(HomeJob(message.job, peer, nets, message.nets, message.submission), message.opening)

    def begin(self, home: HomeJob, opening: AddParameters | None = None) -> None:
        """Start a job whose nets have been checked.

        Args:
            home: The job.
            opening: As in `SubmitJob`.
        """
        self.jobs[home.job] = home
        if self._watch is not None:
            self._watch.begin()
        taken = opening is None or home.opens_with(opening)
        self._send(home, home.start())
        if opening is not None and not taken:
            self._send(home, home.handle(home.client, opening))

    def refuse(self, job: str, problems: list[str], peer: str) -> None:
        """Tell a client that a job will not run."""
        failures = tuple(Failure(self._site, "submit", "", (), "", "JobRefused", problem) for problem in problems)
        self._carrier.send(peer, JobRefused(job, failures))

    def client_lost(self, peer: str) -> None:
        """A client has gone: its jobs are cancelled."""
        for home in [home for home in self.jobs.values() if home.client == peer]:
            self._send(home, home.handle(peer, CancelJob(home.job, "the client is gone")))

    def site_lost(self, lost: SiteLost) -> None:
        """Another site has died."""
        for home in list(self.jobs.values()):
            net = home.net(lost.site)
            if net is not None:
                self._send(home, home.site_lost(lost.site, lost_failures(net, home.job, lost)))

    def end_without_answers(self, job: str) -> None:
        """Wait no longer for the sites that have not answered since a job was cancelled."""
        home = self.jobs.get(job)
        if home is not None:
            self._send(home, home.end_without_answers())

    def _overdue(self, job: str) -> None:
        home = self.jobs[job]
        self._send(home, home.overdue(self._answer_seconds))

    def close(self) -> None:
        """Forget all jobs."""
        self.jobs.clear()

    def _send(self, home: HomeJob, sends: list[Send]) -> None:
        send, client, to_client = self._carrier.send, home.client, 0
        for peer, message in sends:
            size = send(peer, message)
            if peer == client:
                to_client += size
        if home.over:
            self.jobs.pop(home.job, None)
            self._held.pop(home.job, None)
            return
        home.count_sent(to_client)
        if to_client and self._gauge.crowded((home.client,)) and self._held.get(home.job) != home.attempt:
            self._hold(home)

    def _hold(self, home: HomeJob) -> None:
        """Let a job make no more results while its client has too many to take."""
        sends = home.hold(True)
        if sends:
            if not self._held:
                self._gauge.when_roomy(self._room)
            self._held[home.job] = home.attempt
            self._send(home, sends)

    def _room(self) -> None:
        for job, attempt in list(self._held.items()):
            home = self.jobs.get(job)
            if home is None or attempt != home.attempt:
                del self._held[job]
            elif not self._gauge.crowded((home.client,)):
                del self._held[job]
                self._send(home, home.hold(False))
        if self._held:
            self._gauge.when_roomy(self._room)
