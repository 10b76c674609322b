"""Arrow IPC streams of one array. Compressed ones are refused: a few bytes could ask for any amount of memory."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from dfmesh.values.kinds import Unsendable, flat_view

_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2


def write_stream(array: Any) -> Any:
    """Write an array into a new buffer."""
    batch = pa.RecordBatch.from_arrays([array], names=[""])
    sink = pa.BufferOutputStream()
    try:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    except (pa.ArrowException, NotImplementedError) as error:
        raise Unsendable(f"an Arrow array of type {array.type} cannot be sent: {error}") from error
    return sink.getvalue()


def read_stream(data: Any, kind: Any) -> Any:
    """Read the array of type `kind` from a stream that came from elsewhere; it shares the memory of `data`."""
    buffer = pa.py_buffer(memoryview(data))
    for message in pa.ipc.MessageReader.open_stream(buffer):
        if _is_compressed(flat_view(message.metadata)):
            raise ValueError("a compressed Arrow stream")
    batches = list(pa.ipc.open_stream(buffer))
    if len(batches) != 1 or batches[0].num_columns != 1 or batches[0].column(0).type != kind:
        raise ValueError(f"an Arrow stream that is not one array of {kind}")
    return batches[0].column(0)


# The library does not tell whether a message is compressed, so this reads the tables of its metadata (flatbuffers).


def _is_compressed(metadata: memoryview) -> bool:
    message = struct.unpack_from("<I", metadata, 0)[0]
    kind_at, header = _field(metadata, message, 1), _follow(metadata, message, 2)
    kind = metadata[kind_at] if kind_at else 0
    if kind == _DICTIONARY_BATCH:
        header = _follow(metadata, header, 1)
    elif kind != _RECORD_BATCH:
        return False
    return _field(metadata, header, 3) != 0


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Give the position of a field of a table; 0 if it is not set."""
    layout = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, layout)[0]
    place = 4 + 2 * number
    if place + 2 > size:
        return 0
    offset = int(struct.unpack_from("<H", metadata, layout + place)[0])
    return table + offset if offset else 0


def _follow(metadata: memoryview, table: int, number: int) -> int:
    position = _field(metadata, table, number)
    if position == 0:
        raise ValueError("an Arrow message without contents")
    return position + int(struct.unpack_from("<I", metadata, position)[0])
