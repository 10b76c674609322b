"""Messages of the floor: a length, then a msgpack array."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator

import msgspec

HEADER = struct.Struct("<I")
READ_SIZE = 1 << 18

ONE_AT_A_TIME = "one message at a time"
BATCHED = "batched"


class Message(msgspec.Struct, array_like=True):
    """A call or its result.

    Attributes:
        number: Number of the call.
        value: Argument or result.
        hops: How many operations are still to be run on it, by turns on both sides.
    """

    number: int
    value: int
    hops: int = 1


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Message)


def framed(message: Message) -> bytes:
    """Give a message as it goes over the socket."""
    payload = _encoder.encode(message)
    return HEADER.pack(len(payload)) + payload


def send_one_at_a_time(connection: socket.socket, messages: Iterable[Message]) -> None:
    """Write each message with a call of its own."""
    for message in messages:
        connection.sendall(framed(message))


def send_batched(connection: socket.socket, messages: Iterable[Message]) -> None:
    """Write all messages with one call."""
    connection.sendall(b"".join(map(framed, messages)))


def receive_one_at_a_time(connection: socket.socket) -> Iterator[list[Message]]:
    """Read one message after the other, until the other side closes."""
    while header := connection.recv(HEADER.size, socket.MSG_WAITALL):
        size = HEADER.unpack(header)[0]
        yield [_decoder.decode(connection.recv(size, socket.MSG_WAITALL))]


def receive_batched(connection: socket.socket) -> Iterator[list[Message]]:
    """Give all messages that a read brought, again and again until the other side closes."""
    rest = b""
    while data := connection.recv(READ_SIZE):
        data = rest + data
        found: list[Message] = []
        position, end = 0, len(data)
        while position + HEADER.size <= end:
            begin = position + HEADER.size
            stop = begin + HEADER.unpack_from(data, position)[0]
            if stop > end:
                break
            found.append(_decoder.decode(data[begin:stop]))
            position = stop
        rest = data[position:]
        if found:
            yield found


SENDS = {ONE_AT_A_TIME: send_one_at_a_time, BATCHED: send_batched}
RECEIVES = {ONE_AT_A_TIME: receive_one_at_a_time, BATCHED: receive_batched}
