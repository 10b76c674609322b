"""What a predicted run can be short of: links that carry one thing at a time, and workers of sites."""

from __future__ import annotations

from collections import deque
from typing import Any

from dfmesh.session.prediction.chains import Chain, Stage, extended


class Wire:
    """The way from one site to another: first in, first out, one thing at a time.

    Attributes:
        stage: Its place on the critical path.
        latency: Seconds on the way, during which the next thing may follow.
        per_byte: Seconds of sending per byte.
        busy: Seconds it was sending.
        size: Bytes that it carried.
        tokens: Things that it carried.
    """

    __slots__ = ("_before", "_free", "_sending", "busy", "latency", "per_byte", "size", "stage", "tokens")

    def __init__(self, source: str, destination: str, latency: float, per_byte: float) -> None:
        self.stage = Stage("send", source, destination=destination)
        self.latency = latency
        self.per_byte = per_byte
        self.busy = 0.0
        self.size = 0.0
        self.tokens = 0
        self._free = 0.0
        self._before: Chain = None
        self._sending = 0.0

    def carry(self, now: float, size: float, chain: Chain) -> tuple[float, Chain]:
        """Take something along; gives when it arrives, and the chain that leads there."""
        sending = size * self.per_byte
        if self._free > now:  # What waits has the thing before it as its cause.
            chain, now = extended(self._before, self.stage, self._sending), self._free
        self._free = free = now + sending
        self._before = chain
        self._sending = sending
        self.busy += sending
        self.size += size
        self.tokens += 1
        return free + self.latency, extended(chain, self.stage, sending + self.latency)


class Site:
    """A site that computes.

    Attributes:
        name: Its name.
        calls: Calls that it made.
        work: Seconds of all its calls.
        busy: Seconds in which at least one call went on.
        lag: Seconds until it has time for the result of a call.
        stage: Place of that on the critical path.
    """

    __slots__ = ("_running", "_since", "busy", "calls", "lag", "name", "stage", "work")

    def __init__(self, name: str, lag: float) -> None:
        self.name = name
        self.lag = lag
        self.stage = Stage("lag", name)
        self.calls = 0
        self.work = 0.0
        self.busy = 0.0
        self._running = 0
        self._since = 0.0

    def begin(self, now: float, seconds: float) -> None:
        """A call begins."""
        if not self._running:
            self._since = now
        self._running += 1
        self.calls += 1
        self.work += seconds

    def end(self, now: float) -> None:
        """A call has ended."""
        self._running -= 1
        if not self._running:
            self.busy += now - self._since


class Workers:
    """Those of a site who make calls.

    Attributes:
        site: The site.
        free: How many have nothing to do.
        waiting: Step and frame of each call for which there was nobody, in order.
    """

    __slots__ = ("free", "site", "waiting")

    def __init__(self, site: Site, number: int) -> None:
        self.site = site
        self.free = number
        self.waiting: deque[tuple[Any, Any]] = deque()


class Loader:
    """The libraries of an adapter at a freshly started site; the first call loads them, others wait for that.

    Attributes:
        stage: Its place on the critical path.
        seconds: How long it takes.
        ready: When it is done; None before the first call.
    """

    __slots__ = ("ready", "seconds", "stage")

    def __init__(self, stage: Stage, seconds: float) -> None:
        self.stage = stage
        self.seconds = seconds
        self.ready: float | None = None

    def left(self, now: float) -> float:
        """Give the seconds that a call which begins now has to wait."""
        if self.ready is None:
            self.ready = now + self.seconds
        return max(0.0, self.ready - now)
