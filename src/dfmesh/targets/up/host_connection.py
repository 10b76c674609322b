"""A client's connection with a host: requests and answers, journals and lines that stream in."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from dfmesh.engine.message_parts import Failure
from dfmesh.engine.messages import AnyMessage, JobFinished, JobRefused, Message, Progress
from dfmesh.errors import SessionError
from dfmesh.targets.up.channel import Channel
from dfmesh.targets.up.host_record import HostRecord, socket_address
from dfmesh.targets.up.messages import (
    Answer,
    AttachJob,
    DetachJob,
    JobAttached,
    JournalEnd,
    JournalPart,
    LogPart,
    ReadLog,
    Refused,
    make_codec,
)
from dfmesh.targets.up.record_log import ignore_check
from dfmesh.targets.wire import Codec, FrameReader, WireError

OnMessage = Callable[[AnyMessage], None]
OnLines = Callable[[bytes, bool], None]
"""Gets a part of the lines, cut anywhere, and whether it is the last one."""

GREETING_SECONDS = 10.0
"""How long a host may take to say who it is."""

OWN = 0
"""Number under which the journals of jobs come that this client has submitted."""


class HostConnection:
    """An open connection. All calls are made on the event loop.

    Attributes:
        record: What the host says of itself.
    """

    def __init__(self, record: HostRecord, on_message: OnMessage, on_lost: Callable[[str], None]) -> None:
        """Prepare; `open` connects.

        Args:
            record: Of the host.
            on_message: Gets what comes of jobs and inquiries of this client.
            on_lost: Told once, with a reason, when the host has gone.
        """
        self.record = record
        self._on_message = on_message
        self._on_lost = on_lost
        self._codec = make_codec()
        self._numbers = itertools.count(OWN + 1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._attaching: dict[int, Callable[[JobAttached], OnMessage]] = {}
        self._journals: dict[tuple[str, int], _Journal] = {}
        self._attached: dict[tuple[str, int], OnMessage] = {}
        self._lines: dict[int, OnLines] = {}
        self._greeting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._channel = Channel(self._codec, self._receive, self._lost, on_greeting=self._greeted)

    async def open(self) -> None:
        """Connect, and read the greeting.

        Raises:
            SessionError: the host does not answer.
        """
        loop = asyncio.get_running_loop()
        try:
            with socket_address(self.record.socket_path) as address:
                await loop.create_unix_connection(lambda: self._channel, address)
            async with asyncio.timeout(GREETING_SECONDS):
                self.record = msgspec.json.decode(await self._greeting, type=HostRecord)
        except (OSError, TimeoutError, msgspec.DecodeError, msgspec.ValidationError) as error:
            self.close()
            reason = str(error) or "it does not answer"
            raise SessionError(f"the host {self.record.name!r} cannot be reached: {reason}") from error

    def send(self, message: Message) -> int:
        """Send a message and return its size; 0 if the host is gone."""
        return self._channel.send(message)

    async def ask(self, make: Callable[[int], Message]) -> Any:
        """Ask for something and wait for the answer.

        Args:
            make: Makes the request, given its number.

        Raises:
            SessionError: the host refuses it, or is gone.
        """
        number = next(self._numbers)
        return await self._asked(number, make(number))

    async def attach(self, prefix: str, make: Callable[[JobAttached], OnMessage]) -> tuple[str, int]:
        """Follow a job from its first result on.

        Args:
            prefix: Its id, or the beginning of that.
            make: Given what the host says of the job, gives what takes its messages. It is called at once when the
                answer comes.

        Returns:
            The whole id and the number to detach with.

        Raises:
            SessionError: there is no such job, or there are several.
        """
        number = next(self._numbers)
        self._attaching[number] = make
        try:
            attached: JobAttached = await self._asked(number, AttachJob(prefix, number))
        finally:
            self._attaching.pop(number, None)
        return attached.job, number

    async def detach(self, job: str, number: int = OWN) -> None:
        """Follow a job no longer. All that was sent for it before has then been taken in by the host.

        Args:
            job: Its id.
            number: What `attach` gave; `OWN` for a job that this client has submitted.

        Raises:
            SessionError: the host is gone.
        """
        await self.ask(lambda request: DetachJob(job, request, number))
        self._forget((job, number))

    async def lines(self, prefix: str, on_lines: OnLines, *, follow: bool) -> None:
        """Have the lines that sites print.

        Args:
            prefix: Id of a job, or its beginning, for those printed in its time; empty for all.
            on_lines: Gets them.
            follow: Whether to go on with what is printed later.
        """
        number = next(self._numbers)
        self._lines[number] = on_lines
        refusal: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[number] = refusal
        self._channel.send(ReadLog(prefix, number, follow))
        try:
            answer = await refusal
        finally:
            self._answers.pop(number, None)
            self._lines.pop(number, None)
        if isinstance(answer, Refused):
            raise SessionError(answer.reason)

    def close(self) -> None:
        """Send what is left, and close."""
        self._channel.close()
        self._end("the connection with the host was closed")

    async def _asked(self, number: int, message: Message) -> Any:
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        if self._channel.closed:
            self._end(f"the host {self.record.name!r} is gone")
        self._channel.send(message)
        try:
            found = await answer
        finally:
            self._answers.pop(number, None)
        if isinstance(found, Refused):
            raise SessionError(found.reason)
        return found

    # What comes

    def _greeted(self, data: bytes) -> None:
        if not self._greeting.done():
            self._greeting.set_result(data)

    def _receive(self, message: Any) -> None:
        match message:
            case JournalPart():
                self._take_part(message)
            case JournalEnd(job=job, number=number, broken=broken):
                self._end_journal((job, number), broken or "the host does not have the end of it any more")
            case LogPart(number=number, data=data, end=end):
                if number in self._lines:
                    self._lines[number](data, end)
                if end:
                    self._answer(number, message)
            case JobAttached(number=number):
                make = self._attaching.pop(number, None)
                if make is not None:
                    self._attached[message.job, number] = make(message)
                self._answer(number, message)
            case Progress():
                self._on_message(message)
                for (job, _), take in list(self._attached.items()):
                    if job == message.job:
                        take(message)
            case _ if isinstance(message, Answer):
                self._answer(message.number, message)
            case _:
                self._on_message(message)

    def _take_part(self, part: JournalPart) -> None:
        key = (part.job, part.number)
        take = self._on_message if part.number == OWN else self._attached.get(key)
        if take is None:
            return  # Of a job that was detached from meanwhile.
        journal = self._journals.get(key)
        if journal is None:
            journal = self._journals[key] = _Journal(self._codec, take)
        try:
            journal.feed(part.data)
        except WireError as error:
            self._end_journal(key, f"it cannot be read: {error}")

    def _end_journal(self, key: tuple[str, int], broken: str) -> None:
        journal = self._journals.get(key)
        take = self._on_message if key[1] == OWN else self._attached.get(key)
        self._forget(key)
        if take is not None and (journal is None or not journal.over):
            failure = Failure("", "journal", "", (), "", "JournalBroken", broken)
            take(JobFinished(key[0], "failed", (failure,), ()))

    def _answer(self, number: int, answer: Any) -> None:
        waiting = self._answers.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _forget(self, key: tuple[str, int]) -> None:
        self._journals.pop(key, None)
        self._attached.pop(key, None)

    def _lost(self, reason: str) -> None:
        text = f"the host {self.record.name!r} (process {self.record.pid}) is gone: {reason}"
        self._end(text)
        self._on_lost(text)

    def _end(self, reason: str) -> None:
        if not self._greeting.done():
            self._greeting.set_exception(ConnectionError(reason))
            self._greeting.exception()  # Seen, whether somebody waits for it or not.
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_result(Refused("", 0, reason))


class _Journal:
    """A journal that is coming.

    Attributes:
        over: Whether it has told how the job ended.
    """

    def __init__(self, codec: Codec, take: OnMessage) -> None:
        self.over = False
        self._take = take
        self._reader = FrameReader(codec, self._deliver, ignore_check)

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            WireError: they are no messages.
        """
        self._reader.feed(data)

    def _deliver(self, message: AnyMessage) -> None:
        if type(message) is JobFinished or type(message) is JobRefused:
            self.over = True
        self._take(message)
