"""What may not be sent is refused with the place, the reason and the way out; never with a crash."""

import asyncio
import collections
import dataclasses
import enum
import pathlib
import typing

import msgspec
import numpy as np
import pydantic
import pytest
from some_values import Colour, Model, Station

from dfmesh import values
from dfmesh.errors import ValueDecodingError, ValueEncodingError


class Count(int):
    pass


class Opaque:
    def __repr__(self):
        return "<opaque>"


def generator():
    yield 1


ROADS = [values.to_bytes, values.pack, values.to_json, values.normalise]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize(
    ("value", "place", "advice"),
    [
        (generator(), "value: <class 'generator'>", "send list(...)"),
        ({"rows": [1, 2, (3, generator())]}, "value['rows'][2][1]: <class 'generator'>", "send list(...)"),
        ([{"a": {"b": open}}], "value[0]['a']['b']: ", "send data, not code"),
        ([Opaque()], "value[0]: ", "dfmesh.values.register_type"),
        (Count(3), "value: ", "send int(...) of it"),
        ([ValueError("x")], "value[0]: <class 'ValueError'>", "str(error)"),
        (Station("a", [1, int]), "value.reading[1]: ", "send data, not code"),
        (Model(a=1, b={"k": Opaque()}), "value.b['k']: ", "register_type"),
        (collections.OrderedDict(a=[Opaque()]), "value['a'][0]: ", "register_type"),
        (collections.defaultdict(list, a=[Opaque()]), "value['a'][0]: ", "register_type"),
        (collections.defaultdict(lambda: 3), "value: a defaultdict whose factory", "send dict(value)"),
        (collections.deque([Opaque()]), "value[0]: ", "register_type"),
        ({"a": 1}.keys(), "value: <class 'dict_keys'>", "send list(...)"),
        (np.array([1, Opaque()], object), "value[1]: ", "register_type"),
        ([np.zeros(2, [("a", object)])], "value[0]: numpy data type", ".astype"),
        ({1: {Opaque()}}, "value[1] (", "register_type"),
    ],
)
def test_the_error_says_where_and_what_to_do(road, value, place, advice):
    with pytest.raises(ValueEncodingError) as caught:
        road(value)
    assert place in str(caught.value)
    assert advice in str(caught.value)


def test_a_key_that_may_not_be_sent():
    with pytest.raises(ValueEncodingError, match=r"value\[0\] \(key <opaque>\): "):
        values.to_bytes([{Opaque(): 1}])


def test_a_coroutine_is_refused():
    coroutine = asyncio.sleep(0)
    with pytest.raises(ValueEncodingError, match="await it"):
        values.to_bytes({"a": coroutine})
    coroutine.close()


def _nested(depth, leaf, wrap):
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


WRAPS = [lambda v: [v], lambda v: (v,), lambda v: {"a": v}, lambda v: {(1,): v}, lambda v: Station("a", v)]


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("leaf", [1, (1,), b""])
def test_depth_has_a_limit_and_a_clear_error(wrap, leaf):
    deep = _nested(98, leaf, wrap)
    assert values.from_bytes(values.to_bytes(deep)) == deep
    assert values.from_json(values.to_json(deep)) == deep
    for depth in (103, 500, 100_000):
        for road in ROADS:
            with pytest.raises(ValueEncodingError, match="nested"):
                road(_nested(depth, leaf, wrap))


@pytest.mark.parametrize("road", ROADS)
def test_cyclic_values_are_named(road):
    plain: list[typing.Any] = [1]
    plain.append({"x": [plain, plain]})
    with pytest.raises(ValueEncodingError, match=r"value contains itself \(at value\[1\]\['x'\]\[0\]\)"):
        road(plain)
    station = Station("a")
    station.reading = (station,)
    with pytest.raises(ValueEncodingError, match=r"value\['s'\] contains itself \(at value\['s'\]\.reading\[0\]\)"):
        road({"s": station})


def test_a_value_that_is_exponentially_larger_than_its_parts_is_refused(monkeypatch):
    from dfmesh.values import encoding

    monkeypatch.setattr(encoding, "MAX_PARTS", 10_000)
    shared: typing.Any = [1]
    for _ in range(60):
        shared = [shared, shared]
    for road in ROADS:
        with pytest.raises(ValueEncodingError, match="containers"):
            road(shared)


def test_many_rows_that_are_the_same_object_are_fine():
    rows = [{"a": [1, 2]}] * 100_000
    assert values.from_bytes(values.to_bytes(rows)) == rows


# Classes of users


def test_a_class_that_is_not_known_here_names_itself_and_the_way_out():
    data = values.to_bytes(Station("a"))
    other = data.replace(b"some_values.Station", b"elsewhere__.Station")
    with pytest.raises(ValueDecodingError, match=r"'elsewhere__.Station'.*register_type"):
        values.from_bytes(other)
    document = values.to_json([Station("a")])
    document[0]["of"][""] = "__main__.Station"
    with pytest.raises(ValueDecodingError, match="defined in a script"):
        values.from_json(document)


def test_a_class_that_is_not_registered_is_refused_however_often():
    @dataclasses.dataclass
    class Quiet:
        a: int = 0

    for _ in range(2):
        with pytest.raises(ValueEncodingError, match=r"value\[0\]: .*Quiet is not registered .* @dfmesh.register_type"):
            values.to_bytes([Quiet()])


def test_nothing_is_imported_on_behalf_of_a_sender():
    import sys

    sys.modules.pop("this", None)
    data = values.to_bytes(Station("a")).replace(b"some_values.Station", b"this.aaaaaaaaaaaaaa")
    with pytest.raises(ValueDecodingError):
        values.from_bytes(data)
    assert "this" not in sys.modules


def test_register_a_class_with_functions_and_a_name():
    class Celsius(float):
        pass

    values.register_type(Celsius, name="celsius", to_value=float, from_value=Celsius)
    back = values.from_bytes(values.to_bytes([Celsius(3.5)]))
    assert type(back[0]) is Celsius
    assert b"celsius" in values.to_bytes(Celsius(3.5))
    assert values.from_json(values.to_json(Celsius(3.5))) == 3.5


def test_register_type_is_a_decorator_and_checks_its_class():
    @values.register_type
    class Fine(msgspec.Struct):
        a: int

    assert values.from_bytes(values.to_bytes(Fine(3))) == Fine(3)
    with pytest.raises(TypeError, match="to_value and from_value"):
        values.register_type(Opaque)
    with pytest.raises(TypeError, match="both"):
        values.register_type(Opaque, to_value=str)


def test_a_class_defined_again_replaces_the_first():
    def define():
        @values.register_type
        @dataclasses.dataclass
        class Again:
            a: int

        return Again

    first = define()
    data = values.to_bytes(first(1))
    second = define()
    assert type(values.from_bytes(data)) is second
    assert type(values.normalise([first(1), (first(2),)])[0]) is second


def test_to_value_that_fails_is_an_encoding_error():
    class Bad:
        pass

    values.register_type(Bad, to_value=lambda _: 1 / 0, from_value=Bad)
    with pytest.raises(ValueEncodingError, match=r"value\['x'\]: .* cannot be taken apart: ZeroDivisionError"):
        values.to_bytes({"x": Bad()})


def test_a_class_that_fails_while_it_is_read_or_shown_is_an_encoding_error():
    class Moody:
        def __repr__(self):
            raise RuntimeError("no")

    @values.register_type
    @dataclasses.dataclass
    class Lazy:
        field: int = 0

    Lazy.field = property(lambda _: 1 / 0, lambda _, value: None)
    with pytest.raises(ValueEncodingError, match=r"value\[0\]: .*ZeroDivisionError"):
        values.to_bytes([Lazy()])
    for road in ROADS:
        with pytest.raises(ValueEncodingError, match="Moody"):
            road([{Moody(): 1}, {Moody()}])


def test_dataclass_checks_itself_when_it_arrives():
    @values.register_type
    @dataclasses.dataclass
    class Positive:
        number: int
        double: int = dataclasses.field(init=False, default=0)

        def __post_init__(self):
            if self.number < 0:
                raise ValueError("negative")
            self.double = 2 * self.number

    good = Positive(3)
    good.double = 7
    assert values.from_bytes(values.to_bytes(good)).double == 7
    good.number = -1
    with pytest.raises(ValueDecodingError, match="negative"):
        values.from_bytes(values.to_bytes(good))


def test_dataclass_with_an_init_only_variable_is_refused():
    @values.register_type
    @dataclasses.dataclass
    class Odd:
        a: int
        seed: dataclasses.InitVar[int]

    with pytest.raises(ValueEncodingError, match=r"does not take exactly its fields \(seed\)"):
        values.to_bytes(Odd(1, 2))


def test_model_with_alias_extra_and_unset_fields():
    @values.register_type
    class Reading(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")
        speed: float = pydantic.Field(alias="windSpeed")
        note: str = ""
        parts: list["Reading"] = []

    reading = Reading(windSpeed=3, other=(1, 2), parts=[Reading(windSpeed=1)])
    back = values.from_bytes(values.to_bytes(reading))
    assert back == reading
    assert back.model_fields_set == reading.model_fields_set == {"speed", "other", "parts"}
    assert back.model_extra == {"other": (1, 2)}


def test_model_that_does_not_validate_is_a_decoding_error():
    data = values.to_bytes(Model.model_construct(a="no number"))
    with pytest.raises(ValueDecodingError, match="validation error"):
        values.from_bytes(data)


def test_an_enum_member_that_does_not_exist_here():
    data = values.to_bytes(Colour.BLUE).replace(b"BLUE", b"GREY")
    with pytest.raises(ValueDecodingError, match="GREY"):
        values.from_bytes(data)


def test_an_enum_is_not_confused_with_its_value():
    @values.register_type
    class Code(enum.StrEnum):
        OK = "ok"

    back = values.from_bytes(values.to_bytes({"a": Code.OK, "b": "ok"}))
    assert type(back["a"]) is Code
    assert type(back["b"]) is str


def test_half_a_network_path_is_refused_where_it_would_arrive_as_another_one():
    half = pathlib.PureWindowsPath("//server/")
    if pathlib.PureWindowsPath(str(half)) == half:
        assert values.from_bytes(values.to_bytes(half)) == half
    else:
        with pytest.raises(ValueEncodingError, match="not a whole path; give server and share"):
            values.to_bytes(half)
