"""A message with large buffers on its way out: some in shared memory, the others behind it in the stream."""

from __future__ import annotations

from collections.abc import Callable

from dfmesh.targets.local.shared import Place
from dfmesh.targets.wire import IN_BAND, Attachment, Codec, Spot


def complete(
    codec: Codec, frame: bytearray, attachments: list[Attachment], places: list[Place | None]
) -> list[memoryview]:
    """Say in a frame where its buffers are.

    Args:
        codec: Completes the frame.
        frame: As `Codec.begin_frame` made it, alone.
        attachments: Its buffers.
        places: Where each is in shared memory; None if it travels in the stream.

    Returns:
        What is to go into the stream behind the frame.
    """
    spots, behind = [], []
    for attachment, place in zip(attachments, places, strict=True):
        view = attachment.view
        if place is not None:
            spots.append(Spot(place.segment.number, place.offset, len(view)))
        else:
            spots.append(Spot(IN_BAND, 0, len(view)))
            if len(view):
                behind.append(view)
    codec.end_frame(frame, 0, spots)
    return behind


class AttachedFrame:
    """A frame with buffers that are still being copied to where it says that they are.

    Attributes:
        size: Bytes of the message, with all buffers wherever they are.
        places: Where the buffers in shared memory are, or will be.
    """

    def __init__(
        self, codec: Codec, frame: bytearray, attachments: list[Attachment], places: list[Place | None]
    ) -> None:
        """Begin to wait for the copies.

        Args:
            codec: Completes the frame.
            frame: As `Codec.begin_frame` made it, alone.
            attachments: Its buffers.
            places: Where each will be in shared memory; None if it is to travel in the stream.
        """
        self._codec = codec
        self._begun = frame
        self._attachments = attachments
        self._places = places
        self._completed = self._complete()
        completed, behind = self._completed
        self._length = len(completed) + sum(map(len, behind))
        self.size = len(completed) + sum(len(attachment.view) for attachment in attachments)
        self.places = [place for place in places if place is not None]

    def __len__(self) -> int:
        """Give the bytes that go into the stream if nothing fails."""
        return self._length

    @property
    def copying(self) -> bool:
        """Whether some of its buffers are not in shared memory yet."""
        return any(place.is_being_copied for place in self.places)

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
        frame = bytearray(self._begun)
        return frame, complete(self._codec, frame, self._attachments, self._places)
