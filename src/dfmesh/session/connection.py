"""The client's end of the connection with the homesite, which a session and its jobs share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Literal

from dfmesh.engine.messages import AnyMessage, Payload, SiteLost
from dfmesh.errors import SessionError
from dfmesh.session.loop_thread import client_loop
from dfmesh.targets import FederationRunner


class Connection:
    """Starts and stops the sites, and carries messages to the homesite. May be used from any thread.

    Attributes:
        state: `new` before the sites have started, `open`, then `closed`.
    """

    def __init__(self, runner: FederationRunner) -> None:
        """Prepare; nothing is started yet.

        Args:
            runner: Of the target.
        """
        self.state: Literal["new", "open", "closed"] = "new"
        self._runner = runner
        self._loop = client_loop()
        self._outbox: list[AnyMessage] = []
        self._outbox_lock = threading.Lock()

    def start(self, on_message: Callable[[AnyMessage], None], on_lost: Callable[[SiteLost], None]) -> Future[None]:
        """Begin to start the sites.

        Args:
            on_message: Gets each message of the homesite, in order, on the client's event loop.
            on_lost: Told there when the homesite is lost.
        """
        return self._loop.start(self._start(on_message, on_lost))

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
        return self._loop.start(self._stop(last))

    async def _stop(self, last: Callable[[], None]) -> None:
        last()
        await self._runner.close()

    def post(self, message: AnyMessage) -> None:
        """Send a message to the homesite, in order."""
        with self._outbox_lock:
            self._outbox.append(message)
            if len(self._outbox) > 1:
                return  # The loop was woken for the first one and takes all.
        self._loop.loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._outbox_lock:
            messages, self._outbox = self._outbox, []
        if self.state == "open":
            for message in messages:
                self._runner.send(message)

    def pack(self, value: Any) -> Payload:
        """Make a value ready to be sent."""
        return self._runner.pack(value)

    def unpack(self, payload: Payload) -> Any:
        """Give back a value that has come."""
        return self._runner.unpack(payload)

    def check_open(self) -> None:
        """Refuse to send before the sites have started, or after they were stopped.

        Raises:
            SessionError: says which, and what to do.
        """
        if self.state == "new":
            raise SessionError("the session is not connected; use `with federation.session() as session:`")
        if self.state == "closed":
            raise SessionError("the session is closed; make another with federation.session()")

    def check_may_block(self) -> None:
        """Refuse to block the client's event loop, from a callback, since nothing could ever wake it.

        Raises:
            SessionError: the caller is on that loop.
        """
        if self._loop.is_current():
            raise SessionError("a callback must not wait for a job or session; do that on another thread")


__all__ = ["Connection"]
