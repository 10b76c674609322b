"""The host: keeps a federation running, and its jobs, whatever becomes of the clients that submitted them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dfmesh.config import FederationConfig
from dfmesh.engine.messages import AdviceGiven, AnyMessage, Discover, SiteLost, SubmitJob
from dfmesh.errors import SessionError
from dfmesh.targets.local.runner import LocalFederationRunner
from dfmesh.targets.protocol import OnOutput
from dfmesh.targets.up.hosted_job import HostedJob
from dfmesh.targets.up.job_lines import JobText
from dfmesh.targets.up.job_store import Interrupted, JobStore, pick
from dfmesh.targets.up.journal import LOG, Ended, Journal, Submission
from dfmesh.targets.up.messages import JobAttached, JobEntry, JobOrigin, make_codec
from dfmesh.targets.up.record_log import RecordLogError
from dfmesh.targets.up.site_log import SiteLog
from dfmesh.targets.up.streams import JournalStream, LogStream
from dfmesh.targets.up.visitor import Visitor

_JOB_ID = re.compile(r"[0-9a-f]{16}")
_INQUIRY_GRACE = 10.0
_STOPPED = "the host was stopped while it ran"

_log = logging.getLogger("dfmesh.up")


class Host:
    """A federation that runs on its own. All calls are made on the event loop."""

    def __init__(
        self,
        config: FederationConfig,
        homesite: str,
        directory: Path,
        on_stop: Callable[[], None],
        on_output: OnOutput | None = None,
    ) -> None:
        """Prepare; no site is started.

        Args:
            config: The federation.
            homesite: Site to which clients talk.
            directory: Where jobs, and what sites print, are kept.
            on_stop: Called when a client asks for the end.
            on_output: Gets what sites print, beside the log; None if nobody else wants it.

        Raises:
            SessionError: the directory cannot be used.
        """
        self._homesite = homesite
        self._on_stop = on_stop
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._codec = make_codec()
        self._runner = LocalFederationRunner(config, homesite, on_output=self._printed)
        self._visitors: set[Visitor] = set()
        self._running: dict[str, HostedJob] = {}
        self._inquiries: dict[str, Visitor] = {}
        try:
            self._store = JobStore(directory / "jobs", self._codec)
            self._log = SiteLog(directory / "lines", self._loop.call_soon, self._log_written)
        except OSError as error:
            raise SessionError(f"jobs cannot be kept in {directory}: {error}; set XDG_STATE_HOME") from error

    async def start(self) -> int:
        """Start the sites, and go on with the jobs of an earlier host.

        Returns:
            How many jobs go on.

        Raises:
            SessionError: a site did not start; says which, and what it printed.
        """
        await self._runner.start(self._receive, self._homesite_lost)
        for interrupted in self._store.load():
            self._resume(interrupted)
        return len(self._running)

    async def close(self) -> None:
        """Stop the sites. Jobs that run are not over: the next host goes on with them."""
        for visitor in list(self._visitors):
            visitor.close()
        self._visitors.clear()
        for job in self._running.values():
            job.journal.close()
        await self._runner.close()
        self._log.close()

    def welcome(self, greeting: bytes) -> Visitor:
        """Make what serves a client.

        Args:
            greeting: What it is greeted with.
        """
        visitor = Visitor(self, self._codec, greeting)
        self._visitors.add(visitor)
        return visitor

    @property
    def processes(self) -> dict[str, int]:
        """Site to process id."""
        return self._runner.processes

    # For visitors

    def entries(self) -> tuple[JobEntry, ...]:
        """List all jobs, in the order of their submission. What is told of them is written down before."""
        for job in self._running.values():
            job.journal.submission.flush()
        entries = [ended.entry for ended in self._store.ended.values()]
        entries += [job.entry for job in self._running.values()]
        return tuple(sorted(entries, key=lambda entry: entry.submitted))

    def submit(self, message: SubmitJob, owner: int) -> HostedJob:
        """Take a job; it is to be begun by whoever submitted it.

        Raises:
            SessionError: its id cannot be used.
            OSError: its journal cannot be written.
        """
        job = message.job
        if not _JOB_ID.fullmatch(job) or job in self._running or job in self._store.ended:
            raise SessionError(f"the job id {job!r} cannot be used")
        return self._host(Submission(JobOrigin(job, owner, time.time()), message))

    def _host(self, submission: Submission) -> HostedJob:
        directory = self._store.path(submission.submit.job)
        hosted = HostedJob(
            submission,
            partial(Journal, directory, self._codec, self._loop.call_soon),
            self._codec,
            self._runner.send,
            self._ended,
        )
        self._running[hosted.job] = hosted
        return hosted

    def _resume(self, interrupted: Interrupted) -> None:
        submission, given, last, cancelled = interrupted
        try:
            job = self._host(submission)
            job.resume(given, last, cancelled, SiteLost("", self._homesite, _STOPPED, ()))
        except (RecordLogError, OSError) as error:
            self._running.pop(submission.submit.job, None)
            _log.warning("job %s cannot be gone on with: %s", submission.submit.job, error)

    def find(self, prefix: str) -> str:
        """Find a job by the beginning of its id.

        Raises:
            SessionError: there is none, or there are several.
        """
        return pick(prefix, [*self._running, *self._store.ended])

    def running(self, job: str) -> HostedJob | None:
        """Give a job that is not over."""
        return self._running.get(job)

    def attached(self, job: str, number: int) -> JobAttached:
        """Say what a client has to know of a job."""
        hosted = self._running.get(job)
        if hosted is not None:
            entry, (sources, order) = hosted.entry, hosted.outline
        else:
            ended = self._store.ended[job]
            entry, sources, order = ended.entry, ended.sources, ended.order
        return JobAttached(job, number, entry.name, entry.status, sources, order, entry.parameter_sets)

    def journal(self, job: str, number: int, on_news: Callable[[], None]) -> JournalStream:
        """Open a job's results for a client.

        Raises:
            OSError: they cannot be read.
        """
        broken = self._store.ended[job].broken if job in self._store.ended else ""
        return JournalStream(job, number, self._store.results_path(job), self._running.get(job), broken, on_news)

    def lines(self, number: int, job: str, on_news: Callable[[], None], *, follow: bool) -> LogStream:
        """Open what is printed for a client: by all sites, or by the adapters of a job."""
        if not job:
            return LogStream(number, self._log, None, on_news, follow=follow)
        hosted = self._running.get(job)
        if hosted is not None:
            return LogStream(number, hosted.journal.lines, hosted, on_news, follow=follow)
        return LogStream(number, JobText(self._store.path(job) / LOG), None, on_news, follow=False)

    def forget(self, job: str) -> None:
        """Remove the journal of a job.

        Raises:
            SessionError: the job is not over.
        """
        if job in self._running:
            raise SessionError(f"job {job} is going on; `dfmesh cancel {job}` ends it")
        self._store.forget(job)

    def discover(self, visitor: Visitor, message: Discover) -> None:
        """Ask the sites on behalf of a client."""
        self._inquiries[message.job] = visitor
        self._loop.call_later(message.seconds + _INQUIRY_GRACE, self._inquiries.pop, message.job, None)
        self._runner.send(message)

    def left(self, visitor: Visitor) -> None:
        """A client has gone."""
        self._visitors.discard(visitor)

    def stop(self) -> None:
        """Do what a client asked for last."""
        self._loop.call_soon(self._on_stop)

    # What comes

    def _receive(self, message: AnyMessage) -> None:
        if isinstance(message, AdviceGiven):
            visitor = self._inquiries.get(message.job)
            if visitor is not None:
                visitor.advise(message)
            return
        job = self._running.get(message.job)
        if job is not None:
            with self._failing(job):
                job.receive(message)

    @contextlib.contextmanager
    def _failing(self, job: HostedJob) -> Iterator[None]:
        """Whatever goes wrong with a job ends it, rather than leave somebody waiting."""
        try:
            yield
        except Exception as error:
            _log.exception("job %s cannot be gone on with", job.job)
            job.fail(f"the host cannot go on with it: {type(error).__name__}: {error}")

    def _homesite_lost(self, lost: SiteLost) -> None:
        for job in list(self._running.values()):
            with self._failing(job):
                job.homesite_lost(lost)
        self._log_line(f"{lost.site} was lost: {lost.reason}")

    def _ended(self, job: HostedJob) -> None:
        self._running.pop(job.job, None)
        ended = Ended(job.entry, *job.outline, job.broken)
        try:
            job.journal.end(ended)
        except OSError as error:
            _log.warning("the end of job %s cannot be written down: %s", job.job, error)
        self._store.add(ended)

    def _printed(self, site: str, line: str) -> None:
        self._log.take(site, line)
        if self._on_output is not None:
            self._on_output(site, line)

    def _log_line(self, text: str) -> None:
        for line in text.splitlines():
            self._printed("host", line)

    def _log_written(self) -> None:
        for visitor in self._visitors:
            visitor.log_written()
