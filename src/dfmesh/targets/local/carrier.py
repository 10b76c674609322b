"""The carrier of target `local`: one link per peer of a process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from typing import Any

from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, EndJob, JobStarted, SiteLost
from dfmesh.targets import payloads
from dfmesh.targets.local.link import Link
from dfmesh.targets.local.shared import Segment, SegmentPool, available
from dfmesh.targets.wire import Codec, WireError

_IDLE_SECONDS = 20.0
_PATIENT = frozenset({JobStarted, EndJob})

Receive = Callable[[str, AnyMessage], None]


class LocalCarrier:
    """The `Carrier` of one process: a site, or a client.

    Attributes:
        name: The peer that we are.
        receive: Gets peer and message of each message that arrives; to be set before the first connection.
    """

    def __init__(
        self, name: str, peers: Iterable[str], on_broken: Callable[[Link, str, bool], None], *, share: bool = True
    ) -> None:
        """Make a carrier without connections. Messages to the given peers wait until there is one.

        Args:
            name: The peer that we are.
            peers: The peers that will be connected.
            on_broken: As for `Link`.
            share: Whether connections carry descriptors, which shared memory needs.
        """
        self.name = name
        self.receive: Receive = _nobody
        self._loop = asyncio.get_running_loop()
        self._on_broken = on_broken
        self._codec = Codec(AnyMessage)
        self._pool = SegmentPool(self._retire, self._grown, self._array_ended) if share and available() else None
        self._collecting = False
        self._trim_timer: asyncio.TimerHandle | None = None
        self._links: dict[str, Link] = {}
        self._waiting_for_room: list[Callable[[], None]] = []
        for peer in peers:
            self._add(peer)

    def _add(self, peer: str) -> Link:
        link = self._links[peer] = Link(
            peer,
            self._codec,
            self._arrived,
            self._on_broken,
            pool=self._pool,
            on_forgotten=self._retire,
            on_room=self._told_of_room,
        )
        return link

    def connect(self, peer: str, connection: socket.socket, generation: int = 0) -> None:
        """Use a connection to a peer; what was sent to it before goes out now."""
        (self._links.get(peer) or self._add(peer)).attach(connection, generation)

    def disconnect(self, peer: str) -> None:
        """Deliver what has come from a peer that died, and wait for its next life."""
        if peer in self._links:
            self._links[peer].detach()

    def remove(self, peer: str) -> None:
        """Forget a peer that will not come back."""
        link = self._links.pop(peer, None)
        if link is not None:
            link.detach()

    def close(self) -> None:
        """Close all connections."""
        for peer in list(self._links):
            self.remove(peer)
        if self._pool is not None:
            self._pool.close()
        if self._trim_timer is not None:
            self._trim_timer.cancel()

    def pack(self, value: Any) -> Payload:
        """As `Carrier.pack`."""
        return payloads.pack(value)

    def unpack(self, payload: Payload) -> Any:
        """As `Carrier.unpack`."""
        return payloads.unpack(payload)

    def send(self, peer: str, message: AnyMessage) -> int:
        """Queue a message and return its size in bytes; 0 if the peer is gone, or is ourselves."""
        link = self._links.get(peer)
        if link is not None:
            return link.send(message, patient=type(message) in _PATIENT and message.patient)  # type: ignore[union-attr]
        if peer == self.name:
            self._loop.call_soon(self.receive, peer, message)
        return 0

    def send_at_once(self, peer: str, message: AnyMessage, before: Callable[[], None]) -> bool:
        """As `Link.send_at_once`."""
        link = self._links.get(peer)
        return link is not None and link.send_at_once(message, before)

    def outbox_bytes(self, peer: str) -> int:
        """Bytes for a peer that are still on this side."""
        link = self._links.get(peer)
        return 0 if link is None else link.outbox_bytes

    def bytes_received(self) -> dict[str, int]:
        """Peer to the bytes of all its messages so far, counted where they arrive."""
        return {peer: link.bytes_received for peer, link in self._links.items()}

    def saturation(self) -> dict[str, tuple[int, float]]:
        """As `SpeedMeter.saturation`."""
        found = {}
        for peer, link in self._links.items():
            if link.full_seconds:
                found[peer] = (link.full_bytes, link.full_seconds)
        return found

    def crowded(self, peers: Iterable[str]) -> bool:
        """As `Gauge.crowded`."""
        for peer in peers:
            link = self._links.get(peer)
            if link is not None and link.crowded:
                return True
        return False

    def when_roomy(self, call: Callable[[], None]) -> None:
        """As `Gauge.when_roomy`."""
        self._waiting_for_room.append(call)

    def _told_of_room(self) -> None:
        waiting, self._waiting_for_room = self._waiting_for_room, []
        for call in waiting:
            call()

    def new_array(self, shape: tuple[int, ...], described: Any) -> Any:
        """Make an array in shared memory, on any thread, for `values.give_new_arrays`; None if there is none for it."""
        return None if self._pool is None else self._pool.new_array(shape, described)

    def copy_of(self, array: Any) -> Any:
        """Copy an array into shared memory, on any thread, for `values.give_new_arrays`; None if it is not for that."""
        return None if self._pool is None else self._pool.copy_of(array)

    @property
    def shared_in_use(self) -> int:
        """Bytes of shared memory that hold something."""
        return 0 if self._pool is None else self._pool.in_use

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that this process holds for its large buffers, in use or not."""
        return 0 if self._pool is None else self._pool.size

    def _arrived(self, peer: str, message: Any) -> None:
        if type(message) is SiteLost:
            raise WireError("it told of the loss of a site, which only the supervisor may")
        self.receive(peer, message)

    def _grown(self) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed, and all is given back with the process.
            self._loop.call_soon_threadsafe(self._trim_later)

    def _array_ended(self) -> None:
        if self._pool is not None and not self._collecting:
            self._collecting = True
            with contextlib.suppress(RuntimeError):  # As above.
                self._loop.call_soon_threadsafe(self._collect, self._pool)

    def _collect(self, pool: SegmentPool) -> None:
        self._collecting = False
        pool.collect()

    def _trim_later(self) -> None:
        if self._trim_timer is None and self._pool is not None:
            self._trim_timer = self._loop.call_later(_IDLE_SECONDS, self._trim, self._pool, self._pool.placed)

    def _trim(self, pool: SegmentPool, placed_before: int) -> None:
        """Give back memory that was of no use for a while. There is no timer while there is no memory."""
        self._trim_timer = None
        if pool.placed == placed_before:
            pool.trim()
        if pool.size:
            self._trim_later()

    def _retire(self, segment: Segment) -> None:
        for link in self._links.values():
            link.forget(segment)


def _nobody(peer: str, message: AnyMessage) -> None:
    raise WireError("nobody is here to receive messages yet")
