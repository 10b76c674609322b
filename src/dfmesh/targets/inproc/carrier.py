"""The carrier inside one process: hands objects over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dfmesh import values
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage

Receive = Callable[[str, AnyMessage], None]


class Exchange:
    """Connects the peers of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._receivers: dict[str, Receive] = {}

    def join(self, peer: str, receive: Receive) -> None:
        """Connect a peer."""
        self._receivers[peer] = receive

    def leave(self, peer: str) -> None:
        """Disconnect a peer; messages to it are dropped."""
        self._receivers.pop(peer, None)

    def post(self, source: str, destination: str, message: AnyMessage) -> None:
        """Deliver a message in the next turn of the loop."""
        self._loop.call_soon(self._deliver, source, destination, message)

    def _deliver(self, source: str, destination: str, message: AnyMessage) -> None:
        receive = self._receivers.get(destination)
        if receive is not None:
            receive(source, message)


class InprocCarrier:
    """One peer's end. Values are what a real carrier would deliver, but large parts of them are not copied."""

    def __init__(self, exchange: Exchange, peer: str) -> None:
        self._exchange = exchange
        self._peer = peer

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        return Payload(values.private_copy(value))

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        return values.private_copy(payload.data)

    def send(self, peer: str, message: AnyMessage) -> int:
        """As `Carrier.send`; the size is that of the value, since nothing else would be sent."""
        self._exchange.post(self._peer, peer, message)
        payload = getattr(message, "payload", None)
        return 0 if payload is None or peer == self._peer else values.size_of(payload.data)
