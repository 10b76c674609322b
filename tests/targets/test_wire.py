"""The codec of the wire: every message comes back, however the stream is cut, and garbage is an error."""

from __future__ import annotations

import contextlib
import itertools
import struct
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dfmesh.engine import messages
from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, TokenPackage, YieldPackage
from dfmesh.targets import wire
from dfmesh.targets.wire import Attachment, Codec, FrameReader, Spot, WireError

attachments = st.binary(max_size=5000).map(lambda data: Attachment(memoryview(data)))
SPECIAL: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(0, 2**63 - 1),
    str: st.text(max_size=20),
    bytes: st.binary(max_size=200),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    type(None): st.none(),
    Payload: st.builds(Payload, st.binary(max_size=200), st.lists(attachments, max_size=3).map(tuple)),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of an annotation, whatever messages there will be."""
    if kind in SPECIAL:
        return SPECIAL[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        return st.builds(kind, **{name: values_of(hints[name]) for name in kind.__struct_fields__})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return st.integers(min_value=arguments[1].ge, max_value=2**31)
    if origin in (Union, UnionType):
        return st.one_of([values_of(argument) for argument in arguments])
    if origin is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    raise TypeError(f"say how to make a {kind}")


any_message = st.one_of([values_of(kind) for kind in get_args(AnyMessage)])


def plain(value: Any) -> Any:
    """Messages as comparable data, with the bytes of their buffers."""
    if isinstance(value, Attachment):
        return ("buffer", bytes(value.view))
    if isinstance(value, msgspec.Struct):
        return (type(value), *(plain(getattr(value, name)) for name in value.__struct_fields__))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(c % (len(data) + 1) for c in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def read(data: bytes, cuts: list[int] = (), reader_of: Any = FrameReader) -> tuple[list[Any], FrameReader]:  # type: ignore[assignment]
    got: list[Any] = []
    reader = reader_of(Codec(AnyMessage), got.append)
    for piece in cut(data, cuts):
        reader.feed(piece)
    return got, reader


@given(st.lists(any_message, max_size=6), st.lists(st.integers(0, 10**6), max_size=20))
@settings(max_examples=300, deadline=None)
def test_messages_come_back_in_order_however_the_stream_is_cut(sent: list[Any], cuts: list[int]) -> None:
    codec = Codec(AnyMessage)
    data = b"".join(wire.to_bytes(codec, message) for message in sent)
    got, reader = read(data, cuts)
    assert [plain(message) for message in got] == [plain(message) for message in sent]
    assert reader.bytes_received == len(data)


@given(st.lists(any_message, min_size=1, max_size=4), st.data())
@settings(max_examples=300, deadline=None)
def test_garbled_streams_are_errors_or_messages_but_never_a_crash(sent: list[Any], data: st.DataObject) -> None:
    codec = Codec(AnyMessage)
    stream = bytearray(b"".join(wire.to_bytes(codec, message) for message in sent))
    for _ in range(data.draw(st.integers(1, 8))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    try:
        got, _ = read(bytes(stream), data.draw(st.lists(st.integers(0, 10**6), max_size=8)))
    except WireError:
        return
    assert all(isinstance(message, messages.Message) for message in got)


@given(st.binary(max_size=400))
@example(struct.pack("<IB", 2**32 - 1, wire.MESSAGE))
@example(struct.pack("<IB", 4, wire.MESSAGE_WITH_BUFFERS) + struct.pack("<I", 2**32 - 1))
@example(struct.pack("<IB", 24, wire.MESSAGE_WITH_BUFFERS) + struct.pack("<IQQI", 0, 0, 2**63, 1))
@example(struct.pack("<IB", 24, wire.MESSAGE_WITH_BUFFERS) + struct.pack("<IQQI", 0, 0, 2**39, 1))
@example(struct.pack("<IB", 0, wire.MESSAGE))
@example(struct.pack("<IB", 0, 77))
@example(struct.pack("<IB", 3000, wire.MESSAGE) + b"\x91" * 3000)
@settings(max_examples=300, deadline=None)
def test_random_bytes_never_crash(data: bytes) -> None:
    with contextlib.suppress(WireError):
        read(data)


def test_a_message_larger_than_the_reading_memory() -> None:
    codec = Codec(AnyMessage)
    large = TokenPackage("job", 1, (0,), Payload(b"x" * 3_000_000))
    small = TokenPackage("job", 2, (0,), Payload(b"y"))
    stream = b"".join(wire.to_bytes(codec, message) for message in (small, large, small, large, small))
    got, reader = read(stream, list(range(0, len(stream), 50_000)))
    assert got == [small, large, small, large, small]
    assert len(reader._data) == len(FrameReader(codec, got.append)._data), "memory for a large message is given back"


def test_a_head_that_promises_much_does_not_take_memory() -> None:
    _, reader = read(struct.pack("<IB", 2**31, wire.MESSAGE) + b"x" * 1000)
    assert len(reader._data) < 2**20


def test_buffers_arrive_where_they_stay() -> None:
    codec = Codec(AnyMessage)
    data = bytes(range(256)) * 1000
    message = TokenPackage("job", 1, (0,), Payload(b"head", (Attachment(memoryview(data)),) * 2))
    got, _ = read(wire.to_bytes(codec, message), [100, 5000])
    first, second = got[0].payload.buffers
    assert bytes(first.view) == bytes(second.view) == data
    assert first.view.readonly
    assert len(wire.to_bytes(codec, message)) < 2 * len(data) + 200


def test_what_is_no_data_is_refused_and_leaves_the_stream_as_it_was() -> None:
    codec = Codec(AnyMessage)
    out = bytearray(b"before")
    with pytest.raises(WireError, match="object"):
        codec.begin_frame(TokenPackage("job", 1, (0,), Payload(object(), (Attachment(memoryview(b"x")),))), out)
    with pytest.raises(WireError):
        codec.begin_frame(TokenPackage("job", 2**70, (0,)), out)
    assert out == b"before"
    assert codec.begin_frame(TokenPackage("job", 1, (0,)), out) == []


def test_shared_memory_is_refused_where_there_is_none() -> None:
    codec = Codec(AnyMessage)
    out = bytearray()
    codec.begin_frame(YieldPackage("job", "p", (0,), "n", "s", Payload(b"", (Attachment(memoryview(b"x")),))), out)
    codec.end_frame(out, 0, [Spot(3, 0, 1)])
    with pytest.raises(WireError, match="shared memory"):
        read(bytes(out))


def test_the_hot_path_is_short(calls_made: Callable[[Callable[[], object]], int]) -> None:
    """It catches an accidental slow path."""
    codec = Codec(AnyMessage)
    message = TokenPackage("job-0123456789", 3, (0, 17), Payload(b"x" * 20))
    out = bytearray()
    got: list[Any] = []
    reader = FrameReader(codec, got.append)

    def encode() -> None:
        for _ in range(1_000):
            codec.begin_frame(message, out)

    assert calls_made(encode) < 10 * 1_000
    assert calls_made(lambda: reader.feed(out)) < 8 * 1_000
    assert len(got) == 1_000
