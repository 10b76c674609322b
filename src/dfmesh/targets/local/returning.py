"""What one peer has lent to us of its shared memory, and giving it back when nobody here looks at it any more.

To be told of every single view that has ended would cost the peer as much as the view itself did. So what is small
waits a moment for a message that goes there anyway; what is large goes back at once, since the peer would have to find
as much fresh memory meanwhile, which is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from struct import Struct
from struct import error as StructError  # noqa: N812

from dfmesh.targets.local.shared import COPIED_AT_ONCE, MappedSegments
from dfmesh.targets.wire import Spot, WireError

PATIENCE = 0.001
"""Seconds that a small piece of memory waits for a message to go back with."""

_NOBODY, _SOMEBODY, _IN_A_HURRY = range(3)
_GIVEN_BACK = Struct("<IQ")  # number of the segment, offset


class Returning:
    """The memory that one peer lent to us during one life of the connection.

    Attributes:
        mapped: The peer's segments.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[Returning], None]) -> None:
        """Begin with nothing; on the event loop.

        Args:
            loop: The event loop.
            on_due: Called on it, with this, when something has waited long enough: somebody is to `take` it.
        """
        self.mapped = MappedSegments(self._view_ended)
        self._loop = loop
        self._thread = threading.get_ident()
        self._on_due = on_due
        self._ended: deque[Spot] = deque()
        self._told = _NOBODY

    @property
    def waiting(self) -> bool:
        """Whether there is something to give back."""
        return bool(self._ended)

    def take(self) -> bytes:
        """Give what is to be given back, for `read` at the other side."""
        self._told = _NOBODY
        parts = []
        while self._ended:
            spot = self._ended.popleft()
            self.mapped.let_go(spot)
            parts.append(_GIVEN_BACK.pack(spot.segment, spot.offset))
        return b"".join(parts)

    def _view_ended(self, spot: Spot) -> None:
        """Runs in any thread, at any moment: the garbage collector calls it."""
        self._ended.append(spot)
        wanted = _IN_A_HURRY if spot.size > COPIED_AT_ONCE else _SOMEBODY
        if self._told >= wanted:
            return
        self._told = wanted
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._told_of_end)
        else:
            with contextlib.suppress(RuntimeError):  # The loop is closed, and the connection with it.
                self._loop.call_soon_threadsafe(self._told_of_end)

    def _told_of_end(self) -> None:
        if self._told == _IN_A_HURRY:
            self._on_due(self)
        elif self._told:
            self._loop.call_later(PATIENCE, self._due)

    def _due(self) -> None:
        if self._ended:
            self._on_due(self)


def read(body: bytes) -> list[tuple[int, int]]:
    """Read what was given back: number of the segment and offset of each place.

    Raises:
        WireError: it is garbled.
    """
    try:
        return list(_GIVEN_BACK.iter_unpack(body))
    except StructError as error:
        raise WireError(f"a garbled list of what it gave back: {error}") from error
