"""One end of the connection between a client and a host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

from dfmesh.targets.up.messages import GREETING
from dfmesh.targets.up.peer import peer_of_this_user
from dfmesh.targets.wire import Codec, FrameReader, WireError, notice, to_bytes

MOST_UNREAD = 64 * 2**20
"""Bytes that wait for a peer that does not read; one who lets more wait is dropped."""

_log = logging.getLogger("dfmesh.up")


class Channel(asyncio.BufferedProtocol):
    """Messages in both directions, in order. Whoever sends what is no message is dropped.

    Attributes:
        closed: Whether nothing will come any more.
    """

    def __init__(
        self,
        codec: Codec,
        on_message: Callable[[Any], None],
        on_closed: Callable[[str], None],
        *,
        on_connected: Callable[[int], None] = lambda pid: None,
        on_greeting: Callable[[bytes], None] | None = None,
    ) -> None:
        """Prepare; the event loop calls the rest.

        Args:
            codec: Of the messages.
            on_message: Gets each message.
            on_closed: Told once, with a reason, when the connection has ended other than by `close`.
            on_connected: Gets the process id of the peer, who is a process of this user; others are dropped.
            on_greeting: Gets the greeting of a host; None at the host.
        """
        self.closed = False
        self._codec = codec
        self._on_message = on_message
        self._on_closed = on_closed
        self._on_connected = on_connected
        self._on_greeting = on_greeting
        self._reader = FrameReader(codec, self._deliver, self._on_notice)
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As in `asyncio.BaseProtocol`."""
        self._transport = cast("asyncio.Transport", transport)
        pid = peer_of_this_user(transport.get_extra_info("socket").fileno())
        if pid is None:
            self.drop("it is a process of another user")
        else:
            self._on_connected(pid)

    def get_buffer(self, sizehint: int) -> Any:
        """As in `asyncio.BufferedProtocol`."""
        return self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """As in `asyncio.BufferedProtocol`."""
        if self.closed:
            return
        try:
            self._reader.buffer_updated(nbytes)
        except WireError as error:
            self.drop(f"it sent what is no message: {error}")

    def connection_lost(self, error: Exception | None) -> None:
        """As in `asyncio.BaseProtocol`."""
        self._end("it closed the connection" if error is None else str(error))

    def pause_writing(self) -> None:
        """As in `asyncio.BaseProtocol`."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """As in `asyncio.BaseProtocol`."""
        self._writable.set()

    def _on_notice(self, kind: int, body: bytes) -> None:
        if kind != GREETING or self._on_greeting is None:
            raise WireError(f"a frame of kind {kind}, which is not known")
        self._on_greeting(body)

    def _deliver(self, message: Any) -> None:
        if self.closed:
            return
        try:
            self._on_message(message)
        except Exception as error:  # Whatever a peer says must not harm others.
            _log.exception("a %s message was not taken", type(message).__name__)
            self.drop(f"a {type(message).__name__} message was not taken: {error}")

    # Used by whoever has it

    def greet(self, data: bytes) -> None:
        """Send the greeting of a host."""
        self._write(notice(GREETING, data))

    def send(self, message: Any) -> int:
        """Send a message and return its size; 0 if the peer is gone.

        Raises:
            WireError: it cannot be encoded.
        """
        if self.closed:
            return 0
        data = to_bytes(self._codec, message)
        self._write(data)
        return len(data)

    def _write(self, data: bytes) -> None:
        if self._transport is None or self.closed:
            return
        self._transport.write(data)

    @property
    def unread(self) -> int:
        """Bytes that wait for the peer to read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    async def drained(self) -> None:
        """Wait until the peer has read most of what was sent, or is gone."""
        await self._writable.wait()

    def drop(self, reason: str) -> None:
        """End the connection because of the peer."""
        if self._transport is not None:
            self._transport.abort()
        self._end(reason)

    def close(self) -> None:
        """Send what is left, then close; `on_closed` is not told."""
        self._on_closed = _nobody
        if self._transport is not None:
            self._transport.close()
        self._end("")

    def _end(self, reason: str) -> None:
        if self.closed:
            return
        self.closed = True
        self._writable.set()
        self._on_closed(reason)


def _nobody(reason: str) -> None:
    """Nobody wants to know."""
