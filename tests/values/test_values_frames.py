"""DataFrames and Series arrive with the names that they had, whatever these are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dfmesh import values
from dfmesh.errors import ValueDecodingError, ValueEncodingError

COLUMNS = {
    "text": ["a", "b"],
    "numbers": [0, 1],
    "numbers and text": [0, "a"],
    "tuples": pd.Index([(0, 1), (1, 2)], tupleize_cols=False),
    "None": pd.Index([None, "x"], dtype=object),
    "a fraction": [1.5, "x"],
    "booleans": [True, False],
    "objects that are text": pd.Index(["a", "b"], dtype=object, name="n"),
    "times": pd.Index(pd.to_datetime(["2020", "2021"]), name="t"),
    "levels": pd.MultiIndex.from_tuples([(0, "a"), ("b", 1)], names=["i", None]),
    "levels with odd names": pd.MultiIndex.from_tuples([(0, "a"), (1, "b")], names=[3, ("x", 1)]),
    "categories": pd.CategoricalIndex(["a", "b"], ordered=True),
    "a range": pd.RangeIndex(3, 9, 3, name="n"),
    "periods": pd.period_range("2020", periods=2, freq="D"),
    "intervals": pd.interval_range(0, 2),
    "twice the same": ["a", "a"],
}


def arrived(value):
    return values.from_bytes(values.to_bytes(value))


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_columns_of_a_frame(kind):
    frame = pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=COLUMNS[kind])
    for part in (frame, frame[:0], frame.iloc[:, :0]):
        back = arrived(part)
        pd.testing.assert_frame_equal(back, part, check_column_type="exact", check_names=True)
        assert [*map(type, back.columns)] == [*map(type, part.columns)]
        assert [*map(type, back.columns.names)] == [*map(type, part.columns.names)]


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(3, 9, 3, name=5),
        pd.Index([1, 2], name=("a", 1)),
        pd.Index([1, 2], name=7),
        pd.MultiIndex.from_tuples([(0, "a"), (1, "b")], names=[3, "x"]),
    ],
    ids=["range", "tuple", "number", "levels"],
)
def test_the_names_of_an_index(index):
    frame = pd.DataFrame({"v": [1, 2]}, index=index)
    pd.testing.assert_frame_equal(arrived(frame), frame)
    series = pd.Series([1, 2], index=index, name=("a", 2))
    pd.testing.assert_series_equal(arrived(series), series)


def test_an_empty_frame():
    for frame in (pd.DataFrame(), pd.DataFrame(index=[1, 2]), pd.DataFrame(columns=["a"])):
        pd.testing.assert_frame_equal(arrived(frame), frame, check_column_type="exact", check_index_type="exact")


TEXTS = {
    "objects": (["a", "b"], object),
    "objects and None": (["a", None], object),
    "objects and nan": (["a", np.nan], object),
    "objects and NA": (["a", pd.NA], object),
    "nothing but None": ([None, None], object),
    "nothing but nan": ([np.nan, np.nan], object),
    "none": ([], object),
    "str": (["a", None], "str"),
    "string": (["a", None], "string"),
    "python": (["a", None], pd.StringDtype("python")),
    "python nan": (["a", None], pd.StringDtype("python", na_value=np.nan)),
    "arrow": (["a", None], "string[pyarrow]"),
    "arrow itself": (["a", None], pd.ArrowDtype(pa.string())),
    "large arrow itself": (["a", None], pd.ArrowDtype(pa.large_string())),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_the_kind_of_text_of_a_column_or_an_index(kind):
    items, dtype = TEXTS[kind]
    series = pd.Series(items, dtype=dtype, name="s")
    for part in (series, series[:0]):
        back = arrived(part)
        assert (type(back.dtype), repr(back.dtype)) == (type(part.dtype), repr(part.dtype))
        assert repr(list(back)) == repr(list(part))
    frame = pd.DataFrame({"n": range(len(series)), 0: series})
    pd.testing.assert_frame_equal(arrived(frame), frame)
    index = pd.Index(items, dtype=dtype, name=3)
    back = arrived(pd.DataFrame({"n": range(len(series))}, index=index)).index
    assert (type(back), repr(back.dtype), repr(list(back)), back.name) == (
        type(index),
        repr(index.dtype),
        repr(list(index)),
        3,
    )


def test_objects_with_several_kinds_of_missing_values_are_refused():
    with pytest.raises(ValueEncodingError, match="column 'v' of the DataFrame holds objects, and several kinds of mis"):
        values.to_bytes(pd.DataFrame({"v": pd.Series(["a", None, np.nan], dtype=object)}))


def test_an_index_that_cannot_be_sent_is_refused():
    with pytest.raises(ValueEncodingError, match="cannot be sent"):
        values.to_bytes(pd.DataFrame({"v": [1, 2]}, index=pd.Index([1, "a"], dtype=object)))
    with pytest.raises(ValueEncodingError):
        values.to_bytes(pd.DataFrame([[1, 2]], columns=[object(), "a"]))


def test_columns_made_up_by_a_stranger_are_refused():
    frame = pd.DataFrame(np.ones((2, 2)), columns=[0, "a"])
    data = values.to_bytes(frame)
    for good, bad in ((b"labels", b"ranges"), (b"object", b"catego")):
        assert good in data
        with pytest.raises(ValueDecodingError):
            values.from_bytes(data.replace(good, bad))
