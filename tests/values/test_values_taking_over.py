"""Values that adapters give are taken over: copied if somebody else could change them, else not."""

from __future__ import annotations

import dataclasses
import mmap

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr

from dfmesh import values
from dfmesh.values.new_arrays import give_new_arrays

N = 20_000


@values.register_type
@values.register_type
@dataclasses.dataclass
class Grid:
    name: str
    field: np.ndarray


WRAPPED = {
    "itself": (lambda array: array, lambda got: got),
    "a slice": (lambda array: array[5:], lambda got: got),
    "a read-only view": (lambda array: _read_only(array), lambda got: got),
    "in columns": (lambda array: array.reshape(100, -1).T, lambda got: got),
    "other numbers": (lambda array: array.view("i4"), lambda got: got.view("f8")),
    "a structure": (lambda array: array.view([("a", "f8")]), lambda got: got["a"]),
    "a list": (lambda array: [1, array, array[3:]], lambda got: got[1]),
    "a dictionary": (lambda array: {"deep": ({"x": array},)}, lambda got: got["deep"][0]["x"]),
    "a dataclass": (lambda array: Grid("g", array), lambda got: got.field),
    "masked": (lambda array: np.ma.MaskedArray(array, array < 0), lambda got: got.data),
    "xarray": (lambda array: xr.DataArray(array, dims="x"), lambda got: got.values),
    "a data set": (lambda array: xr.Dataset({"a": ("x", array)}), lambda got: got["a"].values),
    "a memory view": (lambda array: memoryview(array), lambda got: np.asarray(got)),
    "pandas": (lambda array: pd.DataFrame({"a": array}, copy=False), lambda got: got["a"].to_numpy()),
    "Arrow": (lambda array: pa.table({"a": array}), lambda got: got["a"].to_numpy()),
}
"""How an array is given, and how it is found in what arrives."""


def _read_only(array):
    view = array[:]
    view.flags.writeable = False
    return view


def taken(make):
    return values.private_copy(values.take_over([make()]))


@pytest.mark.parametrize("how", WRAPPED)
def test_what_the_adapter_keeps_and_changes_later_is_its_own(how):
    wrap, find = WRAPPED[how]
    state = np.zeros(N)
    got = taken(lambda: wrap(state))
    state += 1
    assert state.max() == 1
    assert not find(got).any()


@pytest.mark.parametrize("how", [name for name in WRAPPED if name not in ("a memory view", "pandas", "Arrow")])
def test_what_nobody_else_holds_is_not_copied(how):
    wrap, find = WRAPPED[how]
    places = []

    def make():
        array = np.ones(N)
        places.append(array.__array_interface__["data"][0])
        return wrap(array)

    whole = taken(make)
    got = find(whole)
    assert 0 <= got.__array_interface__["data"][0] - places[0] < 8 * N
    assert np.shares_memory(got, find(taken(lambda: whole)))  # An adapter gives what it was given.


def test_a_holder_of_any_kind_counts():
    for holder in (memoryview, lambda array: array[1:], lambda array: {"a": [array]}, lambda array: array.T):
        state = np.zeros(N)
        held = holder(state)
        place = state.__array_interface__["data"][0]
        cell = [state]
        del state
        got = values.private_copy(values.take_over(cell))
        assert got.__array_interface__["data"][0] != place
        del held


def test_memory_of_other_libraries_is_not_trusted():
    memory = bytearray(8 * N)
    got = taken(lambda: [np.frombuffer(memory), memory, memoryview(memory)])
    memory[:] = b"\1" * len(memory)
    assert not got[0].any()
    assert not any(got[1])
    assert not any(got[2])
    mapped = mmap.mmap(-1, 8 * N)
    view = taken(lambda: np.frombuffer(mapped))
    np.frombuffer(mapped)[:] = 1
    assert not view.any()


def test_an_array_made_to_be_sent_becomes_read_only_instead():
    segment = mmap.mmap(-1, 80 * N)
    give_new_arrays(lambda shape, dtype: np.ndarray(shape, dtype, buffer=memoryview(segment)))
    try:
        kept = values.empty_array(N)
        got = taken(lambda: kept)
    finally:
        give_new_arrays(lambda shape, dtype: None)
    assert np.shares_memory(got, np.frombuffer(segment))
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1


def test_what_cannot_be_sent_is_given_back_to_be_refused():
    thing = object()
    assert values.take_over([thing]) is thing
    lines = [open]
    assert values.take_over([lines]) is lines


@pytest.mark.parametrize("dtype", ["f8", "i2", "c16", "?", "f2", "M8[ns]"])
def test_a_read_only_array_that_the_adapter_keeps_is_not_copied(dtype):
    kept = np.ones(4 * N).astype(dtype)
    kept.flags.writeable = False
    for _ in range(2):
        got = taken(lambda: kept)
        assert (got.dtype, got.shape) == (kept.dtype, kept.shape)
        assert np.shares_memory(got, kept)
        assert not got.flags.writeable


def test_values_that_were_taken_over_are_settled():
    given = [values.take_over([value]) for value in (np.ones(N), [1, [2]], "text", 3)]
    assert values.are_settled(given)
    assert not values.are_settled([*given, [4]])
    assert not values.are_settled([np.ones(N)])
    for found, one in zip(values.settled(given), given, strict=True):
        assert found is values.private_copy(one)


@pytest.fixture
def copied():
    """The copies that were made of what is about to be sent."""
    made = []

    def copy(array):
        made.append(array.copy())
        return made[-1]

    give_new_arrays(lambda shape, dtype: None, copy)
    yield made
    give_new_arrays(lambda shape, dtype: None)


@pytest.mark.parametrize("how", [name for name in WRAPPED if name not in ("a memory view", "pandas", "Arrow")])
def test_what_leaves_is_copied_at_once_to_where_it_is_sent_from(how, copied):
    wrap, find = WRAPPED[how]

    def make():
        return wrap(np.ones(N))

    got = find(values.private_copy(values.take_over([make()], leaves=True)))
    assert any(np.shares_memory(got, copy) for copy in copied)
    assert (np.ravel(got) == 1).all()
    assert not got.flags.writeable
    copied.clear()
    assert (np.ravel(find(taken(make))) == 1).all()
    assert not copied, "it stays"


@pytest.mark.parametrize("how", ["pandas", "Arrow"])
def test_what_would_be_put_together_again_is_not_copied_before_it_is_sent(how, copied):
    wrap, find = WRAPPED[how]
    got = find(values.private_copy(values.take_over([wrap(np.ones(N))], leaves=True)))
    assert (got == 1).all()
    assert values.private_copy(values.take_over([[bytes(8 * N)]], leaves=True)) == [bytes(8 * N)]
    assert not copied
