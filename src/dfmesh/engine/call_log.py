"""Where a site notes which calls go on, so that somebody can tell after it was killed."""

from __future__ import annotations

from typing import Protocol

from dfmesh.engine.frame_run import FrameRun
from dfmesh.netir import Frame

RUN = 256
"""Most calls in one slot."""


class CallLog(Protocol):
    """A record of calls that outlives the process that keeps it."""

    def started(self, job: str, transition: int, frame: Frame) -> int:
        """Note a call and return the slot in which it stands."""
        ...

    def run_started(self, job: str, transition: int, frames: FrameRun) -> int:
        """Note at most `RUN` calls in one slot, which is returned."""
        ...

    def run_left(self, slot: int, left: int) -> None:
        """Note which of the calls in a slot still go on, as bits from the lowest on."""
        ...

    def ended(self, slot: int) -> None:
        """Strike out what is in a slot."""
        ...


class NoCallLog:
    """For targets whose sites cannot die alone."""

    def started(self, job: str, transition: int, frame: Frame) -> int:
        """Note nothing."""
        return 0

    def run_started(self, job: str, transition: int, frames: FrameRun) -> int:
        """Note nothing."""
        return 0

    def run_left(self, slot: int, left: int) -> None:
        """Note nothing."""

    def ended(self, slot: int) -> None:
        """Strike out nothing."""
