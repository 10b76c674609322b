"""Arrays, tables, frames and grids: nothing copied, nothing lost."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr

from dfmesh import values
from dfmesh.errors import ValueDecodingError, ValueEncodingError


def send(value):
    """Send a value by every road and give what arrived by `pack`."""
    data = values.to_bytes(value)
    packed = values.pack(value)
    back = values.unpack(packed.head, packed.buffers)
    document = json.loads(json.dumps(values.to_json(value)))
    for other in (back, values.from_bytes(data), values.from_json(document), values.normalise(value)):
        assert type(other) is type(value)
        assert values.to_bytes(other) == data
    return back


MEMORY_ORDERS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "transposed": lambda a: np.ascontiguousarray(a).transpose(1, 2, 0),
    "other": lambda a: np.ascontiguousarray(a).transpose(0, 2, 1),
}


@pytest.mark.parametrize("order", MEMORY_ORDERS)
def test_large_arrays_are_not_copied_in_any_order(order):
    array = MEMORY_ORDERS[order](np.arange(60_000.0).reshape(30, 40, 50))
    packed = values.pack({"data": (array, 1)})
    assert [len(buffer) for buffer in packed.buffers] == [array.nbytes]
    assert np.shares_memory(np.frombuffer(packed.buffers[0], np.uint8), array)
    back = values.unpack(packed.head, packed.buffers)["data"][0]
    assert np.shares_memory(back, array)
    assert back.strides == array.strides
    assert np.array_equal(back, array)
    assert np.shares_memory(values.normalise([array])[0], array)


def test_large_arrays_in_bytes_are_views_of_them():
    array = np.arange(100_000)
    data = values.to_bytes([array, array[::2]])
    first, second = values.from_bytes(data)
    whole = np.frombuffer(data, np.uint8)
    assert np.shares_memory(first, whole)
    assert np.shares_memory(second, whole)
    assert first.flags.aligned


@pytest.mark.parametrize("size", [3, 100_000])
def test_arrays_that_arrive_are_read_only(size):
    sent = np.zeros(size)
    for back in (values.normalise(sent), values.from_bytes(values.to_bytes(sent)), values.unpack(*values.pack(sent))):
        with pytest.raises(ValueError, match="read-only"):
            back[0] = 1
    packed = values.pack(sent)
    assert not values.unpack(packed.head, [bytearray(buffer) for buffer in packed.buffers]).flags.writeable
    assert sent.flags.writeable


def test_unpacked_buffers_are_let_go_without_the_garbage_collector():
    import gc
    import weakref

    array = np.zeros(100_000)
    packed = values.pack((array,))
    gone = weakref.ref(array)
    back = values.unpack(packed.head, packed.buffers)
    gc.disable()
    try:
        del array, packed, back
        assert gone() is None
    finally:
        gc.enable()


STRUCTURE = np.dtype([("a", "<f4"), ("b", ">i2", (2, 3)), ("c", [("d", "S3"), ("e", "?")])])
ALIGNED = np.dtype({"names": ["x", "y"], "formats": ["i1", "f8"], "offsets": [0, 8], "itemsize": 24}, align=True)


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.zeros((0, 3)),
        np.zeros((2, 0)),
        np.arange(10)[::-2],
        np.arange(12).reshape(3, 4)[1:, ::2],
        np.broadcast_to(np.float32(2), (3, 4)),
        np.array([1, 2], ">u4"),
        np.array(["a", "bcd", ""]),
        np.array(["é"], ">U3"),
        np.array([b"a\0b"], "S4"),
        np.array(["2020-01-01", "NaT"], "M8[s]"),
        np.array([1, 2], "m8[25us]"),
        np.array([True, False]),
        np.array([np.nan, -0.0, np.inf], "f2"),
        np.array([1 + 2j], "c8"),
        np.zeros(3, STRUCTURE),
        np.zeros((2, 2), ALIGNED, order="F"),
        np.array([1, "a", None, (2,), {"k": 3}], object),
        np.array("x", object),
        np.zeros(4, "U0"),
        np.array([b"\1\2"], "V2"),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_every_kind_of_array(array):
    back = send(array)
    assert back.dtype == array.dtype
    assert back.dtype.isalignedstruct == array.dtype.isalignedstruct
    assert back.shape == array.shape
    assert np.array_equal(back, array, equal_nan=array.dtype.kind in "fM")


@pytest.mark.parametrize(
    "scalar",
    [
        np.float32(1.5),
        np.float64(-0.0),
        np.longdouble("1.1"),
        np.complex128(1j),
        np.int8(-3),
        np.bool_(True),
        np.datetime64("2020", "Y"),
        np.timedelta64("NaT"),
        np.str_("a\0"),
        np.bytes_(b"a\0"),
        np.zeros((), STRUCTURE)[()],
    ],
)
def test_scalars_keep_their_type(scalar):
    back = send(scalar)
    assert back.dtype == scalar.dtype
    assert back == scalar or (back != back and scalar != scalar)


def test_data_types():
    for dtype in (np.dtype("f8"), STRUCTURE, ALIGNED, np.dtype(">M8[ms]"), np.dtype(("f4", (2,)))):
        assert send(dtype) == dtype


@pytest.mark.parametrize("mask", [np.ma.nomask, [True, False, True]])
def test_masked_arrays(mask):
    array = np.ma.MaskedArray([1.0, 2.0, 3.0], mask=mask, fill_value=-9.0)
    back = send(array)
    assert np.array_equal(back.data, array.filled(0.0)), "what is masked does not travel"
    assert (back.mask is np.ma.nomask) == (array.mask is np.ma.nomask)
    assert np.array_equal(back.mask, array.mask)
    assert back.fill_value == -9.0
    assert send(np.ma.masked) is np.ma.masked


def test_a_memory_map_arrives_as_an_array(tmp_path):
    array = np.memmap(tmp_path / "data", np.float64, "w+", shape=(20_000,))
    array[:] = 3
    packed = values.pack(array)
    assert np.shares_memory(np.frombuffer(packed.buffers[0], np.uint8), array)
    assert type(values.unpack(*packed)) is np.ndarray


@pytest.mark.parametrize("array", [np.zeros(2, [("a", "O")]), np.array([1, 2]).view(np.recarray)])
def test_arrays_that_cannot_be_sent(array):
    with pytest.raises(ValueEncodingError, match=r"value\['x'\]"):
        values.to_bytes({"x": array})


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 has it")
def test_text_of_variable_width_says_what_to_do():
    with pytest.raises(ValueEncodingError, match="astype"):
        values.to_bytes(np.array(["a"], np.dtypes.StringDType()))


def test_large_bytes_are_not_copied():
    data = bytes(100_000)
    packed = values.pack({"a": [data, (bytearray(data), memoryview(data))]})
    assert packed.buffers[0] is data
    assert len(packed.buffers) == 3
    back = values.unpack(packed.head, packed.buffers)
    assert back["a"][0] is data
    assert values.unpack(packed.head, [memoryview(bytes(buffer)) for buffer in packed.buffers]) == back
    assert values.pack([data]).buffers[0] is data
    assert values.pack(data).buffers[0] is data
    assert len(values.pack([b"x" * 1000] * 200).buffers) == 0


# Arrow

COLUMNS = [
    pa.array([1, 2, None]),
    pa.array(range(100))[8:20],
    pa.array(range(100))[5:20],
    pa.array([None, *range(99)])[16:],
    pa.array(["a", "bb", None]),
    pa.array(["a"] * 20)[8:],
    pa.array([None, "x"] * 20, pa.large_string())[:7],
    pa.array([b"x", b""]),
    pa.array([True, None]),
    pa.array([True, False] * 20)[8:13],
    pa.array([True, False] * 20)[3:],
    pa.array([], pa.string()),
    pa.array([], pa.list_(pa.int8())),
    pa.nulls(5),
    pa.array([Decimal("1.5"), None], pa.decimal128(5, 2)),
    pa.array([b"12", b"34"], pa.binary(2)),
    pa.array([0, None], pa.timestamp("us", "Europe/Berlin")),
    pa.array([1], pa.duration("ms")),
    pa.array([[1], [2, 3], None]),
    pa.array([[[1]], [[2], [3]]])[1:],
    pa.array([{"a": 1, "b": "x"}]),
    pa.array(["x", "y", "x"]).dictionary_encode(),
    pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)),
    pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    pa.array(["a text that is long enough", "b"], pa.string_view()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: f"{column.type}+{column.offset}")
def test_arrow_of_every_kind(column):
    assert send(column).equals(column)
    assert send(column.type) == column.type
    chunked = pa.chunked_array([column, column[:0], column])
    assert send(chunked).num_chunks == 3
    assert send(chunked).equals(chunked)
    schema = pa.schema([pa.field("a", column.type, metadata={"unit": "K"})], metadata={"by": "us"})
    table = pa.table([chunked], schema=schema)
    assert send(table).equals(table, check_metadata=True)
    batch = pa.record_batch([column], schema=schema)
    assert send(batch).equals(batch, check_metadata=True)
    assert send(schema).equals(schema, check_metadata=True)
    assert send(schema.field(0)).equals(schema.field(0), check_metadata=True)


@pytest.mark.parametrize("column", [c for c in COLUMNS if len(c)], ids=lambda column: str(column.type))
def test_arrow_scalars(column):
    assert send(column[0]).equals(column[0])


def test_arrow_tables_are_not_copied():
    table = pa.table({"a": np.arange(100_000.0), "s": ["abcdef"] * 100_000})
    packed = values.pack(table)
    sent = [buffer.address for column in table.columns for buffer in column.chunk(0).buffers() if buffer]
    assert [pa.py_buffer(buffer).address for buffer in packed.buffers] == sent
    back = values.unpack(packed.head, packed.buffers)
    assert [buffer.address for column in back.columns for buffer in column.chunk(0).buffers() if buffer] == sent


def test_a_slice_does_not_send_the_rest():
    column = pa.array(["abcdef"] * 100_000)
    for part in (column[:10], column[80_000:80_010], column[3:7]):
        assert len(values.to_bytes(part)) < 1000


def test_an_empty_table_keeps_its_schema():
    assert send(pa.table({})).num_columns == 0
    assert send(pa.table({"a": pa.array([], pa.int8())})).schema.field(0).type == pa.int8()


@pytest.mark.parametrize("rows", [0, 3])
def test_rows_without_columns_are_counted(rows):
    batch = pa.record_batch({"a": range(rows)}).select([]).replace_schema_metadata({"k": "v"})
    assert send(batch).num_rows == rows
    table = pa.Table.from_batches([batch])
    assert send(table).num_rows == send(table.select([])).num_rows == rows
    assert send(table).schema.metadata == {b"k": b"v"}


def test_rows_without_columns_are_not_too_many():
    many = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 2**40, [None]))
    for value in (many, pa.Table.from_batches([many])):
        with pytest.raises(ValueEncodingError, match="1099511627776 rows without columns cannot be sent"):
            values.to_bytes(value)
    few = values.to_bytes(pa.Table.from_batches([many[:123_456]]))
    for rows in (b"\xce\x7f\xff\xff\xff", b"\xff", b"\xc0", b"\xa1x"):
        forged = few.replace(b"\xce\x00\x01\xe2\x40", rows)
        assert forged != few
        with pytest.raises(ValueDecodingError):
            values.from_bytes(forged)


# pandas and xarray


def test_frames_and_series():
    frame = pd.DataFrame(
        {
            "a": [1, 2],
            "b": ["x", None],
            "c": pd.to_datetime(["2020", "2021"]),
            "d": pd.Categorical(["u", "v"], ordered=True),
            "e": pd.array([1, None], "Int8"),
        },
        index=pd.Index([3, 4], name="i"),
    )
    pd.testing.assert_frame_equal(send(frame), frame)
    pd.testing.assert_frame_equal(send(frame.reset_index()), frame.reset_index())
    for name in ("n", None, ("a", 1)):
        series = pd.Series([1.5, 2.5], name=name)
        pd.testing.assert_series_equal(send(series), series)
    with pytest.raises(ValueEncodingError, match=r"value\[0\]: column 'a' of the DataFrame holds objects"):
        values.to_bytes([pd.DataFrame({"a": [(1,), {}]})])


def grid():
    return xr.DataArray(
        np.arange(6, dtype="f4").reshape(2, 3),
        dims=("x", "y"),
        coords={"x": ["a", "b"], "y": ("y", [1, 2, 3], {"unit": "m"}), "t": np.datetime64("2020-01-01", "ns")},
        attrs={"k": (1, 2)},
        name="wind",
    )


def test_grids():
    array = grid()
    for sent in (array, array.to_dataset(), array.to_dataset().assign_attrs(z={"a": 1}), xr.DataArray([1], dims="q")):
        assert send(sent).identical(sent)
    assert send(array).dtype == np.float32
    assert send(array)["x"].dtype == array["x"].dtype
    without_index = array.drop_indexes("x")
    assert list(send(without_index).xindexes) == ["y"]
    with pytest.raises(ValueEncodingError, match="reset_index"):
        values.to_bytes(array.stack(z=("x", "y")))


def test_large_grids_are_not_copied():
    array = xr.DataArray(np.zeros((300, 400)), dims=("lat", "lon"))
    back = values.unpack(*values.pack(array))
    assert np.shares_memory(back.values, array.values)


@pytest.mark.parametrize(
    "dtype", ["f8", "i2", "u1", "?", "c16", "f2", ">f8", "M8[ns]", "U3", [("a", "f8"), ("b", "i4")]]
)
@pytest.mark.parametrize("shape", [(90_000,), (300, 300), (1, 90_000, 1), (2, 3, 20_000)])
def test_a_large_array_is_the_same_the_first_time_and_when_its_kind_is_known(dtype, shape):
    array = np.zeros(shape, dtype)
    assert array.nbytes >= 64 * 1024
    first, second = values.pack(array), values.pack(array.copy())
    assert first.head == second.head
    for packed in (first, second, first):
        head, (buffer,) = packed
        assert memoryview(buffer).readonly
        back = values.unpack(head, (buffer,))
        assert (back.dtype, back.shape, back.strides) == (array.dtype, array.shape, array.strides)
        assert not back.flags.writeable
        assert np.shares_memory(back, np.frombuffer(buffer, np.uint8))
        for other in (buffer[:-1], b"", 7, None):
            with pytest.raises(ValueDecodingError):
                values.unpack(head, (other,))
    private = values.private_copy(array)
    assert (private.dtype, private.shape) == (array.dtype, array.shape)
    assert not private.flags.writeable
    assert array.flags.writeable
    assert np.shares_memory(private, array)


LISTED = {
    "alike": lambda: [np.arange(20_000.0), np.ones(20_000)],
    "of different shapes and types": lambda: [np.arange(20_000.0), np.ones((300, 300), "i2"), np.zeros(10_000, "c16")],
    "one twice": lambda: [np.arange(20_000.0)] * 2,
    "one alone": lambda: [np.arange(20_000.0)],
    "with a small one": lambda: [np.arange(20_000.0), np.arange(3)],
    "with text": lambda: [np.arange(20_000.0), "text"],
    "in columns": lambda: [np.arange(20_000.0), np.ones((200, 200)).T],
    "very many": lambda: [np.full(10_000, number, "f8") for number in range(100)],
}


@pytest.mark.parametrize("how", LISTED)
def test_a_list_of_large_arrays_is_the_same_the_first_time_and_when_its_kind_is_known(how):
    given = LISTED[how]()
    for _ in range(3):
        head, buffers = values.pack(given)
        assert head == values.pack(LISTED[how]()).head
        back = values.unpack(head, buffers)
        assert type(back) is list
        for found, array in zip(back, given, strict=True):
            assert type(found) is type(array)
            assert np.array_equal(found, array)
            if isinstance(array, np.ndarray):
                assert (found.dtype, found.shape) == (array.dtype, array.shape)
                assert not found.flags.writeable
                assert array.nbytes < 64 * 1024 or np.shares_memory(found, array)
        for wrong in (buffers[:-1], tuple(buffer[:-1] for buffer in buffers)):
            with pytest.raises(ValueDecodingError):
                values.unpack(head, wrong)


def test_what_names_its_buffers_in_another_order_gets_them_so_each_time():
    first, second = np.zeros(20_000), np.ones(20_000)
    head, buffers = values.pack([first, second])
    index_0, index_1 = b"\xd4\x07\x00", b"\xd4\x07\x01"
    assert head.count(index_0) == head.count(index_1) == 1
    twice_the_same = head.replace(index_1, index_0)
    swapped = head.replace(index_0, b"?").replace(index_1, index_0).replace(b"?", index_1)
    for _ in range(3):
        assert [array[0] for array in values.unpack(swapped, buffers)] == [1, 0]
        assert [array[0] for array in values.unpack(twice_the_same, buffers)] == [0, 0]
        assert [array[0] for array in values.unpack(head, buffers)] == [0, 1]
