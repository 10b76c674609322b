"""HomeFrames: the parameter sets of one job at its homesite, from when they come until all of them is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from dfmesh.engine.message_parts import Failure, Payload
from dfmesh.engine.messages import CloseParameters, OpenFrame
from dfmesh.netir import Frame, NetIR

MAX_OPEN_FRAMES = 256
"""How many parameter sets of a job run at a time; the others wait at the homesite."""


class HomeFrames:
    """Opens them in order, and counts what the sites report and the results that come. Part of a HomeJob, and as pure.

    Attributes:
        closed: Whether no more parameter sets come from the client.
        opened_any: Whether sites were told to run some.
        next_frame: The least number that the next one may have.
    """

    __slots__ = (
        "_closed_told",
        "_failures",
        "_missing",
        "_nets",
        "_parameters",
        "_queued",
        "_repeats",
        "_sites",
        "_unreported",
        "closed",
        "next_frame",
        "opened_any",
    )

    def __init__(self, nets: Mapping[str, NetIR], sites: tuple[str, ...], *, repeats: bool) -> None:
        """Begin with none.

        Args:
            nets: Nets by site.
            sites: Those that take part.
            repeats: Whether the job may be begun again, so that what was given and what failed in open ones is kept.
        """
        self.closed = self._closed_told = False
        self.opened_any = False
        self.next_frame = 0
        self._nets = nets
        self._sites = sites
        self._repeats = repeats
        self._queued: deque[tuple[Frame, dict[str, Payload]]] = deque()
        # Of open ones: sites that have not reported, and how many results have been reported and have not come.
        self._unreported: dict[Frame, set[str]] = {}
        self._missing: dict[Frame, int] = {}
        self._parameters: dict[Frame, dict[str, Payload]] = {}
        self._failures: dict[Frame, list[Failure]] = {}

    @property
    def any_open(self) -> bool:
        """Whether some are open."""
        return bool(self._unreported)

    @property
    def all_done(self) -> bool:
        """Whether all are done, and no more come."""
        return self.closed and not self._queued and not self._unreported

    @property
    def can_open(self) -> bool:
        """Whether the sites are to be told of further ones, or of the end of all."""
        return bool(self._queued) or not self._closed_told

    def add(self, frame: Frame, parameters: dict[str, Payload]) -> bool:
        """Queue one. Each must have a number of its own, and they are told apart by being in order.

        Returns:
            Whether that is so.
        """
        if len(frame) != 1 or frame[0] < self.next_frame:
            return False
        self.next_frame = frame[0] + 1
        self._queued.append((frame, parameters))
        return True

    def open(self, attempt: str) -> list[tuple[str, OpenFrame | CloseParameters]]:
        """Open as many as may run at a time; gives what the sites are to be told."""
        sends: list[tuple[str, OpenFrame | CloseParameters]] = []
        while self._queued and len(self._unreported) < MAX_OPEN_FRAMES:
            frame, parameters = self._queued.popleft()
            self.opened_any = True
            self._unreported[frame] = set(self._sites)
            self._missing[frame] = 0
            if self._repeats:
                self._parameters[frame] = parameters
            self._closed_told = last = self.closed and not self._queued
            for site in self._sites:
                wanted = self._nets[site].parameters
                given = {name: payload for name, payload in parameters.items() if name in wanted}
                sends.append((site, OpenFrame(attempt, frame, given, last)))
        if self.closed and not self._queued and not self._closed_told:
            self._closed_told = True
            sends += [(site, CloseParameters(attempt)) for site in self._sites]
        return sends

    def results_came(self, frame: Frame, count: int) -> bool:
        """Count results; False if theirs is not open."""
        if frame not in self._missing:
            return False
        self._missing[frame] -= count
        return True

    def reported(self, site: str, frame: Frame, yields: int) -> None:
        """Take note that a site has done all of one, and sent so many results in it."""
        if site in self._unreported.get(frame, ()):
            self._unreported[frame].discard(site)
            self._missing[frame] += yields

    def failed(self, failure: Failure) -> None:
        """Keep what failed in one, for as long as it is open."""
        self._failures.setdefault(failure.frame[:1], []).append(failure)

    def finish(self, frame: Frame) -> bool:
        """Close one if all sites have reported it and all results are there; says whether that is so."""
        if self._unreported.get(frame, True) or self._missing[frame]:
            return False
        del self._unreported[frame]
        del self._missing[frame]
        return True

    def forget(self, frame: Frame) -> tuple[Failure, ...]:
        """Keep nothing of one that has been finished; gives what failed in it."""
        del self._parameters[frame]
        return tuple(self._failures.pop(frame, ()))

    def begin_again(self) -> set[Frame]:
        """Queue those that are open again, ahead of the others; gives them."""
        unfinished = self._unreported
        for frame in unfinished:
            self._failures.pop(frame, None)
        self._queued.extendleft((frame, self._parameters[frame]) for frame in reversed(unfinished))
        self._unreported, self._missing = {}, {}
        self._closed_told = False
        return set(unfinished)
