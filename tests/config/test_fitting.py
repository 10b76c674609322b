"""What fits the schema of a parameter: for direct constants before the run, for all else at the site."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr

from dfmesh.api import Parameter
from dfmesh.config.fitting import compile_fit, fit_of, schema_mismatch
from dfmesh.config.schema import PYTHON_TYPE

TABLE = {PYTHON_TYPE: "pyarrow.Table"}
HOUR = {"type": "integer", "minimum": 0, "maximum": 23}

FITS: list[tuple[dict[str, Any], list[Any]]] = [
    ({}, [None, 1, "x", object()]),
    ({"type": "integer"}, [1, 3.0, np.int64(2), np.uint8(1), np.float32(2), np.array(4), decimal.Decimal(2)]),
    (
        {"type": "number"},
        [1, 2.5, np.float32(1), np.int8(1), decimal.Decimal("1.5"), pa.scalar(2.5), xr.DataArray(1.0)],
    ),
    ({"type": "boolean"}, [True, np.bool_(False)]),
    ({"type": "string"}, ["", np.str_("x"), dt.date(2026, 1, 1), b"raw"]),
    ({"type": "array"}, [[], (1,), np.zeros(3), pa.array([1]), range(3)]),
    ({"type": "object"}, [{}, pa.table({"a": [1]})]),
    ({"type": ["integer", "null"]}, [None, 3]),
    (HOUR, [0, 23, 23.0, np.int64(5)]),
    ({"enum": ["us", "ca", 3]}, ["us", 3, np.int64(3), np.array([1, 2])]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [1, "x"]),
    ({"type": "array", "items": {"type": "number"}}, [[1, 2.5], np.zeros(5), np.zeros((2, 2))[0], np.arange(3)]),
    ({"type": "object", "properties": {"a": HOUR}, "required": ["a"]}, [{"a": 3, "b": None}]),
    ({"type": "string", "pattern": "^[a-z]+$", "maxLength": 3}, ["abc"]),
    (TABLE, [pa.table({"a": [1]})]),
    ({PYTHON_TYPE: ["pandas.DataFrame", "null"]}, [pd.DataFrame(), None]),
    ({PYTHON_TYPE: "collections.abc.Sequence"}, [[1], (1,)]),
    ({PYTHON_TYPE: "typing.Any"}, [[1], None]),
    ({PYTHON_TYPE: "not_loaded.Grid"}, [pd.DataFrame()]),
    ({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}, [[[], [[]]]]),
]

MISFITS: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "integer"}, True, "is True (bool), expected integer"),
    ({"type": "integer"}, np.bool_(True), "is True (numpy.bool"),
    ({"type": "integer"}, "x", "is 'x' (str), expected integer"),
    ({"type": "integer"}, 2.5, "is 2.5 (float), expected integer"),
    ({"type": "integer"}, np.zeros(2), "is a numpy.ndarray, expected integer"),
    ({"type": "number"}, np.bool_(True), "is True (numpy.bool"),
    ({"type": "number"}, dt.date(2026, 1, 1), "is a datetime.date, expected number"),
    ({"type": "boolean"}, 1, "is 1 (int), expected boolean"),
    ({"type": "string"}, 1, "is 1 (int), expected string"),
    ({"type": "array"}, "abc", "is 'abc' (str), expected array"),
    ({"type": "integer"}, None, "is None (NoneType), expected integer"),
    (HOUR, 40, "is 40, above the maximum 23"),
    (HOUR, np.int64(-1), "is -1, below the minimum 0"),
    ({"type": "number", "exclusiveMinimum": 0}, 0, "is 0, expected more than 0"),
    ({"enum": ["us", "ca"]}, "mx", "is 'mx', expected one of 'us', 'ca'"),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, [1], "is [1] (list), expected integer"),
    ({"type": "array", "items": {"type": "number"}}, [1, "x"], "[1] is 'x' (str), expected number"),
    ({"type": "array", "items": HOUR}, np.array([1, 99]), "[1] is 99, above"),
    ({"type": "array", "minItems": 2}, [1], "has 1 elements, expected at least 2"),
    ({"type": "object", "properties": {"a": HOUR}}, {"a": 99}, "['a'] is 99, above the maximum 23"),
    ({"type": "object", "required": ["a"]}, {}, "has no 'a'"),
    ({"type": "string", "pattern": "^[a-z]+$"}, "A", "is 'A', expected what matches '^[a-z]+$'"),
    ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "b", "expected what matches '^(a+)+$'"),
    (TABLE, [1, 2], "is [1, 2] (list), expected pyarrow.Table"),
    (TABLE, pd.DataFrame(), "DataFrame, expected pyarrow.Table"),
    ({PYTHON_TYPE: "not_loaded.Grid"}, [1], "is [1] (list), expected not_loaded.Grid"),
]


@pytest.mark.parametrize(("schema", "fitting"), FITS)
def test_what_fits(schema: dict[str, Any], fitting: list[Any]) -> None:
    assert [schema_mismatch(value, schema) for value in fitting] == [""] * len(fitting)


@pytest.mark.parametrize(("schema", "value", "reason"), MISFITS)
def test_what_does_not_fit_says_what_came_and_what_was_expected(
    schema: dict[str, Any], value: Any, reason: str
) -> None:
    assert reason in schema_mismatch(value, schema)


def test_none_fits_what_may_be_left_out() -> None:
    schema = {"type": "integer"}
    cases = [
        (Parameter("x", schema, required=True), False),
        (Parameter("x", schema, required=False), True),
        (Parameter("x", schema, required=False, default=3, has_default=True), False),
        (Parameter("x", schema, required=False, default=None, has_default=True), True),
    ]
    for parameter, fits in cases:
        fit = fit_of(parameter)
        assert fit is not None
        assert (fit.judge(None) == "") is fits


def test_an_array_is_not_looked_through_where_its_data_type_says_enough() -> None:
    class Counting(np.ndarray):
        looked = 0

        def __iter__(self) -> Any:
            Counting.looked += 1
            return super().__iter__()

    fit = compile_fit({"type": "array", "items": {"type": "number"}})
    assert fit is not None
    assert fit.judge(np.zeros(4).view(Counting)) == ""
    assert Counting.looked == 0


def test_what_needs_no_check_costs_none() -> None:
    assert compile_fit({}) is None
    assert compile_fit({"description": "anything"}) is None
