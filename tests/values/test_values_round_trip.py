"""Every kind comes back as it was: value, type, order; by every road."""

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from some_values import ZONES, Station, all_values, same

from dfmesh import values

quick = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(all_values)
def test_bytes_round_trip(value):
    assert same(values.from_bytes(values.to_bytes(value)), value)


@quick
@given(all_values)
def test_packed_and_normalised_round_trip(value):
    packed = values.pack(value)
    assert same(values.unpack(packed.head, packed.buffers), value)
    assert same(values.normalise(value), value)
    assert values.size_of(value) >= 0


@quick
@given(all_values)
def test_json_round_trip(value):
    document = json.loads(json.dumps(values.to_json(value), allow_nan=False))
    assert same(values.from_json(document), value)


@quick
@given(all_values)
def test_what_arrives_has_the_bytes_of_what_was_sent(value):
    data = values.to_bytes(value)
    assert values.to_bytes(values.from_bytes(data)) == data
    assert values.to_bytes(values.normalise(value)) == data
    assert values.to_bytes(values.from_json(values.to_json(value))) == data


@pytest.mark.parametrize(
    "value", [None, True, 0, -1, 2**63, 1.5, "x", b"x", [1, ["a", None]], {"a": {"b": 1.5}, 3: [b"x"], None: True}]
)
def test_plain_values_are_messagepack_and_nothing_else(value):
    import msgspec

    assert values.to_bytes(value) == msgspec.msgpack.encode(value)
    assert values.normalise(value) is value


def test_json_keeps_plain_values_plain():
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": []}}
    assert values.to_json(value) == value


@pytest.mark.parametrize(
    "value",
    [
        {"@value": "tuple", "of": [1, 2]},
        {"@value": 3},
        {"@dfm-place-param": "day"},
        {"dfm_class_name": "weather.Bin", "dfm_node_id": 3},
        {"rows": [{"@value": {"@value": "x", "of": None}}]},
    ],
)
def test_a_dictionary_that_looks_like_a_tag_survives_json(value):
    document = values.to_json(value)
    assert document != value
    assert values.from_json(document) == value


def test_sets_have_one_encoding_whatever_the_order_and_the_hash_seed():
    names = [f"name{number}" for number in range(200)]
    assert values.to_bytes(set(names)) == values.to_bytes(set(names[100:] + names[:100]))
    script = (
        "from dfmesh import values; import sys, hashlib;"
        "v = ({f'name{n}' for n in range(50)}, {frozenset({'a', ('b', 1)}): {1, 'x', None}});"
        "import json; print(hashlib.sha256(values.to_bytes(v)).hexdigest(), json.dumps(values.to_json(v)))"
    )
    source = str(Path(values.__file__).parents[2])
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


def test_importing_the_codec_loads_no_heavy_library():
    script = (
        "import sys; from dfmesh import values; values.from_bytes(values.to_bytes([(1, {2}), {'a': 2**70}]));"
        "print([m for m in ('numpy', 'pyarrow', 'pydantic', 'pandas', 'xarray') if m in sys.modules])"
    )
    source = str(Path(values.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout.strip() == "[]"


def test_text_that_is_not_unicode():
    name = os.fsdecode(b"caf\xe9")
    assert values.from_bytes(values.to_bytes({name: [name, (name,)]})) == {name: [name, (name,)]}


@pytest.mark.parametrize("zone", ZONES[1:])
def test_time_zones(zone):
    assert repr(values.from_bytes(values.to_bytes(zone))) == repr(zone)


def test_defaultdict_and_counter_still_work():
    counted = values.from_bytes(values.to_bytes(collections.Counter("aab")))
    assert counted.most_common(1) == [("a", 2)]
    grouped = values.from_bytes(values.to_bytes(collections.defaultdict(list, a=[1])))
    grouped["b"].append(2)
    assert grouped == {"a": [1], "b": [2]}


def test_shared_parts_are_sent_each_time():
    row = (1, {"a": 2})
    assert values.from_bytes(values.to_bytes([row] * 3)) == [row] * 3


def test_sizes_are_near_the_truth():
    for value in [
        np.zeros(10_000),
        b"x" * 5000,
        [1.5] * 100_000,
        {str(n): "x" * 50 for n in range(1000)},
        [Station("abc", [1.5] * 100)] * 50,
    ]:
        true = len(values.to_bytes(value))
        assert 0.5 * true <= values.size_of(value) <= 2 * true
