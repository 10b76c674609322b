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

    @property
    def copied(self) -> int:
        """Bytes that were copied on the event loop so far."""
        return 0 if self._pool is None else self._pool.copied

    def lend(self, attachment: Attachment) -> Place | None:
        """Put a buffer into shared memory, unless it is there, and note that the peer is about to be told of it.

        Returns:
            Where it is, or will be; None if it is to travel in the byte stream.
        """
        place: Place | None = attachment.place
        if place is None:
            if self._pool is None or len(attachment.view) < SHARE_FROM:
                return None
            place = attachment.place = self._pool.place(attachment.view)
            if place is None:
                return None
        elif self._pool is None or (place.copying is not None and place.copying.failed):
            return None
        segment = place.segment
        number = segment.number
        where = number, place.offset
        lent = self._lent.get(where)
        if lent is None:
            self._lent[where] = [place]
        else:
            lent.append(place)
        if number not in self._known:
            self._known.add(number)
            self._announce(segment)
        return place

    def take_back(self, place: Place) -> None:
        """Note that the peer was not told of a place after all."""
        where = place.segment.number, place.offset
        if where in self._lent:
            self.returned(where)

    def returned(self, where: tuple[int, int]) -> None:
        """Note that the peer has given a place back.

        Args:
            where: Number of the segment, and offset.

        Raises:
            WireError: it did not have it.
        """
        places = self._lent.get(where)
        if not places:
            raise WireError("it gave back memory that it did not have")
        places.pop()
        if not places:
            del self._lent[where]

    def clear(self) -> None:
        """Note that the peer is gone."""
        self._lent.clear()

    def forget(self, segment: Segment) -> bool:
        """Forget a segment that is given up; says whether the peer knows it."""
        known = segment.number in self._known
        self._known.discard(segment.number)
        return known
