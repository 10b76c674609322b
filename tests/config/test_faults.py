"""Every mistake in a federation file is reported, once, with its place."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from dfmesh.config import FederationConfig
from dfmesh.errors import ConfigError

OPERATIONS = """\
operations:
  w.Bin: {parameters: {grid: {type: number}, n: {default: 1}}}
"""


def sites(text: str) -> str:
    return f"dfm: 1.0.0\n{OPERATIONS}sites:\n{indent(dedent(text), '  ')}"


def adapter(text: str, more: str = "") -> str:
    """A federation with one adapter."""
    body = indent(dedent(text).strip("\n"), "        ")
    return (
        f"dfm: 1.0.0\n{OPERATIONS}sites:\n  us:\n{indent(dedent(more), '    ')}    interface:\n      w.Bin:\n{body}\n"
    )


def args(text: str, more: str = "") -> str:
    return adapter(f"adapter: l.B\nargs:\n{indent(dedent(text).strip(chr(10)), '  ')}", more)


def operation(text: str) -> str:
    return f"dfm: 1.0.0\noperations:\n  a.B:\n{indent(dedent(text).strip(chr(10)), '    ')}\n"


# The § stands before the place that the fault must name.
CASES = {
    # the file
    "unknown section": (
        "dfm: 1.0.0\n§operatons: {}\n",
        "operatons",
        "unknown key 'operatons' in a federation",
        "did you mean 'operations'?",
    ),
    "no version": ("§info: {}\n", "", "a federation has no 'dfm'", "add 'dfm: 1.0.0'"),
    "wrong version": (
        "dfm: §2.0.0\n",
        "dfm",
        "expected 1.0.0 (the version of this format), found the text '2.0.0'",
        "",
    ),
    "version as number": (
        "dfm: §1.0\n",
        "dfm",
        "expected 1.0.0 (the version of this format), found the number 1.0",
        "",
    ),
    "a list": ("§- a\n", "", "expected a federation (a mapping that begins with 'dfm: 1.0.0'), found a list", ""),
    "section of the wrong type": ("dfm: 1.0.0\nsites: §[a]\n", "sites", "expected a mapping, found a list", ""),
    "api version": (
        "dfm: 1.0.0\ninfo: {api-version: §v1}\n",
        "info.api-version",
        "expected a version X.Y.Z, found the text 'v1'",
        "such as 0.1.0",
    ),
    "api version as number": (
        "dfm: 1.0.0\ninfo: {api-version: §0.1}\n",
        "info.api-version",
        "expected text, found the number 0.1",
        "put it in quotes",
    ),
    "code package": (
        "dfm: 1.0.0\ninfo: {code-package: §my-fed}\n",
        "info.code-package",
        "expected the name of a Python package, found the text 'my-fed'",
        "",
    ),
    "syntax": (
        "dfm: 1.0.0\nsites: §{a: 1\nb: [\n",
        "",
        "not valid YAML: the '{' that begins here is not closed before line 3",
        "put '}' at its end",
    ),
    "tab": ("dfm: 1.0.0\nsites:\n§\ta: 1\n", None, "not valid YAML", "YAML indents with spaces, not tabs"),
    "duplicate key": ("dfm: 1.0.0\nsites:\n  a: {}\n  §a: {}\n", "sites.a", "'a' is given twice (first in line 3)", ""),
    "duplicate in data": (
        "dfm: 1.0.0\nsites: {a: {info: {x: 1, §x: 2}}}\n",
        "sites.a.info.x",
        "'x' is given twice (first in line 2)",
        "",
    ),
    "two spellings": (
        adapter("adapter: l.B\nis-async: true\n§is_async: true"),
        "sites.us.interface.w.Bin.is_async",
        "'is_async' is given twice, first as 'is-async' (first in line 9)",
        "",
    ),
    "key that is no name": ("dfm: 1.0.0\nsites: {§[a]: {}}\n", "sites", "expected a name as key, found a list", ""),
    "value without JSON form": (
        args("x: {const: §!!binary aGk=}"),
        "sites.us.interface.w.Bin.args.x.const",
        "'aGk=' has the tag tag:yaml.org,2002:binary, which dfmesh has no value for",
        "",
    ),
    "anchor in itself": (
        "dfm: 1.0.0\nsites: {a: {info: §&x {b: *x}}}\n",
        "sites.a.info.b",
        "contains itself through an anchor",
        "",
    ),
    "schema in itself": (
        "dfm: 1.0.0\nschemas: {a: &x {properties: {§b: *x}}}\n",
        "schemas.a.properties.b",
        "contains itself through an anchor",
        "use $ref for that",
    ),
    # operations
    "operation name": (
        "dfm: 1.0.0\noperations:\n  §a b: {}\n",
        "operations.a b",
        "'a b' is no name for an operation",
        "write it like weather.Bin",
    ),
    "operation inside operation": (
        "dfm: 1.0.0\noperations:\n  §a: {}\n  a.B: {}\n",
        "operations.a",
        "'a' is an operation and the beginning of 'a.B'",
        "rename one of them",
    ),
    "unknown key of operation": (
        operation("§parametres: {}"),
        "operations.a.B.parametres",
        "unknown key 'parametres' in an operation",
        "did you mean 'parameters'?",
    ),
    "operation of wrong type": (
        operation("type: §array"),
        "operations.a.B.type",
        "expected 'object' (or no type), found the text 'array'",
        "",
    ),
    "parameters twice": (
        operation("parameters: {}\nproperties: §{}"),
        "operations.a.B.properties",
        "has both 'parameters' and 'properties'",
        "they are the same: keep one",
    ),
    "description": (operation("description: §[x]"), "operations.a.B.description", "expected text, found a list", ""),
    "required that is none": (
        operation("parameters: {hour: {}}\nrequired: [§hours]"),
        "operations.a.B.required[0]",
        "'hours' is required but no parameter",
        "did you mean 'hour'?",
    ),
    "required as text": (
        operation("parameters: {hour: {}}\nrequired: §hour"),
        "operations.a.B.required",
        "expected a list, found the text 'hour'",
        "",
    ),
    "parameter name with space": (
        operation("parameters: {§a b: {}}"),
        "operations.a.B.parameters.a b",
        "'a b' is no name for a parameter",
        "use letters, digits and _",
    ),
    "unknown type": (
        operation("parameters: {h: {type: §int}}"),
        "operations.a.B.parameters.h.type",
        "'int' is no type",
        "a Python class is written package.module.Class",
    ),
    "default of another type": (
        operation("parameters: {h: {type: integer, default: §x}}"),
        "operations.a.B.parameters.h.default",
        "the default 'x' of 'h' does not fit its schema",
        "expected integer",
    ),
    "default not in enum": (
        operation("parameters: {h: {enum: [a, b], default: §c}}"),
        "operations.a.B.parameters.h.default",
        "the default 'c' of 'h' does not fit its schema",
        "it is 'c', expected one of 'a', 'b'",
    ),
    "parameter is no schema": (
        operation("parameters: {h: §integer}"),
        "operations.a.B.parameters.h",
        "expected a JSON Schema (a mapping), found the text 'integer'",
        "",
    ),
    "properties of a schema": (
        operation("parameters: {h: {properties: §[a]}}"),
        "operations.a.B.parameters.h.properties",
        "expected a mapping, found a list",
        "",
    ),
    "flag of a parameter": (
        operation("parameters: {h: {discoverable: §maybe}}"),
        "operations.a.B.parameters.h.discoverable",
        "expected true or false, found the text 'maybe'",
        "",
    ),
    # sites
    "site name": (sites("§a/b: {}"), "sites.a/b", "'a/b' is no name for a site", "use letters, digits, - and _"),
    "unknown key of site": (
        sites("us:\n  §provider: {}"),
        "sites.us.provider",
        "unknown key 'provider' in a site",
        "did you mean 'providers'?",
    ),
    "provider name": (
        sites("us:\n  providers: {§a.b: {}}"),
        "sites.us.providers.a.b",
        "'a.b' is no name for a provider",
        "",
    ),
    "unknown key of provider": (
        sites("us:\n  providers: {a: {§inf: {}}}"),
        "sites.us.providers.a.inf",
        "unknown key 'inf' in a provider",
        "did you mean 'info'?",
    ),
    "info": (sites("us: {info: §text}"), "sites.us.info", "expected a mapping, found the text 'text'", ""),
    "impl": (
        sites("us: {impl: §Site}"),
        "sites.us.impl",
        "'Site' is no dotted path of a Python class or function",
        "write module.name, such as weather.adapters.Bin",
    ),
    "impl without path": (
        sites("us: {§impl: {args: {}}}"),
        "sites.us.impl",
        "a constructor call has no 'path'",
        "add 'path'",
    ),
    "vault": (
        sites("us: {secrets_vault: {§class: a.B}}"),
        "sites.us.secrets_vault.class",
        "unknown key 'class' in a secrets vault",
        "there is args, path",
    ),
    "cache": (
        sites("us: {cache_config: {protocol: §5}}"),
        "sites.us.cache_config.protocol",
        "expected text, found the number 5",
        "put it in quotes",
    ),
    "send cost to nobody": (
        sites("usa: {send_cost: {§uza: {}}}"),
        "sites.usa.send_cost.uza",
        "there is no site 'uza' to send to",
        "did you mean 'usa'?",
    ),
    "bandwidth": (
        sites("us: {send_cost: {us: {bandwidth: §0}}}"),
        "sites.us.send_cost.us.bandwidth",
        "expected a number above 0 (bytes per second), found the number 0",
        "",
    ),
    "negative time": (
        sites("us: {send_cost: {us: {fixed_time: §-1}}}"),
        "sites.us.send_cost.us.fixed_time",
        "expected a number from 0 on (seconds), found the number -1",
        "",
    ),
    # adapters
    "unknown operation": (
        sites("us:\n  interface:\n    §'#/operations/w.Bim': l.B"),
        "sites.us.interface.#/operations/w.Bim",
        "there is no operation 'w.Bim'",
        "did you mean 'w.Bin'?",
    ),
    "same operation twice": (
        sites("us:\n  interface:\n    w.Bin: l.B\n    §'#/operations/w.Bin': l.B"),
        "sites.us.interface.#/operations/w.Bin",
        "'#/operations/w.Bin' is given twice, first as 'w.Bin' (first in line 7)",
        "",
    ),
    "unknown key of adapter": (
        adapter("adapter: l.B\n§arg: {}"),
        "sites.us.interface.w.Bin.arg",
        "unknown key 'arg' in an adapter",
        "did you mean 'args'?",
    ),
    "no adapter": (
        sites("us:\n  interface:\n    §w.Bin: {args: from-operation}"),
        "sites.us.interface.w.Bin",
        "an adapter has no 'adapter'",
        "add 'adapter'",
    ),
    "bad path": (
        adapter("adapter: §lib.my-adapters.B"),
        "sites.us.interface.w.Bin.adapter",
        "'lib.my-adapters.B' is no dotted path of a Python class or function",
        "",
    ),
    "keyword in path": (
        adapter("adapter: §lib.class.B"),
        "sites.us.interface.w.Bin.adapter",
        "'lib.class.B' is no dotted path",
        "",
    ),
    "is-async": (
        adapter("adapter: l.B\nis-async: §1"),
        "sites.us.interface.w.Bin.is-async",
        "expected true or false, found the number 1",
        "",
    ),
    "cost": (
        adapter("adapter: l.B\ncompute_cost: {§fixed: 1}"),
        "sites.us.interface.w.Bin.compute_cost.fixed",
        "unknown key 'fixed' in a compute cost",
        "did you mean 'fixed_",
    ),
    "size": (
        adapter("adapter: l.B\ncompute_cost: {fixed_size: §big}"),
        "sites.us.interface.w.Bin.compute_cost.fixed_size",
        "expected a number from 0 on (bytes), found the text 'big'",
        "",
    ),
    # arguments
    "args": (
        adapter("adapter: l.B\nargs: §from-op"),
        "sites.us.interface.w.Bin.args",
        "expected 'from-operation' or a mapping of the adapter's arguments, found the text 'from-op'",
        "",
    ),
    "no source": (
        args("§x: {doc: text}"),
        "sites.us.interface.w.Bin.args.x",
        "expected one of from-param, const, from-secrets, from-provider, from-site",
        "",
    ),
    "two sources": (
        args("x: {from-param: grid, §const: 1}"),
        "sites.us.interface.w.Bin.args.x.const",
        "has both from-param and const",
        "keep one",
    ),
    "misspelled source": (
        args("x: {§from-parm: grid}"),
        "sites.us.interface.w.Bin.args.x.from-parm",
        "unknown key 'from-parm' in an argument",
        "did you mean 'from_param'?",
    ),
    "list as source": (
        args("x: §[1]"),
        "sites.us.interface.w.Bin.args.x",
        "expected one of from-param",
        "to pass a list write 'const: [...]'",
    ),
    "unknown parameter": (
        args("x: {from-param: §grd}"),
        "sites.us.interface.w.Bin.args.x.from-param",
        "w.Bin has no parameter 'grd'",
        "did you mean 'grid'?",
    ),
    "unknown short parameter": (
        args("x: §hello"),
        "sites.us.interface.w.Bin.args.x",
        "w.Bin has no parameter 'hello'",
        "to pass a text write 'const: \"...\"'",
    ),
    "unknown provider": (
        args("x: {from-provider: §archiv.url}", "providers: {archive: {}}\n"),
        "sites.us.interface.w.Bin.args.x.from-provider",
        "the site has no provider 'archiv'",
        "did you mean 'archive'?",
    ),
    "unknown provider property": (
        args("x: {from-provider: §archive.ulr}", "providers: {archive: {info: {url: x}}}\n"),
        "sites.us.interface.w.Bin.args.x.from-provider",
        "provider 'archive' has no property 'ulr'",
        "did you mean 'url'?",
    ),
    "provider without property": (
        args("x: {from-provider: §archive}", "providers: {archive: {}}\n"),
        "sites.us.interface.w.Bin.args.x.from-provider",
        "expected provider.property, found 'archive'",
        "such as archive.base_url",
    ),
    "unknown site property": (
        args("x: {from-site: §regoin}", "info: {region: x}\n"),
        "sites.us.interface.w.Bin.args.x.from-site",
        "the site has no property 'regoin'",
        "did you mean 'region'?",
    ),
    "exposed parameter": (
        args("x: {from-param: grid, §expose-as: {param: y}}"),
        "sites.us.interface.w.Bin.args.x.expose-as",
        "an argument that is a parameter cannot be exposed",
        "",
    ),
    "exposed without name": (
        args("x: {const: 1, §expose-as: {type: string}}"),
        "sites.us.interface.w.Bin.args.x.expose-as",
        "an exposed parameter has no 'param'",
        "add 'param'",
    ),
    "exposed under a reserved name": (
        args("x: {const: 1, expose-as: {param: §site}}"),
        "sites.us.interface.w.Bin.args.x.expose-as.param",
        "the parameter name 'site' is reserved",
        "",
    ),
    "exposed with unknown type": (
        args("x: {const: 1, expose-as: {param: y, type: §str}}"),
        "sites.us.interface.w.Bin.args.x.expose-as.type",
        "'str' is no type",
        "did you mean 'string'?",
    ),
    # references
    "nowhere": (
        sites("us: {$ref: §'#/sites/uk'}"),
        "sites.us.$ref",
        "fed.dfm.yaml#/sites/uk does not exist: no 'uk' in sites",
        "there is us",
    ),
    "no file": (
        sites("us: {$ref: §other.yaml}"),
        "sites.us.$ref",
        "cannot read",
        "paths are relative to the file they stand in",
    ),
    "network": (
        sites("us: {$ref: §'https://x.org/a.yaml'}"),
        "sites.us.$ref",
        "https://x.org/a.yaml is on the network",
        "save the file beside this one and name that",
    ),
    "not a mapping": (
        sites("us: {$ref: §'#/dfm', info: {}}"),
        "sites.us.$ref",
        "#/dfm is the text '1.0.0', a mapping was expected",
        "",
    ),
    "reference of wrong type": (
        sites("us: {$ref: §5, info: {}}"),
        "sites.us.$ref",
        "expected text, found the number 5",
        "",
    ),
    "circle": (
        "dfm: 1.0.0\nschemas: {a: {$ref: '#/schemas/b'}, b: {$ref: §'#/schemas/a'}}\n",
        "schemas.a.$ref",
        "references go in a circle: #/schemas/b -> #/schemas/a",
        "",
    ),
    "circle of merges": (
        "dfm: 1.0.0\noperations: {$ref: [§'#/operations']}\n",
        None,
        "references go in a circle: #/operations -> #/operations",
        "",
    ),
    "in a schema": (
        operation("parameters: {h: {items: {$ref: §'#/schemas/No'}}}"),
        "operations.a.B.parameters.h.items.$ref",
        "does not exist: no 'schemas' in the file",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_mistake_is_one_fault_at_its_place(write, case):
    marked, path, message, hint = CASES[case]
    before = marked.partition("§")[0]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    file = write(marked.replace("§", ""))
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(file)
    (fault,) = caught.value.faults
    assert message in fault.message
    assert hint in fault.hint
    assert path is None or fault.path == path
    assert (fault.location.line, fault.location.column) == (line, column), str(fault)
    assert fault.location.file == str(file)


@pytest.mark.parametrize("name", ["site", "provider", "after", "retries", "timeout", "node_id", "dfm_after"])
def test_reserved_parameter_names(write, name):
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(write(f"dfm: 1.0.0\noperations:\n  a.B:\n    parameters:\n      {name}: {{}}\n"))
    (fault,) = caught.value.faults
    assert fault.message == f"the parameter name {name!r} is reserved"
    assert (fault.location.line, fault.location.column) == (5, 7)


def test_all_mistakes_are_reported_at_once(write):
    file = write("""
        dfm: 1.0.0
        inf: {}
        operations:
          w.Bin: {parameters: {site: {}, grid: {type: nummer}}}
        sites:
          us:
            interface:
              w.Bim: l.B
              w.Bin: {adapter: B, args: {x: {from-param: gird}, y: {const: 1, expose-as: {}}}}
          ca: {send_cost: {us: {bandwidth: fast}}}
    """)
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(file)
    assert [fault.location.line for fault in caught.value.faults] == [3, 5, 5, 9, 10, 10, 10, 11]
    first, *rest = str(caught.value).splitlines()
    assert first == f"{file} has 8 mistakes"
    assert rest[0] == f"  {file}:3:1: inf: unknown key 'inf' in a federation (did you mean 'info'?)"


def test_a_mistake_in_a_shared_interface_is_one_fault(write):
    file = write("""
        dfm: 1.0.0
        operations: {a.B: {}}
        interfaces: {all: {a.B: {adapter: l.B, arks: {}}}, unused: {a.C: l.C}}
        sites: {us: {interface: {$ref: "#/interfaces/all"}}, ca: {interface: {$ref: "#/interfaces/all"}}}
    """)
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(file)
    assert [(f.path, f.message) for f in caught.value.faults] == [
        ("sites.us.interface.a.B.arks", "unknown key 'arks' in an adapter"),
        ("interfaces.unused.a.C", "there is no operation 'a.C'"),
    ]


def test_a_mistake_in_another_file_is_named_there(write, tmp_path):
    file = write(
        "{dfm: 1.0.0, operations: {$ref: [parts/a.yaml, parts/b.json]}}",
        files={"parts/a.yaml": "a.B:\n  retruns: x\n", "parts/b.json": '{"a.C": [}'},
    )
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(file)
    yaml, syntax = sorted(caught.value.faults, key=str)
    assert str(yaml.location) == f"{tmp_path}/parts/a.yaml:2:3"
    assert yaml.path == "operations.a.B.retruns"
    assert str(syntax.location) == f"{tmp_path}/parts/b.json:1:10"


def test_files_are_named_as_the_user_named_them(write, monkeypatch):
    monkeypatch.chdir(write("dfm: 2.0.0\n").parent)
    with pytest.raises(ConfigError, match=r"^fed\.dfm\.yaml has 1 mistake\n  fed\.dfm\.yaml:1:6: dfm: expected"):
        FederationConfig.load("fed.dfm.yaml")


def test_an_empty_file(write):
    with pytest.raises(ConfigError, match="is empty"):
        FederationConfig.load(write(""))


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "f.dfm.yaml").write_bytes(b"dfm: \xff\xfe\x00")
    with pytest.raises(ConfigError, match="not valid YAML"):
        FederationConfig.load(tmp_path / "f.dfm.yaml")
