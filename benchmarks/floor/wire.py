"""Messages of the floor: a length, then a msgpack array. Nothing is batched: one write per message."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

HEADER = struct.Struct("<I")
READ_SIZE = 1 << 18


class Message(msgspec.Struct, array_like=True):
    """One call or its result: the number of the call and a value."""

    number: int
    value: Any


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


def send(connection: socket.socket, message: Message) -> None:
    payload = _encoder.encode(message)
    connection.sendall(HEADER.pack(len(payload)) + payload)


def batches(connection: socket.socket) -> Iterator[list[Message]]:
    """Everything that one read brought, again and again until the other side closes."""
    rest = b""
    while data := connection.recv(READ_SIZE):
        data = rest + data if rest else data
        found: list[Message] = []
        position, end = 0, len(data)
        while position + 4 <= end:
            stop = position + 4 + HEADER.unpack_from(data, position)[0]
            if stop > end:
                break
            found.append(_decoder.decode(data[position + 4 : stop]))
            position = stop
        rest = data[position:]
        if found:
            yield found


def receive_exactly(connection: socket.socket, into: memoryview) -> bool:
    """Fill `into`; False when the other side closed before the first byte."""
    position = 0
    while position < len(into):
        count = connection.recv_into(into[position:])
        if count == 0:
            return False
        position += count
    return True


def receive_one(connection: socket.socket) -> Message | None:
    """One message and not a byte more, for connections on which raw buffers follow messages."""
    header = bytearray(HEADER.size)
    if not receive_exactly(connection, memoryview(header)):
        return None
    payload = bytearray(HEADER.unpack(header)[0])
    receive_exactly(connection, memoryview(payload))
    return _decoder.decode(payload)
