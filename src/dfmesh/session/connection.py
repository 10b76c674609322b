"""The client's end of the connection with the homesite, which a session and its jobs share."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Any, Literal, TypeVar

from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, SiteLost
from dfmesh.errors import SessionError
from dfmesh.session.loop_thread import client_loop
from dfmesh.targets import DirectRunner, FederationRunner, HostingRunner

T = TypeVar("T")

_log = logging.getLogger("dfmesh.session")


class Connection:
    """Starts and stops the sites, and carries messages to the homesite. May be used from any thread.

    Attributes:
        state: `new` before the sites have started, `open`, then `closed`.
        hosting: The runner, if it is of a target whose jobs outlive their client; else None.
        gone: Why there is nobody to talk to any more; empty if there is.
        pack: Makes a value ready to be sent.
        unpack: Gives back a value that has come.
    """

    def __init__(self, runner: FederationRunner, hosting: HostingRunner | None = None) -> None:
        """Prepare; nothing is started yet.

        Args:
            runner: Of the target.
            hosting: The same, if it is of a target whose jobs outlive their client.
        """
        self.state: Literal["new", "open", "closed"] = "new"
        self.hosting = hosting
        self.gone = ""
        self.pack: Callable[[Any], Payload] = runner.pack
        self.unpack: Callable[[Payload], Any] = runner.unpack
        self._runner = runner
        self._direct = runner if isinstance(runner, DirectRunner) else None
        self._loop = client_loop()
        self._outbox: list[AnyMessage] = []
        self._outbox_lock = threading.Lock()
        self._on_unsendable: Callable[[str, Exception], None] | None = None
        self._on_sending: Callable[[AnyMessage], None] | None = None
        self._starting: Future[None] | None = None
        self._state_lock = threading.Lock()

    @property
    def in_its_process(self) -> bool:
        """Whether this is the process that made it, not a fork of that."""
        return self._loop.process == os.getpid()

    def start(
        self,
        on_message: Callable[[AnyMessage], None],
        on_lost: Callable[[SiteLost], None],
        on_unsendable: Callable[[str, Exception], None],
        on_sending: Callable[[AnyMessage], None] | None = None,
    ) -> Future[None]:
        """Begin to start the sites, unless that was begun.

        Args:
            on_message: Gets each message of the homesite, in order, on the client's event loop.
            on_lost: Told there when the homesite is lost.
            on_unsendable: Told there of a job of which a message could not be sent, and why.
            on_sending: Gets each message before it is sent, except those given to `send_again`; there, or on the
                thread that gives a message to `submit`.
        """
        self._on_unsendable = on_unsendable
        self._on_sending = on_sending
        with self._state_lock:
            if self._starting is None or (self.state == "new" and self._starting.done()):
                self._starting = self._loop.start(self._start(on_message, on_lost))
            return self._starting

    async def _start(self, on_message: Callable[[AnyMessage], None], on_lost: Callable[[SiteLost], None]) -> None:
        await self._runner.start(on_message, on_lost)
        if self.state == "new":
            self.state = "open"

    def stop(self, last: Callable[[], None]) -> Future[None]:
        """Begin to stop the sites; nothing is sent any more.

        Args:
            last: Called first, on the client's event loop.
        """
        self.state = "closed"
        if self.in_its_process:
            return self._loop.start(self._stop(last))
        nothing: Future[None] = Future()  # After a fork the sites belong to the other process, which goes on.
        nothing.set_result(None)
        return nothing

    async def _stop(self, last: Callable[[], None]) -> None:
        if self.hosting is not None:
            self._send_all()  # Jobs go on with what was given to them until now.
        last()
        await self._runner.close()
        if self._starting is not None:
            self._starting.cancel()  # Who was interrupted while they started does not wait for it any more.

    def post(self, *messages: AnyMessage) -> None:
        """Send messages to the homesite, in order."""
        with self._outbox_lock:
            woken = bool(self._outbox)
            self._outbox += messages
            if woken:
                return  # The loop was woken for the first one and takes all.
        self._loop.loop.call_soon_threadsafe(self._flush)

    def submit(self, message: AnyMessage) -> None:
        """Send the first message of a job, at once if that is possible: whoever submits a job may wait for its end."""
        if (
            self._direct is not None
            and self.state == "open"
            and self._direct.send_at_once(message, partial(self._sending, message))
        ):
            return
        self.post(message)

    def _sending(self, message: AnyMessage) -> None:
        if self._on_sending is not None:
            self._on_sending(message)

    def _flush(self) -> None:
        if self.state == "open":
            self._send_all()

    def _send_all(self) -> None:
        with self._outbox_lock:
            messages, self._outbox = self._outbox, []
        for message in messages:
            self._sending(message)
            self._send(message)

    def send_again(self, messages: Iterable[AnyMessage]) -> None:
        """Send messages before all that were posted and not sent; to be called on the client's event loop."""
        for message in messages:
            self._send(message)

    def _send(self, message: AnyMessage) -> None:
        try:
            self._runner.send(message)
        except Exception as error:  # One message that cannot be sent must not take those behind it along.
            _log.warning("a %s message of job %s cannot be sent: %s", type(message).__name__, message.job, error)
            if self._on_unsendable is not None:
                self._on_unsendable(message.job, error)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function where messages of the homesite are taken in."""
        self._loop.loop.call_soon_threadsafe(function)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there, after all that was posted before has been sent."""
        return self._loop.start(coroutine)

    def standing_still(self) -> dict[str, float]:
        """Name sites that work but do not answer, with the seconds for which they have not, where the target knows."""
        found: dict[str, float] = getattr(self._runner, "standing_still", {})
        return found

    def check_open(self) -> None:
        """Refuse to send before the sites have started, or after they were stopped.

        Raises:
            SessionError: says which, and what to do.
        """
        if self.state == "new":
            raise SessionError("the session is not connected; use `with federation.session() as session:`")
        if self.state == "closed":
            raise SessionError("the session is closed; make another with federation.session()")
        if self.gone:
            raise SessionError(f"{self.gone}; make another session when it is up again")
        self._check_process()

    def check_may_block(self) -> None:
        """Refuse to block where nothing could ever wake the caller: in a callback, or after a fork.

        Raises:
            SessionError: the caller is on the client's event loop, or in another process.
        """
        self._check_process()
        if self._loop.is_current():
            raise SessionError("a callback must not wait for a job or session; do that on another thread")

    def _check_process(self) -> None:
        if not self.in_its_process:
            raise SessionError(f"the session belongs to process {self._loop.process}; make one in this process")


__all__ = ["Connection"]
