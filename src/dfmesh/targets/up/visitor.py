"""Visitor: one client, as the host sees it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import (
    AddParameters,
    AdviceGiven,
    CancelJob,
    CloseParameters,
    Discover,
    JobRefused,
    Message,
    Progress,
    ReportProgress,
    SubmitJob,
)
from dfmesh.errors import SessionError
from dfmesh.targets.up.channel import MOST_UNREAD, Channel
from dfmesh.targets.up.hosted_job import HostedJob
from dfmesh.targets.up.messages import (
    AttachJob,
    DetachJob,
    Done,
    ForgetJob,
    JobList,
    ListJobs,
    ReadLog,
    Refused,
    Settle,
    StopHost,
    StopJob,
)
from dfmesh.targets.up.streams import LogStream, Stream
from dfmesh.targets.wire import Codec, WireError

if TYPE_CHECKING:
    from dfmesh.targets.up.host import Host

_log = logging.getLogger("dfmesh.up")


class Visitor:
    """Takes what a client says, and sends it what it asked for as it takes it.

    Attributes:
        pid: Process id of the client; 0 if the system does not say.
    """

    def __init__(self, host: Host, codec: Codec, greeting: bytes) -> None:
        """Wait for a client.

        Args:
            host: The host.
            codec: Of the messages.
            greeting: What a client is greeted with.
        """
        self.pid = 0
        self.channel = Channel(codec, self._receive, self._gone, on_connected=self._connected)
        self._greeting = greeting
        self._host = host
        self._own: dict[str, HostedJob] = {}
        self._streams: dict[tuple[str, int], Stream] = {}
        self._ready: dict[tuple[str, int], None] = {}
        self._news = asyncio.Event()
        self._pumping = asyncio.get_running_loop().create_task(self._pump())

    def close(self) -> None:
        """Say no more."""
        self.channel.close()
        self._release()

    def _connected(self, pid: int) -> None:
        self.pid = pid
        self.channel.greet(self._greeting)

    # What it says

    def _receive(self, message: Any) -> None:
        match message:
            case AddParameters() | CloseParameters():
                own = self._own.get(message.job)
                if own is not None:
                    own.take(message)
            case CancelJob():
                job = self._host.running(message.job)
                if job is not None:
                    job.take(message)
            case ReportProgress():
                job = self._host.running(message.job)
                if job is None:
                    self.progress(Progress(message.job, ()))
                else:
                    job.ask(self)
            case SubmitJob():
                self._submit(message)
            case Discover():
                self._host.discover(self, message)
            case _:
                self._request(message)

    def _submit(self, message: SubmitJob) -> None:
        job = None
        try:
            job = self._host.submit(message, self.pid)
            self._follow(job.job, 0)
        except (SessionError, OSError) as error:
            failure = Failure("", "submit", "", (), "", "JobRefused", str(error))
            self._say(JobRefused(message.job, (failure,)))
            if job is not None:
                job.fail(str(error))
            return
        self._own[job.job] = job
        job.begin()

    def _request(self, message: Any) -> None:
        try:
            answer = self._answer(message)
        except (SessionError, OSError) as error:
            answer = Refused(message.job, message.number, str(error))
        if answer is not None:
            self._say(answer)

    def _answer(self, message: Any) -> Message | None:
        match message:
            case Settle(number=number):
                self._write_down()
                return Done("", number)
            case ListJobs(number=number):
                return JobList("", number, self._host.entries())
            case AttachJob(job=prefix, number=number):
                self._attach(self._host.find(prefix), number)
                return None
            case DetachJob(job=job, number=number, attached=attached):
                self._write_down()
                self._end_stream((job, attached))
                return Done(job, number)
            case StopJob(job=prefix, number=number, reason=reason):
                job = self._host.find(prefix)
                running = self._host.running(job)
                if running is None:
                    raise SessionError(f"job {job} is over already")
                running.take(CancelJob(job, reason))
                return Done(job, number)
            case ForgetJob(job=prefix, number=number):
                job = self._host.find(prefix)
                self._host.forget(job)
                return Done(job, number)
            case ReadLog(job=prefix, number=number, follow=follow):
                job = self._host.find(prefix) if prefix else ""
                key = ("", number)
                self._add_stream(key, self._host.lines(number, job, partial(self._wake, key), follow=follow))
                return None
            case StopHost(number=number):
                self._host.stop()
                return Done("", number)
        raise WireError(f"a {type(message).__name__} message is not for a host")

    def _write_down(self) -> None:
        """Have on disk what this client has given: it may leave now."""
        for job in self._own.values():
            job.journal.submission.flush()

    def _attach(self, job: str, number: int) -> None:
        self._say(self._host.attached(job, number))
        self._follow(job, number)

    # What it gets

    def progress(self, message: Progress) -> None:
        """The sites of a job have answered."""
        self._say(message)

    def advise(self, message: AdviceGiven) -> None:
        """A site has answered its question."""
        self._say(message)

    def _say(self, message: Message) -> None:
        self.channel.send(message)
        if self.channel.unread > MOST_UNREAD:
            self.channel.drop("it does not read what it asked for")

    def log_written(self) -> None:
        """There are more lines of sites."""
        for key, stream in self._streams.items():
            if isinstance(stream, LogStream):
                self._wake(key)

    def _follow(self, job: str, number: int) -> None:
        key = (job, number)
        self._add_stream(key, self._host.journal(job, number, partial(self._wake, key)))

    def _add_stream(self, key: tuple[str, int], stream: Stream) -> None:
        self._end_stream(key)
        self._streams[key] = stream
        self._wake(key)

    def _end_stream(self, key: tuple[str, int]) -> None:
        stream = self._streams.pop(key, None)
        if stream is not None:
            stream.close()
        if stream is not None and stream.done:
            self._own.pop(key[0], None)

    def _wake(self, key: tuple[str, int]) -> None:
        self._ready[key] = None
        self._news.set()

    async def _pump(self) -> None:
        """Send a piece of each stream in turn, and never more than the client takes."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                while self._ready:
                    key = next(iter(self._ready))
                    del self._ready[key]
                    await self._send_part(key)
            except Exception as error:
                _log.exception("what client %s reads cannot be sent", self.pid)
                self.channel.drop(f"what it reads cannot be sent: {error}")

    async def _send_part(self, key: tuple[str, int]) -> None:
        stream = self._streams.get(key)
        if stream is None:
            return
        part = stream.part()
        if part is not None:
            self.channel.send(part)
            self._wake(key)
        if stream.done:
            self._end_stream(key)
        await self.channel.drained()

    # Its end

    def _gone(self, reason: str) -> None:
        self._release()
        for job in self._own.values():
            job.owner_left()
        self._host.left(self)

    def _release(self) -> None:
        self._pumping.cancel()
        for key in list(self._streams):
            self._end_stream(key)
