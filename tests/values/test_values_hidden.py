"""What the memory of a value holds but the value does not show stays at home."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dfmesh import values

SECRET = b"ALICE-SECRET"
TEXT = SECRET.decode() + ", long enough to stand by itself"
NUMBER = int.from_bytes(b"ALICE\0\0\0", "little")


def travels(value):
    """All bytes that a value is sent as."""
    packed = values.pack(value)
    return values.to_bytes(value) + bytes(packed.head) + b"".join(bytes(buffer) for buffer in packed.buffers)


def hides(value):
    """Send a value that holds a secret, and give what arrives."""
    sent = travels(value)
    assert b"ALICE" not in sent
    packed = values.pack(value)
    return values.unpack(packed.head, packed.buffers)


RECORDS = np.array([(SECRET, 44, 21.5), (SECRET, 51, 30.0)], dtype=[("name", "S12"), ("age", "i4"), ("bmi", "f8")])


@pytest.mark.parametrize("count", [2, 20_000], ids=["small", "large"])
def test_fields_that_were_not_chosen(count):
    records = np.resize(RECORDS, count)
    chosen = records[["age", "bmi"]]
    back = hides(chosen)
    assert back.dtype == chosen.dtype
    assert np.array_equal(back, chosen)
    assert np.array_equal(hides(chosen.reshape(2, -1).T), chosen.reshape(2, -1).T)
    assert np.array_equal(hides(chosen[::2]), chosen[::2])
    assert hides(chosen[0]) == chosen[0]
    assert SECRET in travels(records), "a field that was chosen does travel"


def test_gaps_inside_of_fields():
    inner = np.dtype([("name", "S12"), ("age", "i4")])
    records = np.array([((SECRET, 44), [1, 2]), ((SECRET, 51), [3, 4])], dtype=[("who", inner), ("doses", "i2", 2)])
    aged = np.ndarray(2, {"names": ["age"], "formats": ["i4"], "offsets": [12], "itemsize": 20}, records)
    nested = np.ndarray(2, {"names": ["who"], "formats": [aged.dtype], "offsets": [0], "itemsize": 20}, records)
    assert list(hides(aged)["age"]) == [44, 51]
    assert list(hides(nested)["who"]["age"]) == [44, 51]
    assert hides(records[["doses"]])["doses"].tolist() == [[1, 2], [3, 4]]


def test_padding_holds_nothing():
    for kind in (np.longdouble, np.clongdouble):
        array = np.frombuffer(b"\xff" * 64, kind).copy()
        array[:] = kind(1.5)
        again = np.zeros_like(array)
        again[:] = kind(1.5)
        assert values.to_bytes(array) == values.to_bytes(again)
        assert values.to_bytes(array[0]) == values.to_bytes(again[0])
    aligned = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    dirty = np.frombuffer(b"\xff" * 32, aligned).copy()
    dirty["a"], dirty["b"] = 1, 2.0
    assert values.to_bytes(dirty) == values.to_bytes(np.array([(1, 2.0)] * 2, aligned))


@pytest.mark.skipif(np.finfo(np.longdouble).nmant != 63, reason="only extended precision is padded")
@pytest.mark.parametrize("kind", [np.longdouble, np.clongdouble])
def test_padding_of_large_arrays_holds_nothing(kind):
    size = np.dtype(np.longdouble).itemsize
    number = np.longdouble(1.5).tobytes()[:10] + b"\xee" * (size - 10)
    dirty = np.frombuffer(number * 20_000, kind)
    for value in (dirty, [dirty, dirty]):
        for _ in range(2):  # Those of a kind that was met before may take a shorter way.
            assert b"\xee" not in travels(value)
    assert np.array_equal(hides(dirty), dirty)


@pytest.mark.parametrize("mask", [[False, True, False], [True, True, True]])
def test_masked_elements(mask):
    back = hides(np.ma.MaskedArray([1, NUMBER if mask[1] else 2, 3], mask=mask))
    assert back.tolist() == [None if masked else value for masked, value in zip(mask, [1, 2, 3], strict=True)]
    texts = np.ma.MaskedArray(np.array(["a", TEXT, "c"], object), mask=mask)
    assert hides(texts).tolist() == [None if masked else value for masked, value in zip(mask, "abc", strict=True)]
    records = np.ma.MaskedArray(RECORDS, mask=[(True, False, False)] * 2)
    assert hides(records)["age"].tolist() == [44, 51]


def under_null(array):
    """The same array with its first item null, which stays in memory."""
    valid = pa.array([False] + [True] * (len(array) - 1)).buffers()[1]
    return pa.Array.from_buffers(array.type, len(array), [valid, *array.buffers()[1:]])


FIRST = pa.array([True, False, False])
TEXTS = pa.array([TEXT, "b", "c"])
LISTS = pa.array([[TEXT], ["b"], ["c"]])
REQUIRED = [pa.field("name", pa.string(), nullable=False)]
NUMBERS = pa.array(np.array([NUMBER, 2, 3]), mask=np.array([True, False, False]))
HIDING = {
    "numbers": NUMBERS,
    "dates": NUMBERS.view(pa.timestamp("us")),
    "decimals": under_null(pa.array([NUMBER, 2, 3], pa.decimal128(38))),
    "fixed": under_null(pa.array([SECRET, b"b" * 12, b"c" * 12], pa.binary(12))),
    "text": under_null(TEXTS),
    "large text": under_null(TEXTS.cast(pa.large_string())),
    "bytes": under_null(TEXTS.cast(pa.binary())),
    "a slice": TEXTS.slice(1),
    "the start of a slice": pa.array(["b", "c", TEXT]).slice(0, 2),
    "viewed text": TEXTS.cast(pa.string_view()).slice(1),
    "viewed bytes": TEXTS.cast(pa.binary()).cast(pa.binary_view()).slice(1),
    "structures": pa.StructArray.from_arrays([TEXTS], ["name"], mask=FIRST),
    "required fields": pa.StructArray.from_arrays([TEXTS], fields=REQUIRED, mask=FIRST),
    "fields": pa.StructArray.from_arrays([under_null(TEXTS)], ["name"]),
    "viewed fields": pa.StructArray.from_arrays([TEXTS.cast(pa.string_view())], ["name"]).slice(1),
    "lists": pa.ListArray.from_arrays(LISTS.offsets, LISTS.values, mask=FIRST),
    "unlisted items": pa.ListArray.from_arrays(pa.array([1, 2, 3], pa.int32()), TEXTS),
    "listed nulls": pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), under_null(TEXTS)),
    "list views": pa.ListViewArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([1, 1], pa.int32()), TEXTS),
    "lists of one length": pa.FixedSizeListArray.from_arrays(TEXTS, 1, mask=FIRST),
    "maps": pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), TEXTS[:2], pa.array([1, 2]), mask=FIRST[:2]),
    "numbers of words": pa.DictionaryArray.from_arrays(NUMBERS, pa.array(["", "", "a", "b"]), safe=False),
    "dense unions": pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([1, 2], pa.int32()), [TEXTS]),
    "sparse unions": pa.UnionArray.from_sparse(pa.array([1, 0, 0], pa.int8()), [TEXTS, pa.array([1, 2, 3])]),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), TEXTS[:2]).slice(1),
}


@pytest.mark.parametrize("what", HIDING)
def test_arrow_arrays(what):
    array = HIDING[what]
    back = hides(array)
    assert back.type == array.type
    assert back.to_pylist() == array.to_pylist()
    assert hides(pa.table({"column": array})).column("column").to_pylist() == array.to_pylist()
    assert hides(pa.chunked_array([array])).to_pylist() == array.to_pylist()
    assert hides(pa.record_batch({"column": array})).column("column").to_pylist() == array.to_pylist()


def test_truth_values_behind_a_slice():
    shown = [True, False, None]
    for further in (True, False, None):
        array = pa.array(shown + [further] * 9).slice(0, 3)
        assert values.to_bytes(array) == values.to_bytes(pa.array(shown))


def test_what_hides_nothing_is_not_copied():
    numbers = pa.array(np.arange(100_000.0))
    nulls = pa.array([None, *range(100_000)])
    not_numbers = pa.array(np.array([np.nan, *range(100_000)]), from_pandas=True)
    for array in (numbers, nulls, not_numbers):
        data = array.buffers()[1]
        addresses = {np.frombuffer(buffer, np.uint8).ctypes.data for buffer in values.pack(array).buffers}
        assert data.address in addresses


def test_nulls_of_pandas():
    column = pd.Series([NUMBER, 2, 3], dtype="Int64")
    column[0] = pd.NA
    frame = pd.DataFrame({"age": column, "name": pd.Series([TEXT, "b", "c"]).where([False, True, True])})
    back = hides(frame)
    pd.testing.assert_frame_equal(back, frame)
    pd.testing.assert_series_equal(hides(column), column)
    assert hides(pd.DataFrame({"name": [TEXT, "b"]}, index=[TEXT, "b"]).iloc[1:]).index.tolist() == ["b"]
