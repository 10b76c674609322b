"""The connection between a site and one of its worker processes.

What one side says is a head (three lengths), the lengths of the large buffers, a message, a packed value, and the
buffers. Buffers go from the memory of the value into the socket, and from there into their own memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from struct import Struct
from typing import Any

import msgspec

from dfmesh import values
from dfmesh.engine.isolation.messages import AnyWord
from dfmesh.errors import ValueDecodingError

NO_VALUE: Any = object()
"""Stands where a message comes without a value."""

_HEAD = Struct("<IIQ")  # length of the message, number of buffers, length of the value without them
_SIZE = Struct("<Q")
_READ_SIZE = 256 * 1024
_SOCKET_BUFFER = 1024 * 1024


class Undecoded:
    """A value that cannot be read, perhaps for want of a class that is not known here."""

    def __init__(self, head: bytes, buffers: list[memoryview]) -> None:
        self._packed = (head, buffers)

    def decode(self) -> Any:
        """Try again.

        Raises:
            ValueDecodingError: as `values.unpack`.
        """
        return values.unpack(*self._packed)


class Channel:
    """One end. Sends without waiting, in order; receives one message after the other."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over a connected socket; to be made on the event loop."""
        connection.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(AnyWord)
        self._unsent: deque[bytes | memoryview] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._received = bytearray()

    def send(self, message: Any, value: Any = NO_VALUE) -> None:
        """Send a message, perhaps with a value. Nothing happens if nobody is at the other end any more.

        Raises:
            ValueEncodingError: the value cannot leave the process; nothing is sent.
        """
        head, buffers = (b"", ()) if value is NO_VALUE else values.pack(value)
        body = self._encoder.encode(message)
        sizes = b"".join(_SIZE.pack(len(buffer)) for buffer in buffers)
        self._put(b"".join([_HEAD.pack(len(body), len(buffers), len(head)), sizes, body, head]))
        for buffer in buffers:
            self._put(memoryview(buffer).cast("B"))

    def _put(self, data: bytes | memoryview) -> None:
        if self._sending is None:
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                return
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
            self._unsent.append(data)
            self._sending = self._loop.create_task(self._send_rest())
        else:
            self._unsent.append(data)

    async def _send_rest(self) -> None:
        try:
            while self._unsent:
                await self._loop.sock_sendall(self._socket, self._unsent.popleft())
        except OSError:
            self._unsent.clear()
        finally:
            self._sending = None

    async def receive(self) -> tuple[Any, Any]:
        """Wait for the next message and give it with its value, or `NO_VALUE`.

        A value that cannot be read stands there as `Undecoded`.

        Raises:
            EOFError: the other end is gone.
            msgspec.MsgspecError: what came is no message.
        """
        length, count, head_length = _HEAD.unpack(await self._read(_HEAD.size))
        sizes = [size for (size,) in _SIZE.iter_unpack(await self._read(count * _SIZE.size))]
        message = self._decoder.decode(await self._read(length))
        if not head_length:
            return message, NO_VALUE
        head = bytes(await self._read(head_length))
        buffers = [(await self._read_buffer(size)).toreadonly() for size in sizes]
        try:
            return message, values.unpack(head, buffers)
        except ValueDecodingError:
            return message, Undecoded(head, buffers)

    async def _read(self, size: int) -> bytearray:
        while len(self._received) < size:
            self._received += await self._some()
        data = self._received[:size]
        del self._received[:size]
        return data

    async def _some(self) -> bytes:
        try:
            data = await self._loop.sock_recv(self._socket, _READ_SIZE)
        except OSError as error:
            raise EOFError from error
        if not data:
            raise EOFError
        return data

    async def _read_buffer(self, size: int) -> memoryview:
        target = memoryview(bytearray(size))
        filled = min(size, len(self._received))
        target[:filled] = self._received[:filled]
        del self._received[:filled]
        while filled < size:
            try:
                count = await self._loop.sock_recv_into(self._socket, target[filled:])
            except OSError as error:
                raise EOFError from error
            if not count:
                raise EOFError
            filled += count
        return target

    def close(self) -> None:
        """Close it; who waits in `receive` is to be cancelled before."""
        if self._sending is not None:
            self._sending.cancel()
        self._unsent.clear()
        self._socket.close()
