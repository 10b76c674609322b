"""Jobs at a host, whoever submitted them: list them, attach to them, cancel them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from dfmesh.compiler.quantity_text import count_text
from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import AnyMessage, FrameFinished, YieldPackage, YieldPackages
from dfmesh.errors import SessionError
from dfmesh.session.connection import Connection
from dfmesh.session.job import Job
from dfmesh.session.job_inbox import JobInbox, JobStatus
from dfmesh.session.job_plan import JobPlan
from dfmesh.targets import HostingRunner

if TYPE_CHECKING:
    from dfmesh.targets.up.messages import JobAttached, JobEntry

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class JobSummary:
    """A job as it stands in the list of its host.

    Attributes:
        id: Its id; `session.attach` takes the beginning of it as well.
        name: Name of the pipeline; empty if it has none.
        status: starting, running, finished, failed or cancelled.
        submitted: When it was submitted, in UTC.
        ended: When it ended, in UTC; None while it runs.
        parameter_sets: How many were given so far.
        results: How many have come.
        failures: What has failed; known once the job is over.
        owner: Process id of the client that submitted it.
        size: Bytes that it takes on disk.
    """

    id: str
    name: str
    status: JobStatus
    submitted: datetime
    ended: datetime | None
    parameter_sets: int
    results: int
    failures: int
    owner: int
    size: int

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<JobSummary {self.id}{name} {self.status.value}, {count_text(self.results, 'result')}>"


class HostedJobs:
    """What a session, or who looks at a host without one, can do with jobs of any client."""

    def __init__(self, connection: Connection) -> None:
        """Prepare.

        Args:
            connection: With the host; it may be of another target, which is told when something is asked for.
        """
        self._connection = connection
        self._attached: set[JobInbox] = set()

    def summaries(self) -> list[JobSummary]:
        """List all jobs, the oldest first."""
        return [_summary(entry) for entry in self._ask(lambda hosting: hosting.list_jobs())]

    def attach(self, prefix: str, *, keep_results: bool = True) -> Job:
        """Follow a job from its first result on."""
        made: list[tuple[JobInbox, AttachedFeed]] = []

        def make(found: JobAttached) -> Callable[[AnyMessage], None]:
            plan = JobPlan(found.name, found.sources, found.order, number=found.number)
            inbox = JobInbox(found.job, plan, self._connection, keep_results=keep_results)
            if found.status != JobStatus.STARTING.value:
                inbox.status = JobStatus.RUNNING  # Even if it is over there: not all has come here.
            feed = AttachedFeed(found.job, found.parameter_sets)
            self._attached.add(inbox)
            made.append((inbox, feed))
            return partial(self._receive, inbox, feed)

        self._ask(lambda hosting: hosting.attach(prefix, make))
        inbox, feed = made[0]
        return Job(inbox, feed, self._connection)

    def cancel(self, prefix: str, reason: str) -> str:
        """Cancel a job, and give its whole id."""
        return self._ask(lambda hosting: hosting.cancel(prefix, reason))

    def forget(self, prefix: str) -> str:
        """Have the host forget a job that is over, and give its whole id."""
        return self._ask(lambda hosting: hosting.forget(prefix))

    def lines(self, prefix: str, on_lines: Callable[[bytes, bool], None], *, follow: bool) -> None:
        """Give what sites print; returns at the end, or never if it is followed."""
        self._ask(lambda hosting: hosting.lines(prefix, on_lines, follow=follow))

    def stop_host(self) -> None:
        """Stop the sites and the host."""
        self._ask(lambda hosting: hosting.stop_host())

    def end(self, status: JobStatus, failures: list[Failure]) -> None:
        """Nothing more comes of the jobs that were attached to; called on the client's event loop."""
        for inbox in list(self._attached):
            inbox.end(status, failures)
        self._attached.clear()

    def _receive(self, inbox: JobInbox, feed: AttachedFeed, message: AnyMessage) -> None:
        feed.see(message)
        inbox.receive(message)
        if inbox.over:
            self._attached.discard(inbox)

    def _ask(self, request: Callable[[HostingRunner], Coroutine[Any, Any, T]]) -> T:
        self._connection.check_open()
        self._connection.check_may_block()
        hosting = self._connection.hosting
        if hosting is None:
            raise SessionError(
                "only jobs of target 'up' can be listed and attached to: `dfmesh up FILE`, then session(target='up')"
            )
        return self._connection.run(request(hosting)).result()


class AttachedFeed:
    """The parameter sets of a job that another client has submitted: they are that client's to give.

    Attributes:
        error: None; the other client knows.
        count: Sets that are known of.
    """

    def __init__(self, job: str, count: int) -> None:
        """Begin.

        Args:
            job: Id of the job.
            count: Sets that had been given when it was attached to.
        """
        self.error: BaseException | None = None
        self.count = count
        self._job = job

    def see(self, message: AnyMessage) -> None:
        """Learn of further sets from what comes of them."""
        if isinstance(message, YieldPackage | FrameFinished):
            self.count = max(self.count, message.frame[0] + 1)
        elif isinstance(message, YieldPackages):
            self.count = max(self.count, message.frames[0][0] + 1)

    def send(self, given: Mapping[str, Any]) -> int:
        """Refuse."""
        self._refuse()

    def close(self) -> None:
        """Refuse."""
        self._refuse()

    def leave(self) -> None:
        """Do nothing."""

    def _refuse(self) -> NoReturn:
        raise SessionError(f"job {self._job} was submitted by another client, which alone gives its parameter sets")


def _summary(entry: JobEntry) -> JobSummary:
    return JobSummary(
        id=entry.job,
        name=entry.name,
        status=JobStatus(entry.status),
        submitted=datetime.fromtimestamp(entry.submitted, UTC),
        ended=None if entry.ended is None else datetime.fromtimestamp(entry.ended, UTC),
        parameter_sets=entry.parameter_sets,
        results=entry.results,
        failures=entry.failures,
        owner=entry.owner,
        size=entry.size,
    )


__all__ = ["HostedJobs", "JobSummary"]
