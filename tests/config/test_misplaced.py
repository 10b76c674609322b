"""A line that is indented too little is one fault, at that line."""

from __future__ import annotations

import pytest

from dfmesh.config import FederationConfig
from dfmesh.errors import ConfigError

OPERATIONS = """\
dfm: 1.0.0
operations:
  clim.Read: {description: Read., parameters: {hour: {type: integer}, url: {}}}
  clim.Bin: {parameters: {x: {}}}
"""

# The § stands before the place that must be named.
CASES = {
    "interface": (
        """\
sites:
  alps:
    providers: {archive: {info: {url: x}}}
  §interface:
      clim.Read:
        adapter: m.f
        args: {hour: hour, url: {from-provider: archive.url}}
      clim.Bin: m.g
  sea:
    send_cost: {alps: {fixed_time: 1}}
""",
        "sites.interface",
        "a site named 'interface'?",
        "indent it under 'alps'",
    ),
    "providers that adapters need": (
        """\
sites:
  alps:
    interface:
      clim.Read: {adapter: m.f, args: {url: {from-provider: archive.url}}}
  §providers:
      archive: {info: {url: x}}
""",
        "sites.providers",
        "a site named 'providers'?",
        "indent it under 'alps'",
    ),
    "all that a site has": (
        "sites:\n  alps:\n  §send_cost:\n    sea: {fixed_time: 1}\n  sea: {}\n",
        "sites.send_cost",
        "a site named 'send_cost'?",
        "indent it under 'alps'",
    ),
    "with dashes": (
        "sites:\n  alps: {}\n  §cache-config: {base_path: x}\n",
        "sites.cache-config",
        "a site named 'cache-config'?",
        "indent it under 'alps'",
    ),
    "before any site": (
        "sites:\n  §info: {region: x}\n  alps: {}\n",
        "sites.info",
        "a site named 'info'?",
        "indent it under the site that it belongs to",
    ),
    "of a provider": (
        "sites:\n  alps:\n    providers:\n      archive:\n        info: {url: x}\n      §interface: {clim.Bin: m.f}\n",
        "sites.alps.providers.interface",
        "a provider named 'interface'?",
        "indent it under 'archive'",
    ),
    "of an adapter": (
        "sites:\n  alps:\n    interface:\n      clim.Bin:\n        adapter: m.f\n      §args: {x: x}\n",
        "sites.alps.interface.args",
        "an operation named 'args'?",
        "indent it under 'clim.Bin'",
    ),
}


def only_fault(file, marked):
    before = marked.partition("§")[0]
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(file)
    assert len(caught.value.faults) == 1, str(caught.value)
    (fault,) = caught.value.faults
    place = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    assert (fault.location.line, fault.location.column) == place, str(fault)
    return fault


@pytest.mark.parametrize("case", CASES)
def test_a_key_that_slipped_out_is_one_fault(write, case):
    text, path, message, hint = CASES[case]
    marked = OPERATIONS + text
    fault = only_fault(write(marked.replace("§", "")), marked)
    assert (fault.path, fault.message, fault.hint) == (path, message, hint)


@pytest.mark.parametrize(
    ("key", "value"),
    [("description", "Read."), ("parameters", "{hour: {type: integer}}"), ("returns", "list"), ("required", "[]")],
)
def test_a_key_of_an_operation_that_slipped_out(write, key, value):
    marked = f"""\
dfm: 1.0.0
operations:
  clim.Read:
    title: Read
  §{key}: {value}
sites:
  alps: {{interface: {{clim.Read: {{adapter: m.f, args: {{}}}}}}}}
"""
    fault = only_fault(write(marked.replace("§", "")), marked)
    assert (fault.message, fault.hint) == (f"an operation named {key!r}?", "indent it under 'clim.Read'")


def test_what_the_slipped_key_holds_is_checked_as_if_it_stood_right(write):
    file = write(OPERATIONS + "sites:\n  alps: {}\n  interface:\n    clim.Rad: m.f\n")
    with pytest.raises(ConfigError) as caught:
        FederationConfig.load(file)
    assert [fault.message for fault in caught.value.faults] == [
        "a site named 'interface'?",
        "there is no operation 'clim.Rad'",
    ]


def test_a_site_may_have_such_a_name_where_it_is_one(load):
    federation = load(OPERATIONS + "sites:\n  info:\n    interface: {clim.Bin: m.f}\n")
    assert list(federation.sites) == ["info"]
    assert federation.offers("clim.Bin") == ["info"]


def test_names_with_dots_are_shown_whole(write):
    marked = OPERATIONS + "sites:\n  alps:\n    §clim.Read: m.f\n"
    assert only_fault(write(marked.replace("§", "")), marked).message == "unknown key 'clim.Read' in a site"


def test_a_key_without_space_is_told(write):
    marked = OPERATIONS + "sites:\n  alps: §info:x\n"
    assert only_fault(write(marked.replace("§", "")), marked).hint == "put a space behind the colon: 'info: x'"


def test_a_wrong_reference_that_several_sites_share_is_one_fault(write):
    marked = f"""\
{OPERATIONS}interfaces:
  all:
    clim.Read: {{$ref: §"#/adapters/read"}}
sites:
  a: {{interface: {{$ref: "#/interfaces/all"}}}}
  b: {{interface: {{$ref: "#/interfaces/all"}}}}
  c: {{interface: {{$ref: "#/interfaces/all"}}}}
"""
    only_fault(write(marked.replace("§", "")), marked)
