"""A host, for who looks after its jobs without submitting any."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import AnyMessage, SiteLost
from dfmesh.session.connection import Connection
from dfmesh.session.hosted_jobs import HostedJobs, JobSummary
from dfmesh.session.job import Job
from dfmesh.session.job_inbox import JobStatus

if TYPE_CHECKING:
    from dfmesh.targets.up.host_record import HostRecord


class Host:
    """What `dfmesh up FILE` runs: `with Host("weather.dfm.yaml") as host: print(host.jobs())`.

    Jobs that were attached to go on when this is closed.
    """

    def __init__(self, wanted: str | os.PathLike[str] | None = None) -> None:
        """Prepare; `with` connects.

        Args:
            wanted: The federation file, or the name of the host; None for the only host that runs.

        Raises:
            SessionError: there is none, or there are several; says what to do.
        """
        from dfmesh.targets.up.host_record import find_host
        from dfmesh.targets.up.runner import UpFederationRunner

        self.record: HostRecord = find_host(wanted)
        runner = UpFederationRunner(None, self.record.name)
        self._connection = Connection(runner, runner)
        self._hosted = HostedJobs(self._connection)

    def __enter__(self) -> Self:
        self._connection.start(_ignore, self._lost, _ignore_error).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.stop(lambda: self._hosted.end(JobStatus.DETACHED, [])).result()

    def jobs(self) -> list[JobSummary]:
        """List all jobs, the oldest first."""
        return self._hosted.summaries()

    def attach(self, job_id: str) -> Job:
        """Follow a job, as `Session.attach` does."""
        return self._hosted.attach(job_id)

    def cancel(self, job_id: str, reason: str = "cancelled by another client") -> str:
        """Cancel a job, whoever submitted it.

        Args:
            job_id: Its id, or the beginning of it.
            reason: What its client is told.

        Returns:
            The whole id.

        Raises:
            SessionError: there is no such job or there are several, or it is over already.
        """
        return self._hosted.cancel(job_id, reason)

    def forget(self, job_id: str) -> str:
        """Have all removed that is kept of a job that is over, as `Session.forget` does."""
        return self._hosted.forget(job_id)

    def lines(self, on_lines: Callable[[bytes, bool], None], job_id: str = "", *, follow: bool = False) -> None:
        """Give what sites print.

        Args:
            on_lines: Called, on a thread of dfmesh's, with a part of the lines `time site text`, cut anywhere, and with
                whether it is the last one. It must be quick.
            job_id: A job, or the beginning of its id, for what was printed in its time; empty for all that is kept.
            follow: Whether to go on, until the job is over or, without one, for ever.

        Raises:
            SessionError: there is no such job, or the host is gone.
        """
        self._hosted.lines(job_id, on_lines, follow=follow)

    def stop(self) -> None:
        """Stop the sites and the host. Jobs that run go on when it is started again, if their operations allow it."""
        self._hosted.stop_host()

    def _lost(self, lost: SiteLost) -> None:
        failure = Failure("", "host", "", (), "", "HostLost", lost.reason)
        self._hosted.end(JobStatus.FAILED, [failure])


def _ignore(message: AnyMessage) -> None:
    """Nothing comes, since nothing is submitted."""


def _ignore_error(job: str, error: Exception) -> None:
    """As well."""


__all__ = ["Host"]
