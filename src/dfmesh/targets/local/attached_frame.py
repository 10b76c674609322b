"""A message with large buffers on its way out: some in shared memory, the others behind it in the stream."""

from __future__ import annotations

from collections.abc import Callable

from dfmesh.targets.local.shared import Place
from dfmesh.targets.wire import IN_BAND, Attachment, Codec, Spot


class AttachedFrame:
    """A frame that is complete when its buffers are where it says.

    Attributes:
        size: Bytes of the message, with all buffers wherever they are.
        places: Where the buffers in shared memory are, or will be.
    """

    def __init__(
        self, codec: Codec, frame: bytearray, attachments: list[Attachment], places: list[Place | None]
    ) -> None:
        """Say in a frame where its buffers are.

        Args:
            codec: Completes the frame.
            frame: As `Codec.begin_frame` made it, alone.
            attachments: Its buffers.
            places: Where each is in shared memory; None if it is to travel in the stream.
        """
        self._codec = codec
        self._begun = frame
        self._attachments = attachments
        self._places = places
        self._completed = self._complete()
        frame, behind = self._completed
        self._length = len(frame) + sum(map(len, behind))
        self.size = len(frame) + sum(len(attachment.view) for attachment in attachments)
        self.places = [place for place in places if place is not None]

    def __len__(self) -> int:
        """Give the bytes that go into the stream if nothing fails."""
        return self._length

    @property
    def copying(self) -> bool:
        """Whether some of its buffers are not in shared memory yet."""
        return any(place.copying is not None and not place.copying.over for place in self.places)

    def when_copied(self, call: Callable[[], None]) -> None:
        """Have a function called whenever one of its buffers has been copied, or could not be."""
        for place in self.places:
            if place.copying is not None and not place.copying.over:
                place.copying.when_over(call)

    def complete(self, take_back: Callable[[Place], None]) -> tuple[bytearray, list[memoryview]]:
        """Give what goes into the stream: the frame, and the buffers behind it. Nothing may still be being copied.

        Args:
            take_back: Gets the places that are not used, because there was no memory for a copy.
        """
        failed = [place for place in self.places if place.copying is not None and place.copying.failed]
        if failed:
            for place in failed:
                take_back(place)
            self._places = [None if place in failed else place for place in self._places]
            self._completed = self._complete()
        return self._completed

    def _complete(self) -> tuple[bytearray, list[memoryview]]:
        views = [attachment.view for attachment in self._attachments]
        spots = [
            Spot(IN_BAND, 0, len(view)) if place is None else Spot(place.segment.number, place.offset, len(view))
            for view, place in zip(views, self._places, strict=True)
        ]
        frame = bytearray(self._begun)
        self._codec.end_frame(frame, 0, spots)
        return frame, [view for view, place in zip(views, self._places, strict=True) if place is None and len(view)]
