"""HostedJob: a job that its host goes on with whoever submitted it, until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import (
    AddParameters,
    AnyMessage,
    CancelJob,
    CloseParameters,
    FrameFinished,
    JobFinished,
    JobLines,
    JobRefused,
    JobStarted,
    Progress,
    ReportProgress,
    SiteLost,
    YieldPackage,
    YieldPackages,
)
from dfmesh.engine.submission import read_nets
from dfmesh.engine.submitted_job import SubmittedJob
from dfmesh.targets.up.job_lines import LinesAmongResults
from dfmesh.targets.up.journal import Journal, Submission
from dfmesh.targets.up.messages import JobEntry, OwnerLeft
from dfmesh.targets.up.outline import outline_of
from dfmesh.targets.up.parameter_spool import ParameterSpool
from dfmesh.targets.up.record_log import recover
from dfmesh.targets.wire import Codec


class Asker(Protocol):
    """Who wants to know how far a job is."""

    def progress(self, message: Progress) -> None:
        """The sites have answered."""
        ...


class Follower(Protocol):
    """Who reads a job's journal, or waits for the job's end."""

    def news(self) -> None:
        """There is more to be read, or the job is over."""
        ...

    def keep(self) -> None:
        """The job ends: have what is still to be read, since the journal may be removed."""
        ...


class HostedJob:
    """One job that is going on.

    Attributes:
        origin: Who submitted it, and when.
        journal: What is kept of it on disk.
        outline: Where its results go.
        followers: Who is told whenever there is more in its journal, and of its end.
        broken: Why the host could not go on with the job; empty if it could.
    """

    def __init__(
        self,
        submission: Submission,
        make_journal: Callable[[Callable[[], None], Callable[[OSError], None]], Journal],
        codec: Codec,
        send: Callable[[AnyMessage], Any],
        on_ended: Callable[[HostedJob], None],
    ) -> None:
        """Take a job; nothing is sent before `begin` or `resume`.

        Args:
            submission: The job, and who submitted it.
            make_journal: Opens its journal, given whom to tell of results that can be read, and of a full disk.
            codec: Of the journal.
            send: Takes messages to the homesite.
            on_ended: Told once when the job is over.

        Raises:
            OSError: the journal cannot be written.
        """
        self.origin, self._submit = submission
        self.journal = make_journal(self._written, self._broken)
        self.followers: set[Follower] = set()
        self._lines = LinesAmongResults()
        self.broken = ""
        self._codec = codec
        self._send = send
        self._on_ended = on_ended
        self._nets, self._problems = read_nets(self._submit.nets)
        self.outline = outline_of(self._nets)
        self._submitted = SubmittedJob(self._submit, self._nets)
        self._spool = ParameterSpool(self.journal.submission, codec, self._send_on)
        self._asking: set[Asker] = set()
        self._replaying = False
        self._owner_left = False
        self._status = "starting"
        self._results = 0
        # Results that are in the message which is being added to the journal, and those that are in its file.
        self._adding = 0
        self._kept = 0
        self._failures = 0
        self._ended: float | None = None

    @property
    def job(self) -> str:
        """Its id."""
        return self._submit.job

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self._ended is not None

    @property
    def entry(self) -> JobEntry:
        """How it stands, for the list."""
        return JobEntry(
            self.job,
            self._submit.name,
            self._status,
            self.origin.submitted,
            self._ended,
            self._spool.given,
            self._results,
            self._failures,
            self.origin.owner,
            self.journal.size,
        )

    # From clients

    def begin(self) -> None:
        """Write the submission down and send it to the homesite."""
        self.journal.submission.append(self.origin)
        self.journal.submission.append(self._submit)
        if self._problems:
            failures = (Failure("", "submit", "", (), "", "JobRefused", problem) for problem in self._problems)
            self._announce(JobRefused(self.job, tuple(failures)))
        else:
            self._send(self._submit)

    def resume(self, given: int, last: CloseParameters | OwnerLeft | None, cancelled: bool, lost: SiteLost) -> None:
        """Go on with a job of a host that has ended: read what had come, then see whether it may be submitted again.

        Args:
            given: Parameter sets in the journal.
            last: What it says of the end of parameter sets.
            cancelled: Whether it says that the job was cancelled.
            lost: What happened to the homesite.

        Raises:
            RecordLogError: the journal cannot be read.
            OSError: as well.
        """
        self._owner_left = not isinstance(last, CloseParameters)
        self._replaying = True
        self._spool.restore(self.job, given, closed=last is not None)
        recover(self.journal.results.path, self._codec, self._replay)
        self.journal.results.recovered()
        self._kept = self._results
        self._replaying = False
        if self.over:
            self._on_ended(self)
            return
        if last is None:
            self._spool.close(OwnerLeft(self.job))
        if cancelled:
            self._submitted.sent(CancelJob(self.job, ""))
        self.homesite_lost(lost)

    def take(self, message: AnyMessage) -> None:
        """Take what a client says of this job."""
        if self.over:
            return
        match message:
            case AddParameters():
                self._spool.add(message)
            case CloseParameters():
                self._spool.close(message)
            case CancelJob():
                self.journal.submission.append(message)
                self._send_on(message)

    def owner_left(self) -> None:
        """The client that submitted the job has gone: there will be no more parameter sets than those it gave."""
        if not self.over and not self._spool.closed:
            self._owner_left = True
            self._spool.close(OwnerLeft(self.job))

    def ask(self, asker: Asker) -> None:
        """Have all sites asked how far they are."""
        if self.over:
            asker.progress(Progress(self.job, ()))
            return
        self._asking.add(asker)
        self._send(ReportProgress(self.job))

    def _send_on(self, message: AnyMessage) -> None:
        self._submitted.sent(message)
        if not self._replaying:
            self._send(message)

    # From the homesite

    def receive(self, message: AnyMessage) -> None:
        """Take in what the homesite says."""
        if self.over:
            return
        if isinstance(message, Progress):
            self._tell_askers(message)
            return
        if isinstance(message, JobLines):
            self._take_lines(message)
            return
        wanted = self._submitted.received(message)
        if wanted is not None:
            self._announce(wanted)

    def _take_lines(self, message: JobLines) -> None:
        self.journal.lines.take(message)
        now = self._lines.take(message)
        if now is not None:
            self._announce(now)

    def homesite_lost(self, lost: SiteLost) -> None:
        """The homesite has died: go on from what is unfinished if the job allows it, else end it."""
        if self.over:
            return
        decision = self._submitted.homesite_lost(lost)
        for message in decision.send:
            self._send(message)
        self._announce(decision.take_in)
        if self._asking and not self.over:
            self._send(ReportProgress(self.job))

    def _announce(self, message: AnyMessage) -> None:
        """Note a message, and write it down for the clients."""
        if isinstance(message, JobFinished):
            for rest in self._lines.rest(self.job):
                self.journal.results.append(rest)
            if self._owner_left:
                message = _cut_off(message, self.origin.owner, self._spool.given)
        self._adding = _results_in(message)
        self.journal.results.append(message)
        self._adding = 0
        if self.broken:
            return
        self._note(message)
        if self.over:
            self._end()

    def _replay(self, message: AnyMessage) -> None:
        self._submitted.received(message)
        self._note(message)

    def _note(self, message: AnyMessage) -> None:
        results = _results_in(message)
        self._results += results
        if results and self._status == "starting":  # The word that it has started waits for others to go with.
            self._status = "running"
        match message:
            case JobLines():
                if self._replaying:
                    self._lines.restore(message)
            case FrameFinished():
                self._spool.frame_finished()
            case JobStarted():
                self._status = "running"
            case JobFinished(status=status, failures=failures):
                self._over(status, len(failures))
            case JobRefused(failures=failures):
                self._over("failed", len(failures))

    def _over(self, status: str, failures: int) -> None:
        self._status, self._failures, self._ended = status, failures, time.time()

    def _end(self) -> None:
        self.journal.close()
        if self.broken:
            self._results = self._kept
        for follower in self.followers:
            follower.keep()
        self._tell_askers(Progress(self.job, ()))
        self._on_ended(self)
        self._tell_followers()

    def _written(self) -> None:
        """Something can be read."""
        if self.journal.results.complete:
            self._kept = self._results + self._adding
        self._tell_followers()

    def _broken(self, error: OSError) -> None:
        """The journal cannot be written: the job ends, since its results could be lost."""
        what = f"the journal {self.journal.directory} cannot be written: {error.strerror}"
        self.fail(f"{what}; `dfmesh jobs --forget {self.job}` frees the room that it takes")

    def fail(self, reason: str) -> None:
        """End the job, since the host cannot go on with it."""
        if self.over:
            return
        self.broken = reason
        self._over("failed", 1)
        self._send(CancelJob(self.job, reason))
        self._end()

    def _tell_askers(self, message: Progress) -> None:
        asking, self._asking = self._asking, set()
        for asker in asking:
            asker.progress(message)

    def _tell_followers(self) -> None:
        for follower in tuple(self.followers):
            follower.news()


def _results_in(message: AnyMessage) -> int:
    match message:
        case YieldPackage():
            return 1
        case YieldPackages(frames=frames, left_out=left_out):
            return len(frames) - len(left_out)
    return 0


def _cut_off(message: JobFinished, owner: int, given: int) -> JobFinished:
    """Mark the end of a job whose client left before it had given all: what came is done, but it may not be all."""
    if message.status == "cancelled":
        return message
    came = f"{given} had come and {'is' if given == 1 else 'are'} done"
    what = f"the client (process {owner}) ended before it had given all parameter sets; {came}"
    failure = Failure("", "submit", "", (), "", "ClientLeft", what)
    return msgspec.structs.replace(message, status="failed", failures=(*message.failures, failure))
