"""What the engine needs from whatever moves messages between peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast

from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage


class Carrier(Protocol):
    """One peer's end of a carrier. All calls are made on the event loop of that peer and never block.

    Messages from one peer to another arrive once and in order while both live.
    """

    def pack(self, value: Any) -> Payload:
        """Make a value ready to be sent, once for all its destinations.

        Raises:
            ValueEncodingError: the value may not leave the process.
        """
        ...

    def unpack(self, payload: Payload) -> Any:
        """Give back the value of a payload that arrived.

        Raises:
            ValueDecodingError: it is not a value.
        """
        ...

    def send(self, peer: str, message: AnyMessage) -> int:
        """Queue a message and return its size on the carrier in bytes.

        A message to a peer that is not there is dropped, and 0 returned: whoever supervises that peer tells of
        its loss.
        """
        ...


class Gauge(Protocol):
    """A carrier that knows when a connection has more to take than it takes."""

    def crowded(self, peers: Iterable[str]) -> bool:
        """Tell whether so much waits for one of these peers that no more should be made for it now."""
        ...

    def when_roomy(self, call: Callable[[], None]) -> None:
        """Call a function once, when a connection is crowded no longer; others may still be."""
        ...


class RoomyCarrier:
    """The gauge of a carrier on which nothing waits."""

    def crowded(self, peers: Iterable[str]) -> bool:
        """As `Gauge.crowded`: never."""
        return False

    def when_roomy(self, call: Callable[[], None]) -> None:
        """As `Gauge.when_roomy`; there is nothing to wait for."""


_ROOMY = RoomyCarrier()


def gauge(carrier: Carrier) -> Gauge:
    """Give the gauge of a carrier."""
    return cast("Gauge", carrier) if hasattr(carrier, "when_roomy") else _ROOMY


class SpeedMeter(Protocol):
    """A carrier that knows how fast its connections are, from the times when they had more to take than they could."""

    def saturation(self) -> Mapping[str, tuple[int, float]]:
        """Give, per peer, the bytes that its connection took in such times, and the seconds; both only grow."""
        ...


def saturation(carrier: Carrier) -> Mapping[str, tuple[int, float]]:
    """Give what a carrier knows of the speed of its connections; nothing if it is no `SpeedMeter`."""
    measure = getattr(carrier, "saturation", None)  # An isinstance() with a protocol takes longer than all the rest.
    return measure() if measure is not None else {}
