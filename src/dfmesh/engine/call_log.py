"""Where a site notes which calls go on, so that somebody can tell after it was killed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dfmesh.netir import Frame


class CallLog(Protocol):
    """A record of calls that outlives the process that keeps it."""

    def started(self, job: str, transition: int, frame: Frame) -> int:
        """Note a call and return the slot in which it stands."""
        ...

    def all_started(self, job: str, transition: int, frames: Sequence[Frame]) -> list[int]:
        """Note calls and return their slots."""
        ...

    def ended(self, slot: int) -> None:
        """Strike out the call in a slot."""
        ...

    def all_ended(self, slots: list[int]) -> None:
        """Strike out the calls in these slots."""
        ...


class NoCallLog:
    """For targets whose sites cannot die alone."""

    def started(self, job: str, transition: int, frame: Frame) -> int:
        """Note nothing."""
        return 0

    def all_started(self, job: str, transition: int, frames: Sequence[Frame]) -> list[int]:
        """Note nothing."""
        return [0] * len(frames)

    def ended(self, slot: int) -> None:
        """Strike out nothing."""

    def all_ended(self, slots: list[int]) -> None:
        """Strike out nothing."""
