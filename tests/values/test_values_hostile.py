"""Bytes that somebody made up give `ValueDecodingError` or a value; never another error, a crash, or much memory."""

import contextlib
import json
import struct
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.msgpack import Ext, encode
from some_values import all_values

from dfmesh import values
from dfmesh.errors import ValueDecodingError
from dfmesh.values.kinds import BY_CODE, BY_TAG

quick = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))

CODES = [*range(1, 8), 127, *BY_CODE, 126, -5]


def decode_anything(data: bytes, buffers=()) -> None:
    for attempt in (lambda: values.from_bytes(data), lambda: values.unpack(data, buffers)):
        with contextlib.suppress(ValueDecodingError):
            attempt()


@quick
@given(st.binary(max_size=200))
def test_random_bytes(data):
    decode_anything(data, [b"x" * 8])
    decode_anything(b"\xc1" + data)


@quick
@given(all_values, st.data())
def test_damaged_bytes(value, draw):
    data = bytearray(values.to_bytes(value))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    decode_anything(bytes(data))
    decode_anything(bytes(data[: draw.draw(st.integers(0, len(data)))]))


payloads = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(max_size=6),
        st.binary(max_size=20),
        st.sampled_from(["<f8", "O", "|V8", "<M8[ns]", "O,f8", "B", "some_values.Station", "Europe/Berlin", "../x"]),
        st.builds(Ext, st.sampled_from(CODES), st.binary(max_size=12)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.one_of(st.text(max_size=4), st.integers(0, 9)), inner, max_size=4),
        st.builds(lambda code, payload: Ext(code, encode(payload)), st.sampled_from(CODES), inner),
    ),
    max_leaves=10,
)


@settings(quick, max_examples=800)
@given(st.sampled_from(CODES), payloads)
def test_made_up_payloads_of_every_kind(code, payload):
    decode_anything(encode(Ext(code, encode(payload))), [b"abcdefgh"])


json_payloads = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(
            lambda tag, payload: {"@value": tag, "of": payload},
            st.sampled_from([*BY_TAG, "int", "float", "text", "tuple", "dict", "set", "frozenset", "?", 3]),
            inner,
        ),
    ),
    max_leaves=10,
)


@settings(quick, max_examples=500)
@given(json_payloads)
def test_made_up_documents(document):
    with contextlib.suppress(ValueDecodingError):
        values.from_json(document)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\xc1" * 40,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\x91" * 1_000_000,
        b"\xc1\0\0\0" + struct.pack("<IQ", 2**32 - 1, 5),
        b"\xc1\0\0\0" + struct.pack("<IQQ", 1, 2**63, 2**63) + bytes(64),
        encode([1]) + b"\0",
        encode(Ext(126, b"\xc0")),
        encode(Ext(7, b"\x00")),
        encode({"a": 1})[:-1],
        encode(Ext(40, encode(["O", [2**40], None, []]))),
        encode(Ext(40, encode(["|V2147483647", [1], None, b""]))),
        encode(Ext(40, encode(["<f8", [2**62, 2**62, 0, 3], None, b"x"]))),
        encode(Ext(40, encode(["<f8", [-1], None, b"x" * 8]))),
        encode(Ext(3, encode([[1], [2]]))),
        encode(Ext(2, encode([[1], 2]))),
        encode(Ext(2, encode([1, 2, 3]))),
    ],
)
def test_known_traps(data):
    with pytest.raises(ValueDecodingError):
        values.from_bytes(data)


def test_extensions_nested_very_deep():
    data = encode(1)
    for _ in range(3000):
        data = encode(Ext(1, b"\x91" + data))
    with pytest.raises(ValueDecodingError):
        values.from_bytes(data)


def test_a_document_nested_very_deep():
    document: object = 1
    for _ in range(3000):
        document = [document]
    with pytest.raises(ValueDecodingError):
        values.from_json(document)


@pytest.mark.timeout(30)  # Comparing each with each takes minutes.
def test_keys_made_to_collide_are_refused_at_once():
    prime = 2**61 - 1
    numbers = [(prime * n).to_bytes(16, "little") for n in range(1, 30_000)]
    for code, parts in ((3, numbers), (2, [part for n in numbers for part in (n, b"")])):
        items = [Ext(5, part) if part else None for part in parts]
        with pytest.raises(ValueDecodingError, match="equal hashes"):
            values.from_bytes(encode(Ext(code, encode(items))))


def test_memory_stays_in_proportion():
    tracemalloc.start()
    for data in (
        encode(Ext(12, encode([0, 2**63, 1]))),
        b"\xdc\xff\xff" + b"\xc0" * 1000,
        encode(Ext(54, encode(["x", 2**40, None]))),
    ):
        decode_anything(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


@quick
@given(st.data())
def test_damaged_arrow_data_never_crashes(draw):
    """The library trusts offsets; whatever passes our checks must be safe to read."""
    made = ARROW[draw.draw(st.integers(0, len(ARROW) - 1))]
    data = bytearray(made)
    for _ in range(draw.draw(st.integers(1, 6))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.sampled_from([0, 1, 2, 127, 128, 254, 255]))
    try:
        back = values.from_bytes(bytes(data))
    except ValueDecodingError:
        return
    if isinstance(back, pa.Table | pa.RecordBatch) and back.num_rows < 1000:
        str(back.to_pydict())


ARROW = [
    values.to_bytes(pa.table({"a": column, "b": column}))
    for column in (
        pa.array([1, 2, None]),
        pa.array(["abc", None, "defg"]),
        pa.array([[1], [2, 3], None]),
        pa.array([{"a": 1, "b": ["x"]}]),
        pa.array(["x", "y", "x"]).dictionary_encode(),
        pa.array(["a long text that is not inline", "b"], pa.string_view()),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([True, None]),
    )
]


def test_a_compressed_arrow_stream_is_refused():
    column = pa.array([["x" * 100] * 1000])
    batch = pa.record_batch([column], names=[""])
    for codec in ("lz4", "zstd"):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
            writer.write_batch(batch)
        kind = pa.schema([pa.field("", column.type)]).serialize().to_pybytes()
        data = encode(Ext(52, encode([kind, sink.getvalue().to_pybytes()])))
        with pytest.raises(ValueDecodingError, match="compressed"):
            values.from_bytes(data)


@pytest.mark.parametrize("dtype", ["<U2", ">U2", [("n", "<i4"), ("t", ">U2")], [("rows", [("t", "<U2")], (2,))]])
def test_text_of_numbers_that_are_no_characters_is_refused(dtype):
    """numpy fails only when it is read."""
    array = np.zeros(3, dtype)
    assert values.from_bytes(values.to_bytes(array)).dtype == array.dtype
    array.view("u1")[-8:] = 0x7F
    with pytest.raises(ValueDecodingError, match="is no character"):
        values.from_bytes(values.to_bytes(array))


def test_unpack_checks_the_buffers():
    packed = values.pack(np.zeros(100_000))
    for buffers in ((), (b"",), (bytes(799_999),)):
        with pytest.raises(ValueDecodingError):
            values.unpack(packed.head, buffers)


def test_a_document_must_have_whole_tags():
    for document in ({"@value": "tuple"}, {"@value": "tuple", "of": [], "x": 1}, {"@value": "nothing", "of": 1}):
        with pytest.raises(ValueDecodingError):
            values.from_json(json.loads(json.dumps(document)))
