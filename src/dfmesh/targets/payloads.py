"""Values as payloads of targets that move bytes."""

from __future__ import annotations

from typing import Any

from dfmesh import values
from dfmesh.engine.message_parts import Payload
from dfmesh.errors import ValueDecodingError, ValueEncodingError
from dfmesh.targets.wire import LARGEST_FRAME, Attachment


def pack(value: Any) -> Payload:
    """Make a value ready to be sent, once for all its destinations.

    Raises:
        ValueEncodingError: the value may not leave the process.
    """
    packed = values.pack(value)
    if len(packed.head) > LARGEST_FRAME // 2:
        raise ValueEncodingError(
            f"a value has {len(packed.head):,} bytes besides its large buffers, and may have"
            f" {LARGEST_FRAME // 2:,}; large data belongs into arrays or bytes"
        )
    if not packed.buffers:
        return Payload(packed.head)
    return Payload(packed.head, tuple(Attachment(memoryview(buffer).cast("B")) for buffer in packed.buffers))


def unpack(payload: Payload) -> Any:
    """Give back the value of a payload that arrived.

    Raises:
        ValueDecodingError: it is not a value.
    """
    head = payload.data
    if type(head) is not bytes:
        raise ValueDecodingError("what arrived is not an encoded value")
    if not payload.buffers:
        return values.unpack(head, ())
    if not all(type(buffer) is Attachment for buffer in payload.buffers):
        raise ValueDecodingError("what arrived has buffers that are none")
    return values.unpack(head, tuple(buffer.view for buffer in payload.buffers))
