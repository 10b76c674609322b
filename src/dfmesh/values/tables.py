"""pyarrow: tables, arrays, scalars, types. Imported when the first of them is sent or arrives.

Columns of flat types travel as their Arrow buffers, without a copy at either end. Nested, dictionary-encoded and
extension types, and slices that begin in the middle of a byte, are copied once, into an Arrow IPC stream.
What arrives is validated before anybody sees it: Arrow trusts the offsets in its buffers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

from dfmesh.values.kinds import Blob, Unsendable, flat_view
from dfmesh.values.streams import read_stream, write_stream
from dfmesh.values.table_nulls import without_hidden

MOST_ROWS_OF_NOTHING = 2**24
"""Rows of a table without columns; they take no bytes, but whoever makes Python values of them has to hold so many."""

_OFFSETS_32 = (types.is_string, types.is_binary)
_OFFSETS_64 = (types.is_large_string, types.is_large_binary)
_FIXED = (types.is_primitive, types.is_decimal, types.is_fixed_size_binary)


def _view(buffer: Any, start: int, end: int) -> Blob:
    return Blob(flat_view(buffer)[start:end])


def _blob_of(buffer: Any) -> Blob:
    return _view(buffer, 0, buffer.size)


# One array without its type: `[length, validity, buffer...]`, or the bytes of a stream.


def _reduce_chunk(array: Any) -> Any:
    array = without_hidden(array)
    if not _is_flat(array.type):
        return _blob_of(write_stream(array))
    parts = None if array.offset % 8 else _flat_buffers(array)
    if parts is None:
        array = pa.concat_arrays([array, array[:0]])
        parts = _flat_buffers(array)
    return [len(array), *(parts or ())]


def _is_flat(kind: Any) -> bool:
    return any(test(kind) for test in (*_FIXED, *_OFFSETS_32, *_OFFSETS_64))


def _flat_buffers(array: Any) -> list[Blob | None] | None:
    """View the parts of an array's buffers that it uses; None if they cannot be used as they are."""
    if any(test(array.type) for test in _FIXED):
        return _fixed_buffers(array)
    if any(test(array.type) for test in _OFFSETS_32):
        return _offset_buffers(array, 4)
    return _offset_buffers(array, 8)


def _validity(array: Any, bitmap: Any) -> Blob | None:
    if bitmap is None or array.null_count == 0:
        return None
    return _bits(bitmap, array.offset, array.offset + len(array))


def _bits(buffer: Any, start: int, end: int) -> Blob:
    """View bits from the beginning of a byte, without those that follow the last one in its byte."""
    bits = flat_view(buffer)[start // 8 : (end + 7) // 8]
    further = bits[-1] >> end % 8 if end % 8 else 0
    return Blob(bytes(bits[:-1]) + bytes([bits[-1] & (1 << end % 8) - 1]) if further else bits)


def _fixed_buffers(array: Any) -> list[Blob | None]:
    bitmap, data = array.buffers()
    if types.is_boolean(array.type):
        values = None if data is None or not len(array) else _bits(data, array.offset, array.offset + len(array))
        return [_validity(array, bitmap), values]
    start, end = (place * array.type.bit_width for place in (array.offset, array.offset + len(array)))
    return [_validity(array, bitmap), None if data is None else _view(data, start // 8, (end + 7) // 8)]


def _offset_buffers(array: Any, width: int) -> list[Blob | None] | None:
    bitmap, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return [None, None, None]
    places = flat_view(offsets)[array.offset * width : (array.offset + len(array) + 1) * width]
    if int.from_bytes(places[:width], "little") != 0:
        return None
    end = int.from_bytes(places[-width:], "little")
    return [_validity(array, bitmap), Blob(places), None if data is None else _view(data, 0, end)]


def _rebuild_chunk(payload: Any, kind: Any) -> Any:
    if type(payload) is not list:
        array = read_stream(payload, kind)
    else:
        length, *parts = payload
        if not _is_flat(kind):
            raise ValueError(f"an array of {kind} has no flat buffers")
        if length == 0:
            return pa.array([], kind)
        buffers = [None if part is None else pa.py_buffer(memoryview(part)) for part in parts]
        array = pa.Array.from_buffers(kind, length, buffers, 0 if buffers[0] is None else -1)
    array.validate(full=True)
    return array


# Types, fields and schemas travel as a serialised schema.


def reduce_schema(schema: Any) -> Any:
    """Give the bytes of a schema."""
    try:
        return Blob(flat_view(schema.serialize()))
    except (pa.ArrowException, NotImplementedError) as error:
        raise Unsendable(f"this Arrow schema cannot be sent: {error}") from error


def rebuild_schema(payload: Any) -> Any:
    """Make a schema."""
    schema = pa.ipc.read_schema(pa.py_buffer(memoryview(payload)))
    for field in schema:
        _check_text(field)
    return schema


def _check_text(field: Any) -> None:
    """Read the texts of a field and the fields in it; the library takes bytes that are not text for a name."""
    kind = field.type
    _ = field.name, kind.tz if types.is_timestamp(kind) else None
    for inner in _inner_fields(kind):
        _check_text(inner)


def _inner_fields(kind: Any) -> list[Any]:
    if types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if hasattr(kind, "value_field"):
        return [kind.value_field]
    return [kind.field(number) for number in range(kind.num_fields)] if hasattr(kind, "field") else []


def reduce_field(field: Any) -> Any:
    """Give the bytes of a schema of one field."""
    return reduce_schema(pa.schema([field]))


def rebuild_field(payload: Any) -> Any:
    """Make a field."""
    return rebuild_schema(payload).field(0)


def reduce_type(kind: Any) -> Any:
    """Give the bytes of a schema of one field of the type."""
    return reduce_field(pa.field("", kind))


def rebuild_type(payload: Any) -> Any:
    """Make a type."""
    return rebuild_field(payload).type


# Tables and what they are made of


def reduce_array(array: Any) -> Any:
    """Give `[type, array]`."""
    return [reduce_type(array.type), _reduce_chunk(array)]


def rebuild_array(payload: Any) -> Any:
    """Make an array that shares the buffers it came in."""
    kind, chunk = payload
    return _rebuild_chunk(chunk, rebuild_type(kind))


def reduce_chunked(column: Any) -> Any:
    """Give `[type, [array, ...]]`."""
    return [reduce_type(column.type), [_reduce_chunk(chunk) for chunk in column.chunks]]


def rebuild_chunked(payload: Any) -> Any:
    """Make a chunked array."""
    described, chunks = payload
    kind = rebuild_type(described)
    return pa.chunked_array([_rebuild_chunk(chunk, kind) for chunk in chunks], kind)


def reduce_table(table: Any) -> Any:
    """Give `[schema, rows, [column, ...]]`; a column is a list of arrays."""
    _check_columns(table)
    columns = [[_reduce_chunk(chunk) for chunk in column.chunks] for column in table.columns]
    return [reduce_schema(table.schema), table.num_rows, columns]


def rebuild_table(payload: Any) -> Any:
    """Make a table that shares the buffers it came in."""
    described, rows, columns = payload
    schema = rebuild_schema(described)
    if not columns:
        return pa.Table.from_batches([_rows_of_nothing(schema, rows)])
    kinds = [field.type for field in schema]
    made = [
        pa.chunked_array([_rebuild_chunk(chunk, kind) for chunk in chunks], kind)
        for chunks, kind in zip(columns, kinds, strict=True)
    ]
    table = pa.Table.from_arrays(made, schema=schema)
    table.validate()
    return _checked_rows(table, rows)


def _checked_rows(made: Any, rows: int) -> Any:
    if made.num_rows != rows:
        raise ValueError(f"{made.num_rows} rows instead of {rows}")
    return made


def _rows_of_nothing(schema: Any, rows: int) -> Any:
    """Make a record batch of rows without columns."""
    if len(schema):
        raise ValueError(f"no columns instead of {len(schema)}")
    if rows > MOST_ROWS_OF_NOTHING:
        raise ValueError(f"{rows} rows without columns")
    batch = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
    return batch.replace_schema_metadata(schema.metadata)


def _check_columns(made: Any) -> None:
    rows = 0 if made.num_columns else made.num_rows
    if rows > MOST_ROWS_OF_NOTHING:
        raise Unsendable(f"{rows} rows without columns cannot be sent; at most {MOST_ROWS_OF_NOTHING} can")


def reduce_batch(batch: Any) -> Any:
    """Give `[schema, rows, [array, ...]]`."""
    _check_columns(batch)
    return [reduce_schema(batch.schema), batch.num_rows, [_reduce_chunk(column) for column in batch.columns]]


def rebuild_batch(payload: Any) -> Any:
    """Make a record batch that shares the buffers it came in."""
    described, rows, columns = payload
    schema = rebuild_schema(described)
    if not columns:
        return _rows_of_nothing(schema, rows)
    made = [_rebuild_chunk(column, field.type) for column, field in zip(columns, schema, strict=True)]
    batch = pa.RecordBatch.from_arrays(made, schema=schema)
    batch.validate()
    return _checked_rows(batch, rows)


def reduce_scalar(scalar: Any) -> Any:
    """Give an array of one item."""
    try:
        if isinstance(scalar, pa.DictionaryScalar):
            return reduce_array(pa.DictionaryArray.from_arrays(pa.array([scalar.index]), scalar.dictionary))
        return reduce_array(pa.repeat(scalar, 1))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise Unsendable(f"a pyarrow scalar of type {scalar.type} cannot be sent; send an array of it") from error


def rebuild_scalar(payload: Any) -> Any:
    """Make a scalar."""
    return rebuild_array(payload)[0]
