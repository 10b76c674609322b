"""Random values of all kinds, and equality that sees types, order, nan and the sign of zero."""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import struct
import typing
import zoneinfo

import hypothesis.extra.numpy as npst
import numpy as np
import pydantic
from hypothesis import strategies as st

from dfmesh import values


@values.register_type
class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


@values.register_type
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@values.register_type
class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@values.register_type
class Place(typing.NamedTuple):
    name: str
    position: typing.Any


@values.register_type
@dataclasses.dataclass
class Station:
    name: str
    reading: typing.Any = None


@values.register_type
@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    item: typing.Any


@values.register_type
class Model(pydantic.BaseModel):
    a: int
    b: typing.Any = None


ZONES = [None, dt.UTC, dt.timezone(dt.timedelta(hours=-3), "X"), zoneinfo.ZoneInfo("Europe/Berlin")]
zones = st.sampled_from(ZONES)

atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.text(max_size=8),
    st.text(st.characters(), max_size=3),
    st.binary(max_size=8),
)

hashable = st.one_of(
    atoms,
    st.complex_numbers(),
    st.decimals().filter(lambda number: not number.is_snan()),
    st.fractions(max_denominator=1000),
    st.uuids(),
    st.dates(),
    st.times(),
    st.builds(lambda d, z, f: d.replace(tzinfo=z, fold=f), st.datetimes(), zones, st.integers(0, 1)),
    st.timedeltas(),
    zones,
    st.builds(range, st.integers(), st.integers(), st.integers(1)),
    st.text("ab/.", max_size=6).map(pathlib.PurePosixPath),
    st.text("ab/.", max_size=6).map(pathlib.Path),
    st.text("ab/.", max_size=6)
    .map(pathlib.PureWindowsPath)
    .filter(lambda path: pathlib.PureWindowsPath(str(path)) == path),
    st.sampled_from([*Colour, *Level, *Rights, Rights(3)]),
    npst.scalar_dtypes().flatmap(lambda dtype: npst.arrays(dtype, ())).map(lambda array: array[()]),
)

arrays = npst.arrays(
    st.one_of(npst.scalar_dtypes(), npst.array_dtypes()),
    npst.array_shapes(min_dims=0, min_side=0, max_side=4),
)

leaves = st.one_of(
    hashable,
    st.decimals(),
    arrays,
    st.binary(max_size=8).map(bytearray),
    st.binary(max_size=8).map(memoryview),
    st.builds(slice, st.integers(), st.none(), st.integers()),
)


def _keys(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3), inner.map(Frozen))


keys = st.recursive(hashable, _keys, max_leaves=4)


def _containers(inner: st.SearchStrategy) -> st.SearchStrategy:
    dictionaries = st.dictionaries(st.one_of(st.text(max_size=4), keys), inner, max_size=4)
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.lists(st.tuples(atoms, atoms), max_size=4),
        dictionaries,
        dictionaries.map(collections.OrderedDict),
        dictionaries.map(lambda d: collections.defaultdict(list, d)),
        st.builds(collections.deque, st.lists(inner, max_size=4), st.sampled_from([None, 4, 9])),
        st.lists(keys, max_size=4).map(collections.Counter),
        st.sets(keys, max_size=4),
        st.builds(Station, st.text(max_size=4), inner),
        st.builds(Place, st.text(max_size=4), inner),
        st.builds(lambda a, b: Model(a=a, b=b), st.integers(), inner),
    )


all_values = st.recursive(leaves, _containers, max_leaves=12)


def same(left, right) -> bool:
    """Whether two values are the same in every respect that the codec keeps."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        alike = (left.dtype, left.shape) == (right.dtype, right.shape)
        return alike and left.tobytes() == right.tobytes()
    if isinstance(left, np.generic):
        return left.dtype == right.dtype and left.tobytes() == right.tobytes()
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, complex):
        return same([left.real, left.imag], [right.real, right.imag])
    if isinstance(left, dict):
        return same(list(left.items()), list(right.items()))
    if isinstance(left, set | frozenset):
        return len(left) == len(right) and values.to_bytes(left) == values.to_bytes(right)
    if isinstance(left, list | tuple | collections.deque):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dt.datetime | dt.time):
        return left.replace(tzinfo=None) == right.replace(tzinfo=None) and _zone(left) == _zone(right)
    if dataclasses.is_dataclass(left):
        return all(same(getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left))
    if isinstance(left, pydantic.BaseModel):
        return same(left.__dict__, right.__dict__) and left.model_fields_set == right.model_fields_set
    if isinstance(left, decimal.Decimal):
        return repr(left) == repr(right)
    return left == right


def _zone(moment):
    return moment.fold, repr(moment.tzinfo)
