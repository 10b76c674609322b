"""What the supervisor and a site process say to each other, beside the messages between peers."""

from __future__ import annotations

import msgspec

from dfmesh.netir import Frame


class Control(msgspec.Struct, array_like=True, frozen=True, tag_field="control"):
    """Base of what is said on the control connection."""


# From the supervisor to a site.


class Introduce(Control, frozen=True, tag=1):
    """Here is a connection to a peer; its descriptor comes along, or it is to be made.

    Attributes:
        peer: Name of the peer.
        generation: Which life of the peer it is.
        ticket: Secret that both ends of a TCP connection know; empty if a descriptor came along.
        port: Loopback port to call; 0 to be called by the peer.
    """

    peer: str
    generation: int
    ticket: bytes = b""
    port: int = 0


class Lost(Control, frozen=True, tag=2):
    """A site died. Answered by `LossNoted` with the same number once the engine here knows."""

    number: int
    site: str
    reason: str
    running: tuple[tuple[str, int, Frame], ...]


class Stop(Control, frozen=True, tag=3):
    """Cancel everything and exit."""


class AskTraffic(Control, frozen=True, tag=4):
    """Answered by `Traffic`."""


# From a site to the supervisor.


class Ready(Control, frozen=True, tag=10):
    """The site has read its configuration and may be introduced to others.

    Attributes:
        port: Loopback port on which it can be called; 0 if it takes descriptors.
    """

    port: int = 0


class LossNoted(Control, frozen=True, tag=11):
    """Answers `Lost`: everything that is sent to the site from now on is for its next life."""

    number: int


class LinkBroken(Control, frozen=True, tag=12):
    """The connection to a peer broke; the peer is to blame if it sent garbage."""

    peer: str
    generation: int
    reason: str
    to_blame: bool


class Traffic(Control, frozen=True, tag=13):
    """What has arrived here so far: peer to bytes of its messages."""

    received: dict[str, int]


AnyControl = Introduce | Lost | Stop | AskTraffic | Ready | LossNoted | LinkBroken | Traffic


class SiteArguments(msgspec.Struct, frozen=True):
    """What a site process is started with.

    Attributes:
        homesite: Name of the homesite.
        peers: All other sites.
        client: Process id of the client, without which the site is not to live.
        control: Descriptor of the control connection.
        call_by_port: Whether peers are called on loopback ports, instead of getting sockets handed over.
        lifeline: Read end of a pipe that closes when the client dies.
        calls: Descriptor of the table of calls.
        path: The client's `sys.path`.
        log_level: From which level on to log; empty to leave that to the adapters.
        beat_seconds: How often to say that the event loop turns; 0 for never.
    """

    homesite: str
    peers: tuple[str, ...]
    client: int
    control: int
    call_by_port: bool
    lifeline: int
    calls: int
    path: tuple[str, ...]
    log_level: str = ""
    beat_seconds: float = 0.0
