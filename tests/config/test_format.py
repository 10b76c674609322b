"""What a federation file may say, and what it means."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dfmesh.config import (
    ComputeCost,
    Constant,
    FederationConfig,
    FromParameter,
    FromProvider,
    FromSecrets,
    FromSite,
    SendCost,
)
from dfmesh.errors import ConfigError, DfmeshError

WEATHER = """
    dfm: 1.0.0
    info: {api-version: 0.1.0, code-package: weather, description: Maps}
    schemas:
      Grid: {type: object, properties: {cells: {type: array}}}
    operations:
      weather.Read:
        description: Read the reports of an hour.
        parameters:
          hour: {type: integer, description: Hour of the day}
          limit: {type: integer, default: 10}
        returns: list
      weather.Bin:
        parameters:
          reports: {type: array}
          grid: {$ref: "#/schemas/Grid"}
          fill: {type: number}
        required: [reports]
    sites:
      us:
        info: {region: north, url: "http://us"}
        cache_config: {protocol: memory, storage_options: {a: 1}, base_path: /cache}
        secrets_vault: {path: lib.Vault, args: {file: x}}
        send_cost: {ca: {fixed_time: 0.5, bandwidth: 1e6}}
        interface:
          "#/operations/weather.Read": {adapter: lib.Read, args: from-operation}
          weather.Bin:
            adapter: {path: lib.Bin, args: {width: 2}}
            is-async: false
            returns: object
            description: Bins quickly
            compute_cost: {fixed_time: 1, compute_throughput: 1e9, fixed_size: 100, output_factor: 0.1}
            args:
              reports: {from-param: reports}
              key: {from-secrets: api_key}
              region: {from-site: region}
              url: {from-provider: archive.url}
              zero: {const: 0}
        providers:
          archive:
            info: {url: "http://archive"}
            impl: {path: lib.Archive, args: {depth: 3}}
            interface:
              weather.Read: lib.ReadArchive
      ca:
        interface:
          weather.Read: lib.Read
"""


def test_a_federation_is_plain_data(load):
    fed = load(WEATHER)
    assert fed.name == "weather"
    assert fed.api_version == "0.1.0"
    assert fed.path.is_absolute()
    assert fed.directory == fed.path.parent
    assert list(fed.operations) == ["weather.Read", "weather.Bin"]
    assert list(fed.sites) == ["us", "ca"]
    assert fed.schemas["Grid"]["properties"] == {"cells": {"type": "array"}}
    us = fed.sites["us"]
    assert us.info == {"region": "north", "url": "http://us"}
    assert us.send_cost == {"ca": SendCost(0.5, 1e6)}
    assert (us.cache_config.protocol, us.cache_config.base_path) == ("memory", "/cache")
    assert (us.secrets_vault.path, us.secrets_vault.args) == ("lib.Vault", {"file": "x"})
    archive = us.providers["archive"]
    assert (archive.impl.path, archive.impl.args) == ("lib.Archive", {"depth": 3})
    assert archive.interface["weather.Read"].path == "lib.ReadArchive"


def test_an_adapter_says_what_it_costs_and_where_its_arguments_come_from(load):
    spec = load(WEATHER).adapter("us", "weather.Bin")
    assert (spec.path, spec.constructor_args) == ("lib.Bin", {"width": 2})
    assert (spec.is_async, spec.returns, spec.description) == (False, "object", "Bins quickly")
    assert spec.compute_cost == ComputeCost(1, 1e9, 100, 0.1)
    assert spec.arguments == {
        "reports": FromParameter("reports"),
        "key": FromSecrets("api_key"),
        "region": FromSite("region"),
        "url": FromProvider("archive", "url"),
        "zero": Constant(0),
    }


def test_arguments_left_out_come_from_the_operation(load):
    fed = load(WEATHER)
    assert fed.adapter("us", "weather.Read").arguments is None
    assert fed.adapter("ca", "weather.Read").arguments is None


def test_who_offers_what(load):
    fed = load(WEATHER)
    assert fed.offers("weather.Read") == ["us", "ca"]
    assert fed.offers("weather.Read", "archive") == ["us"]
    assert fed.offers("weather.Bin", "archive") == []


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (("uk", "weather.Bin", None), "no site 'uk': there is ca, us"),
        (("us", "weather.Bim", None), "site 'us' does not offer 'weather.Bim': did you mean 'weather.Bin'?"),
        (("us", "weather.Bin", "archives"), "site 'us' has no provider 'archives': did you mean 'archive'?"),
        (("us", "weather.Bin", "archive"), "provider 'archive' of site 'us' does not offer 'weather.Bin'"),
    ],
)
def test_asking_for_an_adapter_that_is_not_there(load, asked, answer):
    with pytest.raises(DfmeshError, match=answer.replace("?", r"\?")):
        load(WEATHER).adapter(*asked)


# -- parameters


def test_a_default_makes_a_parameter_optional_and_so_does_a_list_of_required_ones(load):
    fed = load(WEATHER)
    hour, limit = fed.operations["weather.Read"].parameters
    assert (hour.required, hour.has_default, hour.description) == (True, False, "Hour of the day")
    assert (limit.required, limit.has_default, limit.default) == (False, True, 10)
    reports, grid, fill = fed.operations["weather.Bin"].parameters
    assert [p.required for p in (reports, grid, fill)] == [True, False, False]
    assert not fill.has_default


@pytest.mark.parametrize("default", [False, 0, "", None, []])
def test_a_falsy_default_is_a_default(load, default):
    fed = load(f"dfm: 1.0.0\noperations: {{a.B: {{parameters: {{p: {{default: {json.dumps(default)}}}}}}}}}")
    (parameter,) = fed.operations["a.B"].parameters
    assert parameter.has_default
    assert parameter.default == default


def test_a_bare_object_is_any_python_object_as_in_dfm(load):
    fed = load("""
        dfm: 1.0.0
        operations:
          a.B:
            parameters:
              image: {type: object, description: An array}
              config: {type: object, properties: {n: {type: integer}}}
              frame: {type: [number, some.package.Model]}
    """)
    image, config, frame = fed.operations["a.B"].parameters
    assert image.schema == {"description": "An array"}
    assert config.schema["type"] == "object"
    assert frame.schema == {"x-python-type": ["number", "some.package.Model"]}


def test_both_spellings_of_keys(load):
    fed = load("""
        dfm: 1.0.0
        operations: {a.B: {parameters: {x: {}}}}
        sites:
          s:
            cache-config: {base-path: /c}
            interface:
              a.B:
                adapter: l.B
                is_async: true
                compute-cost: {fixed-time: 2}
                args: {y: {from_param: x}, z: {const: 1, expose_as: {param: zz, accepts_node_input: false}}}
    """)
    spec = fed.adapter("s", "a.B")
    assert spec.compute_cost.fixed_time == 2
    assert spec.arguments == {"y": FromParameter("x"), "z": Constant(1, "zz")}
    assert spec.exposed[0].schema == {"accepts-node-input": False}
    assert fed.sites["s"].cache_config.base_path == "/c"


@pytest.mark.parametrize("value", [False, 0, "", None, [], {"$ref": "text"}])
def test_constants_may_be_anything(load, value):
    fed = load(
        "dfm: 1.0.0\noperations: {a.B: {}}\n"
        f"sites: {{s: {{interface: {{a.B: {{adapter: l.B, args: {{k: {{const: {json.dumps(value)}}}}}}}}}}}}}"
    )
    assert fed.adapter("s", "a.B").arguments == {"k": Constant(value)}


def test_short_arguments(load):
    fed = load("""
        dfm: 1.0.0
        operations: {a.B: {parameters: {x: {}}}}
        sites: {s: {interface: {a.B: {adapter: l.B, args: {y: x, n: 3, flag: false, none: null}}}}}
    """)
    assert fed.adapter("s", "a.B").arguments == {
        "y": FromParameter("x"),
        "n": Constant(3),
        "flag": Constant(False),
        "none": Constant(None),
    }


def test_a_country_called_no_is_a_site(load):
    fed = load("{dfm: 1.0.0, sites: {no: {}, on: {}}}")
    assert list(fed.sites) == ["no", "on"]


def test_a_minimal_federation(load):
    fed = load("dfm: 1.0.0\ninfo:\nsites:\n  app:\n", name="tiny.dfm.yaml")
    assert fed.name == "tiny"
    assert fed.sites["app"].interface == {}
    assert len(fed.ops) == 0


def test_provisioning_is_kept_for_other_tools(load):
    assert load("{dfm: 1.0.0, provision: {docker: {image: x}}}").provision == {"docker": {"image": "x"}}


# -- exposed parameters


def test_exposed_parameters_are_optional_parameters_of_the_operation(load):
    fed = load("""
        dfm: 1.0.0
        operations: {a.B: {parameters: {min: {type: number}}, required: []}}
        sites:
          s:
            interface:
              a.B:
                adapter: l.B
                args:
                  low: {const: 0, expose-as: {param: min, type: number}}
                  text: {from-secrets: t, expose-as: {param: greeting, type: string, description: Hello}}
          t:
            interface: {a.B: {adapter: l.B, args: {text: {const: x, expose-as: greeting}}}}
    """)
    spec = fed.adapter("s", "a.B")
    assert spec.arguments == {"low": Constant(0, "min"), "text": FromSecrets("t", "greeting")}
    assert [(p.name, p.required, p.schema["type"]) for p in spec.exposed] == [("greeting", False, "string")]
    assert [p.name for p in fed.operations["a.B"].parameters] == ["min"]
    names = [p.name for p in fed.ops.a.B.parameters]
    assert names == ["min", "greeting"]
    assert "Hello (only at s, t)" in fed.ops.a.B.__doc__


# -- operations as classes


def test_operations_are_classes_with_signature_and_docstring(load):
    fed = load(WEATHER)
    assert fed.ops.weather.Read.__name__ == "Read"
    assert fed.ops["weather.Read"] is fed.ops.weather.Read
    assert "Read the reports of an hour." in fed.ops.weather.Read.__doc__
    assert "hour" in str(fed.ops.weather.Read.__signature__)
    assert dir(fed.ops) == ["weather"]
    assert dir(fed.ops.weather) == ["Bin", "Read"]
    assert list(fed.ops) == ["weather.Read", "weather.Bin"]
    assert "weather.Bin" in fed.ops
    assert repr(fed.ops) == "weather.Read(hour, limit=...)\nweather.Bin(reports, grid=..., fill=...)"


def test_a_misspelled_operation_is_told_what_there_is(load):
    ops = load(WEATHER).ops
    with pytest.raises(AttributeError, match=r"'weather' has no operation 'Bim' \(did you mean 'Bin'\?\)"):
        ops.weather.Bim
    with pytest.raises(AttributeError, match=r"the federation has no operation 'whether' \(did you mean 'weather'"):
        ops.whether
    with pytest.raises(KeyError, match=r"did you mean 'weather\.Bin'"):
        ops["weather.Bim"]
    with pytest.raises(KeyError, match="is not an operation; it has Read, Bin"):
        ops["weather"]


# -- references


def test_sections_are_merged_from_other_files_relative_to_the_file_they_stand_in(load):
    fed = load(
        """
        dfm: 1.0.0
        operations:
          $ref: ["parts/ops.yaml#/operations", "parts/more.json#/operations"]
          own.C: {}
        sites:
          s: {$ref: "parts/site.yaml"}
        """,
        files={
            "parts/ops.yaml": """
                operations:
                  lib.A: {parameters: {$ref: ["deeper/params.yaml#/p"]}}
            """,
            "parts/deeper/params.yaml": "p: {x: {$ref: '../types.yaml#/X'}, y: {$ref: '#/q'}}\nq: {type: boolean}\n",
            "parts/types.yaml": "X: {type: integer}\n",
            "parts/more.json": '{"operations": {"lib.B": {}}}',
            "parts/site.yaml": "interface: {lib.A: l.A, own.C: l.C}\n",
        },
    )
    assert list(fed.operations) == ["lib.A", "lib.B", "own.C"]
    assert [p.schema for p in fed.operations["lib.A"].parameters] == [{"type": "integer"}, {"type": "boolean"}]
    assert list(fed.sites["s"].interface) == ["lib.A", "own.C"]


def test_the_current_directory_does_not_matter(load, write, monkeypatch):
    path = write("{dfm: 1.0.0, operations: {$ref: [ops.yaml]}}", files={"ops.yaml": "a.B: {}\n"})
    monkeypatch.chdir("/")
    assert list(FederationConfig.load(os.path.relpath(path)).operations) == ["a.B"]


def test_chains_of_references_are_followed_and_own_entries_win(load):
    fed = load("""
        dfm: 1.0.0
        schemas:
          A: {$ref: "#/schemas/B"}
          B: {$ref: "#/x-shared/types/C", description: ours}
        x-shared:
          types: {$ref: "#/x-more"}
        x-more:
          C: {type: string, description: theirs}
          slash/ed: {type: "null"}
        operations:
          a.B: {parameters: {p: {$ref: "#/schemas/A", title: P}, q: {$ref: "#/x-more/slash~1ed"}}}
    """)
    p, q = fed.operations["a.B"].parameters
    assert p.schema == {"type": "string", "description": "ours", "title": "P"}
    assert q.schema == {"type": "null"}


def test_references_inside_schemas_are_put_in(load):
    fed = load("""
        dfm: 1.0.0
        schemas:
          Cell: {type: number}
          Grid: {type: object, properties: {rows: {type: array, items: {$ref: "#/schemas/Cell"}}}}
          Either: {anyOf: [{$ref: "#/schemas/Cell"}, {type: "null"}], default: {$ref: data}}
    """)
    assert fed.schemas["Grid"]["properties"]["rows"]["items"] == {"type": "number"}
    assert fed.schemas["Either"]["anyOf"] == [{"type": "number"}, {"type": "null"}]
    assert fed.schemas["Either"]["default"] == {"$ref": "data"}


def test_a_schema_that_contains_itself_keeps_references_to_its_own_definitions(load):
    fed = load("""
        dfm: 1.0.0
        schemas:
          Node: {type: object, properties: {next: {$ref: "#/schemas/Node"}}}
          Even: {properties: {odd: {$ref: "#/schemas/Odd"}}}
          Odd: {properties: {even: {$ref: "#/schemas/Even"}}}
        operations: {a.B: {parameters: {tree: {$ref: "#/schemas/Node"}}}}
    """)
    body = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert fed.schemas["Node"] == {**body, "$defs": {"Node": body}}
    assert fed.operations["a.B"].parameters[0].schema == {**body, "$defs": {"Node": body}}
    assert fed.schemas["Even"]["$defs"]["Even"] == {
        "properties": {"odd": {"properties": {"even": {"$ref": "#/$defs/Even"}}}}
    }


def test_a_schema_pasted_in_with_its_own_definitions(load):
    fed = load("""
        dfm: 1.0.0
        schemas:
          Pasted:
            $defs: {Inner: {type: integer}}
            properties: {a: {$ref: "#/$defs/Inner"}}
        operations: {a.B: {parameters: {p: {$ref: "#/schemas/Pasted"}}}}
    """)
    assert fed.operations["a.B"].parameters[0].schema == {"properties": {"a": {"type": "integer"}}}


def test_shared_schemas_do_not_grow_without_bound(load):
    names = "\n".join(
        f"          S{i}: {{properties: {{a: {{$ref: '#/schemas/S{i + 1}'}}, b: {{$ref: '#/schemas/S{i + 1}'}}}}}}"
        for i in range(60)
    )
    fed = load(f"        dfm: 1.0.0\n        schemas:\n{names}\n          S60: {{type: string}}\n")
    assert fed.schemas["S59"]["properties"]["a"] == {"type": "string"}


def test_yaml_anchors_work(load):
    fed = load("""
        dfm: 1.0.0
        operations: {a.A: {}, a.B: {}}
        x-base: &base {a.A: l.A, a.B: l.B}
        sites:
          s: {interface: *base}
          t: {interface: {<<: *base, a.B: l.other}}
    """)
    assert fed.adapter("s", "a.B").path == "l.B"
    assert [spec.path for spec in fed.sites["t"].interface.values()] == ["l.A", "l.other"]


# -- the short form


def test_sites_that_offer_the_same_share_an_interface(load):
    fed = load("""
        dfm: 1.0.0
        operations: {a.Read: {}, a.Bin: {}, a.Draw: {}}
        interfaces:
          data: {a.Read: l.read, a.Bin: l.bin}
          maps: {$ref: "#/interfaces/data", a.Draw: l.draw}
        sites:
          us: {interface: {$ref: "#/interfaces/data"}}
          ca: {interface: {$ref: ["#/interfaces/data", "#/interfaces/maps"], a.Bin: l.fast_bin}}
    """)
    assert {name: spec.path for name, spec in fed.sites["us"].interface.items()} == {
        "a.Read": "l.read",
        "a.Bin": "l.bin",
    }
    assert {name: spec.path for name, spec in fed.sites["ca"].interface.items()} == {
        "a.Read": "l.read",
        "a.Bin": "l.fast_bin",
        "a.Draw": "l.draw",
    }


def test_the_short_form_is_short(load):
    operations = "".join(f"  a.Op{i}: {{parameters: {{x: {{type: number}}}}}}\n" for i in range(20))
    interface = "".join(f"    a.Op{i}: lib.op{i}\n" for i in range(20))
    sites = "".join(f"  {name}: {{interface: {{$ref: '#/interfaces/all'}}}}\n" for name in ("us", "ca", "mx"))
    text = f"dfm: 1.0.0\noperations:\n{operations}interfaces:\n  all:\n{interface}sites:\n{sites}"
    fed = load(text)
    assert len(fed.offers("a.Op19")) == 3
    assert text.count("\n") < 50


# -- speed


def test_loading_takes_as_long_as_the_file_is(write, calls_made):
    operations = "".join(
        f"  a.Op{i}: {{parameters: {{x: {{type: number}}, y: {{type: number}}}}}}\n" for i in range(20)
    )
    interface = "".join(
        f"      a.Op{i}:\n        adapter: lib.Op{i}\n        args: {{x: {{from-param: x}}, z: {{const: 1}}}}\n"
        for i in range(20)
    )

    def calls(count: int) -> int:
        sites = "".join(f"  site{s}:\n    interface:\n{interface}" for s in range(count))
        path = write(f"dfm: 1.0.0\noperations:\n{operations}sites:\n{sites}")
        FederationConfig.load(path)
        return calls_made(lambda: FederationConfig.load(path))

    few, many = calls(5), calls(20)
    assert many < 4 * 1.2 * few, (few, many)
    assert many / 400 < 1_000, "calls per offered operation"


def test_a_missing_file_is_a_config_error(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no\.dfm\.yaml has 1 mistake\n.*No such file") as caught:
        FederationConfig.load(tmp_path / "no.dfm.yaml")
    assert caught.value.faults[0].location is None
