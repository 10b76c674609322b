"""One connection between two peers: batches, descriptors, shared memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from array import array
from collections import deque
from collections.abc import Callable
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any

from dfmesh.targets.local.attached_frame import AttachedFrame, complete
from dfmesh.targets.local.lending import Lending
from dfmesh.targets.local.returning import Returning, read
from dfmesh.targets.local.shared import Segment, SegmentPool
from dfmesh.targets.wire import FIRST_NOTICE, Attachment, Codec, FrameEncoder, FrameReader, Spot, WireError, notice

_SEGMENT, _RELEASE, _FORGET = range(FIRST_NOTICE, FIRST_NOTICE + 3)
_SEGMENT_BODY = Struct("<IQ")  # number, size; its descriptor comes with the frame
_FORGET_BODY = Struct("<I")  # number
_SOCKET_BUFFER = 1024 * 1024
_WRITE_AT_ONCE = 4 * 1024 * 1024
_WRITE_EARLY = 2 * 1024 * 1024
_MOST_DESCRIPTORS = 64

CROWDED_BYTES = 8 * 1024 * 1024
"""Bytes that wait for a peer from which on no more work for it is begun here."""

PATIENCE = 0.001
"""Seconds that a message which nobody waits for may wait for another one: to wake a process twice costs more."""

ROOMY_BYTES = 2 * 1024 * 1024
"""Bytes that may still wait when work is begun again."""
_DESCRIPTOR_ROOM = socket.CMSG_SPACE(4 * array("i").itemsize) if hasattr(socket, "CMSG_SPACE") else 0


class _WithDescriptor:
    """Bytes that carry a descriptor with them, and what owns it until it is sent."""

    __slots__ = ("_owner", "data", "descriptor")

    def __init__(self, data: bytes, descriptor: int, owner: socket.socket | Segment) -> None:
        self.data = data
        self.descriptor = descriptor
        self._owner = owner

    def __len__(self) -> int:
        return len(self.data)

    def done(self) -> None:
        """Close our copy of a connection that was handed over; a segment stays."""
        if isinstance(self._owner, socket.socket):
            self._owner.close()


Chunk = bytearray | memoryview | bytes | _WithDescriptor | AttachedFrame


class Link:
    """Our end of the connection to one peer. Messages arrive once and in order while both ends live.

    It exists before its connection does: what is sent meanwhile waits for `attach`. After the connection broke,
    messages are dropped until `detach`, which says that the loss of the peer has been dealt with; from then on they
    wait for the next one.

    Attributes:
        peer: Name of the peer; the one who made the connection vouches for it.
        generation: Which life of the peer this is, as told to `attach`.
        full_bytes: Bytes taken by the connection while more was waiting than it could take.
        full_seconds: How long that was; together they say how fast it is.
        outbox_bytes: Bytes of messages that the peer's system has not taken yet.
        crowded: Whether there are, or were a moment ago, so many of them that nobody should make more.
    """

    def __init__(
        self,
        peer: str,
        codec: Codec,
        on_message: Callable[[str, Any], None],
        on_broken: Callable[[Link, str, bool], None],
        *,
        pool: SegmentPool | None = None,
        on_forgotten: Callable[[Segment], None] = lambda segment: None,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a link that waits for its connection.

        Args:
            peer: Name of the peer.
            codec: Of the messages.
            on_message: Gets the peer's name and each of its messages.
            on_broken: Gets the link, the reason, and whether the peer is to blame, when the connection breaks other
                than by `detach`.
            pool: For large buffers, if the connection will carry descriptors; without one they travel in the byte
                stream.
            on_forgotten: Gets a segment that the peer gave up.
            on_room: Called when the link is no longer `crowded`.
        """
        self.peer = peer
        self.generation = 0
        self.full_bytes = 0
        self.full_seconds = 0.0
        self._full_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._codec = codec
        self._on_message = on_message
        self._on_broken = on_broken
        self._pool = pool
        self._on_forgotten = on_forgotten
        self._on_room = on_room
        self._received_before = 0
        self._socket: socket.socket | None = None
        self._writing = threading.Lock()  # Held by who writes; `send_at_once` may do so on any thread.
        self._direct_encoder = FrameEncoder()
        self._detaching = False
        self._patient = False
        self._reset()

    def _reset(self) -> None:
        self._broken = False
        self._queue: deque[Chunk] = deque()
        self._tail: bytearray | None = None
        self.outbox_bytes = 0
        self._unwritten = 0  # bytes copied into shared memory of which the peer was not told
        self.crowded = False
        self._scheduled = True  # a flush will come: here from `attach`
        self._blocked = False
        self._shares_descriptors = True
        self._descriptors: deque[int] = deque()
        self._lending = Lending(self._pool, self._announce)
        self._returning = Returning(self._loop, self._give_back)
        self._reader = FrameReader(
            self._codec, partial(self._on_message, self.peer), self._on_notice, self._find_shared
        )

    @property
    def connected(self) -> bool:
        """Whether there is a connection now."""
        return self._socket is not None

    @property
    def bytes_received(self) -> int:
        """Size of all messages of this peer so far, in all of its lives."""
        return self._received_before + self._reader.bytes_received

    def attach(self, connection: socket.socket, generation: int = 0) -> None:
        """Use a connection, of which the other end is the peer, and send what has been waiting."""
        if self._socket is not None or self._broken:
            self.detach()
        connection.setblocking(False)
        self._shares_descriptors = connection.family != socket.AF_INET
        if self._shares_descriptors:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection
        self.generation = generation
        self._loop.add_reader(connection.fileno(), self._read)
        self._flush()

    def detach(self) -> None:
        """Deliver what has already arrived, close the connection, and wait for the next one.

        What was queued, and what the peer was lent, is dropped: it died.
        """
        self._detaching = True
        while self._read():
            pass
        self._close()
        self._detaching = False
        self._clear_queue()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._received_before += self._reader.bytes_received
        self._reset()

    def _close(self) -> None:
        with self._writing:
            connection, self._socket = self._socket, None
        if connection is not None:
            self._loop.remove_reader(connection.fileno())
            if self._blocked:
                self._loop.remove_writer(connection.fileno())
            connection.close()

    def _break(self, reason: str, to_blame: bool = False) -> None:
        if self._socket is None:
            return
        self._close()
        self._broken = True
        self._clear_queue()
        self._lending.clear()
        if not self._detaching:
            self._on_broken(self, reason, to_blame)

    def _clear_queue(self) -> None:
        for chunk in self._queue:
            if isinstance(chunk, _WithDescriptor):
                chunk.done()
        self._queue.clear()
        self._tail = None
        self.outbox_bytes = 0
        self._make_room()

    def _make_room(self) -> None:
        if self.crowded:
            self.crowded = False
            self._loop.call_soon(self._on_room)

    # Sending.

    def send(self, message: Any, *, patient: bool = False) -> int:
        """Queue a message and return its size, with buffers; 0 if the peer is gone.

        Args:
            message: The message.
            patient: Whether it may wait a moment for another one to go with.

        Raises:
            WireError: the message cannot be encoded; nothing was queued.
        """
        if self._broken:
            return 0
        out = self._tail
        if out is None:
            out = self._tail = bytearray()
            self._queue.append(out)
        start = len(out)
        found = self._codec.begin_frame(message, out)
        if found:
            size = self._add_buffers(out, start, found)
        else:
            size = len(out) - start
            self.outbox_bytes += size
        if self.outbox_bytes > CROWDED_BYTES:
            self.crowded = True
        if not self._scheduled:
            if patient:
                self._be_patient()
            else:
                self._schedule()
        return size

    def send_at_once(self, message: Any, before: Callable[[], None]) -> bool:
        """Send a message from the thread of the caller, any thread, if nothing waits to be sent before it.

        Args:
            message: The message.
            before: Called just before it is sent. Until `send_at_once` returns, the connection stays the same.

        Returns:
            Whether it was sent; if not, `before` was not called either, and `send` is what can be done.
        """
        if not self._writing.acquire(blocking=False):
            return False
        try:
            connection = self._socket
            if connection is None or self._queue or self._scheduled:
                return False
            frame = bytearray()
            try:
                if self._direct_encoder.begin_frame(message, frame):
                    return False
            except WireError:
                return False  # `send` will say it where it is heard.
            before()
            try:
                sent = connection.send(frame)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:  # The peer is gone, which the event loop is about to see.
                return True
            if sent < len(frame):
                self._queue.appendleft(memoryview(frame)[sent:])
                self._loop.call_soon_threadsafe(self._send_rest, connection, len(frame) - sent)
            return True
        finally:
            self._writing.release()

    def _send_rest(self, connection: socket.socket, left: int) -> None:
        if connection is self._socket:
            self.outbox_bytes += left
            if not self._scheduled:
                self._flush()

    def _be_patient(self) -> None:
        if not self._patient:
            self._patient = True
            self._loop.call_later(PATIENCE, self._lose_patience)

    def _lose_patience(self) -> None:
        self._patient = False
        if self._queue and not self._scheduled:
            self._flush()

    def send_connection(self, message: Any, connection: socket.socket) -> None:
        """Queue a message together with a connection, which is the peer's from then on."""
        out = bytearray()
        self._codec.begin_frame(message, out)
        self._append(_WithDescriptor(bytes(out), connection.fileno(), connection))

    def forget(self, segment: Segment) -> None:
        """Tell the peer, if it knows the segment, that nothing will come in it any more."""
        if self._lending.forget(segment):
            self._notify(_FORGET, _FORGET_BODY.pack(segment.number))

    def _notify(self, kind: int, body: bytes) -> None:
        self._extend(notice(kind, body))

    def _extend(self, data: bytes | bytearray) -> None:
        if self._tail is None:
            self._tail = bytearray()
            self._queue.append(self._tail)
        self._tail += data
        self.outbox_bytes += len(data)
        if not self._scheduled:
            self._schedule()

    def _append(self, chunk: Chunk) -> None:
        if self._tail is not None and not self._tail:
            self._queue.pop()
        self._queue.append(chunk)
        self.outbox_bytes += len(chunk)
        self._tail = None
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = True
        self._loop.call_soon(self._flush)

    def _add_buffers(self, out: bytearray, start: int, attachments: list[Attachment]) -> int:
        """Say in the frame at `start` where its buffers are, and queue those that go behind it."""
        frame = out[start:]
        del out[start:]  # making room in the pool may queue notices, which must not get into the frame
        copied = self._lending.copied
        places = [self._lending.lend(attachment) for attachment in attachments]
        if any(place is not None and place.is_being_copied for place in places):
            return self._add_when_copied(AttachedFrame(self._codec, frame, attachments, places))
        behind = complete(self._codec, frame, attachments, places)
        size = len(frame) + sum(len(attachment.view) for attachment in attachments)
        self._extend(frame)
        for view in behind:
            self._append(view)
        self._unwritten += self._lending.copied - copied
        if self._unwritten >= _WRITE_EARLY:
            self._write_early()
        return size

    def _add_when_copied(self, attached: AttachedFrame) -> int:
        attached.when_copied(self._copied)
        self._append(attached)
        return attached.size

    def _copied(self) -> None:
        """A buffer is in shared memory now, and something may wait for that."""
        if not self._scheduled:
            self._flush()

    def _write_early(self) -> None:
        """Let the peer begin with some buffers while others are being copied here, in the same turn of the loop."""
        if self._socket is not None and not self._blocked:
            # What is left, and what is wrong, is dealt with by the flush that is to come.
            with contextlib.suppress(OSError), self._writing:
                self._write(self._socket)

    def _announce(self, segment: Segment) -> None:
        body = _SEGMENT_BODY.pack(segment.number, segment.size)
        self._append(_WithDescriptor(notice(_SEGMENT, body), segment.descriptor, segment))

    def _flush(self) -> None:
        connection = self._socket
        if connection is None:
            return
        if self._returning.waiting:
            self._scheduled = True  # It goes with what is written now.
            self._notify(_RELEASE, self._returning.take())
        try:
            with self._writing:
                done = self._write(connection)
        except (BlockingIOError, InterruptedError):
            done = False
        except OSError as error:
            self._break(f"writing to it failed: {error}")
            return
        self._scheduled = not done
        if self.crowded and self.outbox_bytes <= ROOMY_BYTES:
            self._make_room()
        if self._blocked and done:
            self._loop.remove_writer(connection.fileno())
            self.full_seconds += self._loop.time() - self._full_since
        elif not self._blocked and not done:
            self._loop.add_writer(connection.fileno(), self._flush)
            self._full_since = self._loop.time()
        self._blocked = not done

    def _write(self, connection: socket.socket) -> bool:
        """Send what is queued and can be; False if some is left because others are to have their turn."""
        self._tail = None
        self._unwritten = 0
        queue = self._queue
        budget = _WRITE_AT_ONCE
        while queue:
            if budget <= 0:
                return False
            chunk = queue[0]
            if isinstance(chunk, AttachedFrame):
                if chunk.copying:
                    return True  # `_copied` goes on.
                self._complete_first(chunk)
                continue
            if isinstance(chunk, _WithDescriptor):
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [chunk.descriptor]))]
                sent = connection.sendmsg([chunk.data], rights)
                chunk.done()
                chunk = chunk.data
            else:
                sent = connection.send(chunk)
            if sent == len(chunk):
                queue.popleft()
            else:
                queue[0] = memoryview(chunk)[sent:]
            budget -= sent
            self.outbox_bytes -= sent
            if self._blocked:
                self.full_bytes += sent
        return True

    def _complete_first(self, attached: AttachedFrame) -> None:
        frame, behind = attached.complete(self._lending.take_back)
        self._queue.popleft()
        self._queue.extendleft(reversed(behind))
        self._queue.appendleft(frame)
        self.outbox_bytes += len(frame) + sum(map(len, behind)) - len(attached)

    # Receiving.

    def take_descriptor(self) -> int | None:
        """Give the oldest descriptor that came and was not taken; None if there is none. The caller closes it."""
        return self._descriptors.popleft() if self._descriptors else None

    def _read(self) -> bool:
        """Read once; False if nothing was there, or the connection is at its end."""
        connection = self._socket
        if connection is None:
            return False
        try:
            count = self._receive(connection)
            if count:
                self._reader.buffer_updated(count)
                return True
            self._break("it closed the connection")
        except (BlockingIOError, InterruptedError):
            pass
        except WireError as error:
            self._break(f"it sent what is no message: {error}", to_blame=True)
        except OSError as error:
            self._break(f"reading from it failed: {error}")
        return False

    def _receive(self, connection: socket.socket) -> int:
        if not self._shares_descriptors:
            return connection.recv_into(self._reader.get_buffer())
        buffers = [self._reader.get_buffer()]
        count, ancillary, _, _ = connection.recvmsg_into(buffers, _DESCRIPTOR_ROOM, socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors = array("i")
                descriptors.frombytes(data[: len(data) // descriptors.itemsize * descriptors.itemsize])
                self._descriptors.extend(descriptors)
        if len(self._descriptors) > _MOST_DESCRIPTORS:
            raise WireError("more descriptors than frames that say what they are")
        return count

    def _find_shared(self, spot: Spot) -> Attachment:
        return Attachment(*self._returning.mapped.find(spot))

    def _on_notice(self, kind: int, body: bytes) -> None:
        try:
            if kind == _RELEASE:
                for where in read(body):
                    self._lending.returned(where)
            elif kind == _SEGMENT:
                self._map(*_SEGMENT_BODY.unpack(body))
            elif kind == _FORGET:
                segment = self._returning.mapped.drop(*_FORGET_BODY.unpack(body))
                if segment is not None:
                    self._on_forgotten(segment)
            else:
                raise WireError(f"a frame of kind {kind}, which is not known")
        except StructError as error:
            raise WireError(f"a garbled frame: {error}") from error

    def _map(self, number: int, size: int) -> None:
        descriptor = self.take_descriptor()
        if descriptor is None:
            raise WireError("shared memory without a descriptor")
        self._returning.mapped.add(number, size, descriptor)

    def _give_back(self, returning: Returning) -> None:
        """Something that the peer lent is due to go back."""
        if returning is not self._returning or self._socket is None:
            returning.take()
        elif not self._scheduled:
            self._flush()
