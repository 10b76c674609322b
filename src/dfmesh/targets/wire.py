"""Messages to bytes and back, for every target that moves bytes. Sans-IO: it owns no socket.

A stream of bytes is a sequence of frames: `length` and `kind`, then a body of that length. A message is msgpack;
its large buffers stand outside of it. The body of a message with buffers ends with a table that says of each one
where it is: behind the frame, in the order of the table, or in memory that both sides see.

Whoever reads must expect anything: whatever is no frame raises `WireError`, and the connection is to be closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import msgspec

from dfmesh.errors import DfmeshError

MESSAGE = 0xD8
"""No byte of a length as frames have it: who begins to read in the wrong place learns that from the first head."""
MESSAGE_WITH_BUFFERS = MESSAGE + 1
FIRST_NOTICE = MESSAGE + 2
"""Frames of this kind and above are no messages; what they say is up to the carrier."""
_END_OF_KINDS = MESSAGE + 8

IN_BAND = 0
"""Segment number of a buffer that follows its frame."""

LARGEST_FRAME = 2**31
LARGEST_BUFFER = 2**40
_HEADER = Struct("<IB")
_HEADER_SIZE = _HEADER.size
_put_header = _HEADER.pack_into
_BLANK_HEADER = bytes(_HEADER_SIZE)
_ENTRY = Struct("<IQQ")  # segment, offset, size
_COUNT = Struct("<I")
_BUFFER_CODE = 66
_READ_SIZE = 256 * 1024
_CHEAP_MOVE = 4096
_PROVIDED_LATE = 1024 * 1024


class WireError(DfmeshError):
    """Bytes that arrived are not what a peer of ours sends."""


class Attachment:
    """A large buffer of a value, on its way out or just arrived.

    Attributes:
        view: Its bytes, contiguous and flat.
        place: Where it is in shared memory (only the carrier knows what that means); None if it is not there.
    """

    __slots__ = ("place", "view")

    def __init__(self, view: memoryview, place: Any = None) -> None:
        self.view = view
        self.place = place


class Spot(msgspec.Struct, frozen=True, array_like=True):
    """Where the receiver finds a buffer.

    Attributes:
        segment: Number of a piece of shared memory; `IN_BAND` if the bytes follow the frame.
        offset: First byte in the segment.
        size: Bytes.
    """

    segment: int
    offset: int
    size: int


NO_MESSAGE = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError, MemoryError)
"""What decoding raises of bytes that are none."""


class FrameEncoder:
    """Encodes messages, for one thread at a time."""

    def __init__(self) -> None:
        self._left_out: list[Attachment] = []
        self._encoder = msgspec.msgpack.Encoder(enc_hook=self._leave_out)

    def begin_frame(self, message: Any, out: bytearray) -> list[Attachment]:
        """Append the frame of a message.

        Returns:
            The buffers that were left out of it. If there are any, `end_frame` must be called next.

        Raises:
            WireError: it has more than 2 GiB without its buffers, or holds what is no data. `out` is as before.
        """
        start = len(out)
        try:
            out += _BLANK_HEADER
            self._encoder.encode_into(message, out, -1)
            length = len(out) - start - _HEADER_SIZE
            if length > LARGEST_FRAME:
                raise _too_long(length)
            _put_header(out, start, length, MESSAGE)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            del out[start:]
            self._left_out = []
            raise WireError(f"a {type(message).__name__} message cannot be sent: {error}") from error
        found = self._left_out
        if found:
            self._left_out = []
        return found

    def end_frame(self, out: bytearray, start: int, spots: Sequence[Spot]) -> None:
        """Add the table of buffers to the frame that begins at `start`."""
        for spot in spots:
            out += _ENTRY.pack(spot.segment, spot.offset, spot.size)
        out += _COUNT.pack(len(spots))
        self._close(out, start, MESSAGE_WITH_BUFFERS)

    @staticmethod
    def _close(out: bytearray, start: int, kind: int) -> None:
        length = len(out) - start - _HEADER_SIZE
        if length > LARGEST_FRAME:
            raise _too_long(length)
        _put_header(out, start, length, kind)

    def _leave_out(self, value: Any) -> msgspec.msgpack.Ext:
        if type(value) is not Attachment:
            raise TypeError(f"{type(value).__name__} is not data")
        self._left_out.append(value)
        return msgspec.msgpack.Ext(_BUFFER_CODE, _COUNT.pack(len(self._left_out) - 1))


class Codec(FrameEncoder):
    """Encodes and decodes the messages of one union of tagged structs.

    Attributes:
        decode_plain: As `decode`, of a message without buffers, but raises one of `NO_MESSAGE`.
    """

    def __init__(self, messages: Any) -> None:
        """Prepare for a union.

        Args:
            messages: The union, such as `AnyMessage`.
        """
        super().__init__()
        self._arrived: Sequence[Attachment] = ()
        self.decode_plain = msgspec.msgpack.Decoder(messages, ext_hook=self._put_back).decode

    def decode(self, body: bytes | memoryview, attachments: Sequence[Attachment] = ()) -> Any:
        """Rebuild a message.

        Raises:
            WireError: the bytes are no message of the union.
        """
        if attachments:
            return self._decode_with(body, attachments)
        try:
            return self.decode_plain(body)
        except NO_MESSAGE as error:
            raise WireError(f"not a message: {error}") from error

    def _decode_with(self, body: bytes | memoryview, attachments: Sequence[Attachment]) -> Any:
        self._arrived = attachments
        try:
            return self.decode(body)
        finally:
            self._arrived = ()  # or the last large buffer would never be freed

    def _put_back(self, code: int, data: memoryview) -> Attachment:
        if code != _BUFFER_CODE or len(data) != _COUNT.size:
            raise ValueError("an extension that is not known")
        index: int = _COUNT.unpack(data)[0]
        if index >= len(self._arrived):
            raise ValueError("a buffer that did not come with it")
        return self._arrived[index]


def _too_long(length: int) -> ValueError:
    return ValueError(f"it has {length:,} bytes besides its large buffers, and may have {LARGEST_FRAME:,}")


def notice(kind: int, body: bytes) -> bytes:
    """Make a frame that is no message."""
    return _HEADER.pack(len(body), kind) + body


def to_bytes(codec: Codec, message: Any) -> bytes:
    """Encode one message with its buffers behind it, for carriers without shared memory."""
    out = bytearray()
    attachments = codec.begin_frame(message, out)
    if not attachments:
        return bytes(out)
    codec.end_frame(out, 0, [Spot(IN_BAND, 0, len(attachment.view)) for attachment in attachments])
    return b"".join([out, *(attachment.view for attachment in attachments)])


def _no_segments(spot: Spot) -> Attachment:
    raise WireError("a buffer in shared memory, on a connection that has none")


def _no_notices(kind: int, body: bytes) -> None:
    raise WireError(f"a frame of kind {kind}, which is not known")


class FrameReader:
    """Cuts a stream of bytes into messages. Its two methods are those of `asyncio.BufferedProtocol`.

    A buffer that follows its frame is received where it will stay, without a copy.

    Attributes:
        bytes_received: Size of all messages so far, heads of frames and buffers (wherever they are) included.
    """

    def __init__(
        self,
        codec: Codec,
        on_message: Callable[[Any], None],
        on_notice: Callable[[int, bytes], None] = _no_notices,
        find_shared: Callable[[Spot], Attachment] = _no_segments,
    ) -> None:
        """Begin at the start of a stream.

        Args:
            codec: Decodes the messages.
            on_message: Gets each message, in order, from within `buffer_updated`.
            on_notice: Gets kind and body of each frame that is no message, in order with the messages.
            find_shared: Gives the buffer in shared memory, or raises `WireError`.
        """
        self.bytes_received = 0
        self._codec = codec
        self._on_message = on_message
        self._on_notice = on_notice
        self._find_shared = find_shared
        self._use(bytearray(_READ_SIZE))
        self._start = 0
        self._end = 0
        self._waiting: tuple[bytes, list[Attachment]] | None = None
        self._missing: list[memoryview] = []  # parts of buffers that did not arrive yet, the next one last

    def _use(self, data: bytearray) -> None:
        self._data = data
        self._view = memoryview(data)

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Give the memory for the next bytes; never empty."""
        if self._missing:
            return self._missing[-1]
        return self._view[self._end :] if self._end else self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Take note that the next `nbytes` bytes are in the memory that `get_buffer` gave.

        Raises:
            WireError: they are no frames; nothing more can be read from this stream.
        """
        if self._missing:
            self._advance(nbytes)
            if not self._missing:
                self._complete()
            return
        self._end += nbytes
        self._parse()

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Read bytes that are somewhere else, at the price of a copy.

        Raises:
            WireError: as `buffer_updated`.
        """
        rest = memoryview(data).cast("B")
        while rest:
            room = self.get_buffer()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            del room
            self.buffer_updated(count)
            rest = rest[count:]

    def _parse(self) -> None:
        view = self._view
        head, unpack, decode, deliver = _HEADER_SIZE, _HEADER.unpack_from, self._codec.decode_plain, self._on_message
        start, end = self._start, self._end
        while end - start >= head:
            length, kind = unpack(view, start)
            begin = start + head
            stop = begin + length
            if stop > end:
                if length > LARGEST_FRAME:
                    raise WireError(f"a frame of {length:,} bytes")
                if not MESSAGE <= kind < _END_OF_KINDS:  # What seems to be missing may never come.
                    raise WireError(f"a frame of kind {kind}, which is not known")
                break
            self._start = start = stop
            if kind == MESSAGE:
                self.bytes_received += head + length
                try:
                    message = decode(view[begin:stop])
                except NO_MESSAGE as error:
                    raise WireError(f"not a message: {error}") from error
                deliver(message)
            elif kind == MESSAGE_WITH_BUFFERS:
                self._take_buffers(view[begin:stop])
                start = self._start
            else:
                self._on_notice(kind, bytes(view[begin:stop]))
        self._make_room(0 if end - start < head else stop - start)

    def _make_room(self, wanted: int) -> None:
        """Move what is left to the front; grow with what has arrived, not with what a head promises."""
        left = self._end - self._start
        room = len(self._data) - self._start
        if left == 0:
            self._start = self._end = 0
            if len(self._data) > _READ_SIZE:
                self._use(bytearray(_READ_SIZE))
        elif self._end == len(self._data) or (self._start and (left < _CHEAP_MOVE or wanted > room)):
            data = bytearray(max(_READ_SIZE, min(wanted, 2 * left)))
            data[:left] = self._view[self._start : self._end]
            self._use(data)
            self._start, self._end = 0, left

    def _take_buffers(self, body: memoryview) -> None:
        message, spots = _split_table(body)
        self.bytes_received += _HEADER.size + len(body) + sum(spot.size for spot in spots)
        try:
            attachments = [self._allocate(s) if s.segment == IN_BAND else self._find_shared(s) for s in spots]
        except (MemoryError, OverflowError) as error:
            raise WireError("a message with buffers larger than memory") from error
        self._waiting = (bytes(message), attachments)
        self._missing.reverse()
        while self._missing and self._start < self._end:
            target = self._missing[-1]
            count = min(len(target), self._end - self._start)
            target[:count] = self._view[self._start : self._start + count]
            self._start += count
            self._advance(count)
        if not self._missing:
            self._complete()

    def _allocate(self, spot: Spot) -> Attachment:
        if spot.size > LARGEST_BUFFER:
            raise WireError(f"a buffer of {spot.size:,} bytes")
        memory = _new_memory(spot.size)
        if spot.size:
            self._missing.append(memory)
        return Attachment(memory.toreadonly())

    def _advance(self, count: int) -> None:
        rest = self._missing.pop()[count:]
        if rest:
            self._missing.append(rest)

    def _complete(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._on_message(self._codec.decode(*waiting))


def _new_memory(size: int) -> memoryview:
    """Give memory for a buffer to come. Much of it is provided by the system as it arrives, not as it is promised."""
    if size < _PROVIDED_LATE:
        return memoryview(bytearray(size))
    import numpy as np

    memory: Any = np.empty(size, np.uint8)
    return memoryview(memory)


def _split_table(body: memoryview) -> tuple[memoryview, list[Spot]]:
    """Take the body of a message with buffers apart."""
    end = len(body) - _COUNT.size
    if end < 0:
        raise WireError("a message with buffers that has no table")
    start = end - _COUNT.unpack_from(body, end)[0] * _ENTRY.size
    if start < 0:
        raise WireError("a message with a longer table of buffers than itself")
    return body[:start], [Spot(*entry) for entry in _ENTRY.iter_unpack(body[start:end])]
