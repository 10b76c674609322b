"""What one peer has of the shared memory of this process, its own and what others lent to it."""

from __future__ import annotations

from collections.abc import Callable

from dfmesh.targets.local.shared import SHARE_FROM, Place, Segment, SegmentPool
from dfmesh.targets.wire import Attachment, WireError


class Lending:
    """The places that a peer has views of, and the segments that it knows.

    A place is kept until the peer has given it back as often as it was lent.
    """

    def __init__(self, pool: SegmentPool | None, announce: Callable[[Segment], None]) -> None:
        """Begin with nothing.

        Args:
            pool: Where buffers are put; None if they all travel in the byte stream.
            announce: Gets each segment before the first place in it is lent.
        """
        self._pool = pool
        self._announce = announce
        self._known: set[int] = set()
        self._lent: dict[tuple[int, int], list[Place]] = {}

    def place(self, attachment: Attachment) -> Place | None:
        """Put a buffer into shared memory, unless it is there; None if it is to travel in the byte stream."""
        if self._pool is None or len(attachment.view) < SHARE_FROM:
            return None
        if attachment.place is None:
            attachment.place = self._pool.place(attachment.view)
        place: Place | None = attachment.place
        return None if place is None or (place.copying is not None and place.copying.failed) else place

    def lend(self, place: Place) -> None:
        """Note that the peer is about to be told of a place."""
        segment = place.segment
        self._lent.setdefault((segment.number, place.offset), []).append(place)
        if segment.number not in self._known:
            self._known.add(segment.number)
            self._announce(segment)

    def take_back(self, place: Place) -> None:
        """Note that the peer was not told of a place after all."""
        if (place.segment.number, place.offset) in self._lent:
            self.returned(place.segment.number, place.offset)

    def returned(self, number: int, offset: int) -> None:
        """Note that the peer has given a place back.

        Raises:
            WireError: it did not have it.
        """
        places = self._lent.get((number, offset))
        if not places:
            raise WireError("it gave back memory that it did not have")
        places.pop()
        if not places:
            del self._lent[number, offset]

    def all_returned(self) -> None:
        """Note that the peer is gone."""
        self._lent.clear()

    def forget(self, segment: Segment) -> bool:
        """Forget a segment that is given up; says whether the peer knows it."""
        known = segment.number in self._known
        self._known.discard(segment.number)
        return known
