"""`dfmesh validate --adapters`: what cannot be loaded is named, and harms nothing else."""

from __future__ import annotations

import json

import pytest
from cli_process import dfmesh

from dfmesh import FederationConfig
from dfmesh.cli.loading import loading_faults

FEDERATION = """\
dfm: 1.0.0
operations:
  x.A: {parameters: {n: {type: integer}}}
  x.B: {parameters: {n: {type: integer}}}
  x.C: {parameters: {n: {type: integer}}}
interfaces:
  shared:
    x.A: {adapter: lib_shared.missing}
sites:
  us:
    interface:
      $ref: "#/interfaces/shared"
      x.B: lib_crash.b
      x.C: {adapter: lib_fine.other}
    providers:
      p:
        impl: lib_fine.NoProvider
        interface:
          x.C: lib_needs.c
  ca:
    secrets_vault: {path: lib_fine.NoVault}
    interface: {$ref: "#/interfaces/shared"}
  mx:
    interface: {x.C: lib_fine.c}
"""

MODULES = {
    "lib_shared": "print('hello')\n",
    "lib_crash": "import os\nos._exit(7)\n",
    "lib_needs": "import json\nimport nowhere_to_be_found\n",
    "lib_fine": "import threading\nthreading.Thread(target=threading.Event().wait).start()\ndef c(n): return n\n"
    "def other(m): return m\n",
}


@pytest.fixture
def federation(tmp_path):
    (tmp_path / "fed.dfm.yaml").write_text(FEDERATION)
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def place(text):
    """Give line and column of a text in the file."""
    before = FEDERATION[: FEDERATION.index(text)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def test_all_that_cannot_be_loaded_is_named_once_at_its_place(federation):
    done = dfmesh("validate", "fed.dfm.yaml", "--adapters", "--json", cwd=federation)
    assert done.returncode == 1, done.stderr
    event = json.loads(done.stdout)
    assert event["message"] == "fed.dfm.yaml: 6 adapters cannot be loaded"
    faults = {(fault["line"], fault["column"]): fault for fault in event["faults"]}
    assert set(faults) == {
        place(path)
        for path in (
            "lib_shared.missing",
            "lib_crash.b",
            "lib_fine.other",
            "lib_fine.NoProvider",
            "{path: lib_fine.NoVault}",
            "lib_needs.c",
        )
    }
    assert "has no 'missing'" in faults[place("lib_shared.missing")]["message"]
    assert faults[place("lib_shared.missing")]["path"] == "sites.us.interface.x.A"
    assert "ended its process with exit code 7" in faults[place("lib_crash.b")]["message"]
    assert "which other(m) does not take" in faults[place("lib_fine.other")]["message"]
    assert "nowhere_to_be_found" in faults[place("lib_needs.c")]["message"]


def test_without_the_flag_it_says_that_nothing_was_imported(federation):
    done = dfmesh("validate", "fed.dfm.yaml", cwd=federation)
    assert done.returncode == 0
    assert "adapters were not imported (--adapters does that)" in done.stdout
    assert json.loads(dfmesh("validate", "fed.dfm.yaml", "--json", cwd=federation).stdout)["adapters_loaded"] is False


def test_where_all_is_well_it_says_so(shop):
    done = dfmesh("validate", "shop.dfm.yaml", "--adapters", cwd=shop)
    assert done.returncode == 0, done.stderr
    assert "5 operations; all adapters can be loaded" in done.stdout


def test_what_never_ends_is_given_up(tmp_path):
    file = tmp_path / "fed.dfm.yaml"
    file.write_text(
        "dfm: 1.0.0\noperations: {x.A: {}, x.B: {}}\nsites: {us: {interface: {x.A: lib_slow.a, x.B: lib_none.b}}}\n"
    )
    (tmp_path / "lib_slow.py").write_text("import threading\nthreading.Event().wait()\n")
    slow, missing = loading_faults(FederationConfig.load(file), file, seconds=3)
    assert "loading it did not end within 3 s" in slow.message
    assert "no module 'lib_none'" in missing.message
