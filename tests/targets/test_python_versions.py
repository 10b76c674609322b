"""Sites on different Pythons in one federation: contract, not code, crosses the wire."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import interpreters
import numpy as np
import pytest

from dfmesh import Federation, Pipeline, SessionError, Yield

OPERATIONS = Path(__file__).resolve().parents[1] / "federations" / "versions" / "python_versions.py"

FILE = """
dfm: 1.0.0
operations:
  py.Version: {{parameters: {{value: {{type: array}}}}}}
  py.Isolated: {{parameters: {{value: {{type: array}}}}}}
  py.Pid: {{description: Id of the process.}}
  py.Double: {{parameters: {{array: {{}}}}}}
  py.Count: {{parameters: {{count: {{type: integer}}}}}}
  py.Fail: {{description: Fails.}}
interfaces:
  all:
    py.Version: python_versions.version
    py.Isolated: {{adapter: python_versions.isolated_version, isolation: process}}
    py.Pid: python_versions.pid
    py.Double: python_versions.double
    py.Count: python_versions.count
    py.Fail: python_versions.fail
sites:
  app: {{interface: {{$ref: "#/interfaces/all"}}}}
  b: {{interface: {{$ref: "#/interfaces/all"}}, python: {b}}}
  c: {{interface: {{$ref: "#/interfaces/all"}}, python: {c}}}
"""


def federation(folder: Path, b: str, c: str) -> Federation:
    shutil.copy(OPERATIONS, folder)
    file = folder / "versions.dfm.yaml"
    file.write_text(FILE.format(b=b, c=c))
    return Federation.load(file)


@pytest.fixture(scope="module")
def pythons(pytestconfig: pytest.Config) -> list[str]:
    """Environments of two other Pythons, made once and kept in pytest's cache."""
    found = []
    for version in ("3.11", "3.12", "3.13"):
        if version == "{}.{}".format(*sys.version_info[:2]):
            continue
        python = interpreters.find(version)
        if python is None:
            pytest.skip(f"there is no Python {version} on this machine")
        own, reason = interpreters.environment(python, pytestconfig.cache.mkdir("interpreters") / version)
        if reason:
            pytest.skip(f"no environment for Python {version}: {reason}")
        found.append(own)
    return found


def test_three_pythons_in_one_federation(tmp_path: Path, pythons: list[str]) -> None:
    made = federation(tmp_path, *pythons)
    ops = made.ops.py
    array = np.arange(300_000)
    with Pipeline() as pipeline:
        value: Any = []
        for site in ("app", "b", "c"):
            value = ops.Version(value=value, site=site)
        Yield(value, place="versions")
        Yield(ops.Isolated(value=[], site="b"), place="isolated")
        Yield(ops.Pid(site="b"), place="pid")
        Yield(ops.Double(array=ops.Double(array=array, site="b"), site="c"), place="array")
        Yield(ops.Count(count=100, site="c"), place="count")
        Yield(ops.Fail(site="c"), place="never")
    with made.session(homesite="app") as session:
        job = session.submit(pipeline)
        job.wait(60)
        results = job.partial_result()
        failures = job.errors
    versions = results.one("versions")
    assert versions[0] == list(sys.version_info[:2])
    assert sorted({tuple(version) for version in versions}) == [(3, 11), (3, 12), (3, 13)]
    assert results.one("isolated") == [versions[1], results.one("pid")]
    assert np.array_equal(results.one("array"), 4 * array)
    assert results["count"] == list(range(100))
    (failure,) = failures
    assert failure.kind == "ValueError"
    assert failure.raised_at.startswith("python_versions.py:")


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    made = federation(tmp_path, "/no/such/python", sys.executable)
    with pytest.raises(
        SessionError, match=r"site 'b' .*there is no interpreter '/no/such/python'.*versions\.dfm\.yaml"
    ):
        made.session(homesite="app").connect()


def test_an_interpreter_beside_the_file_or_on_the_path(tmp_path: Path) -> None:
    """A relative path is relative to the file, wherever the client runs."""
    (tmp_path / "own").mkdir()
    os.symlink(sys.executable, tmp_path / "own" / "python")
    libraries = os.pathsep.join(entry for entry in sys.path if entry)
    made = federation(tmp_path, "own/python", Path(sys.executable).name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", libraries)
        patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        with Pipeline() as pipeline:
            Yield(made.ops.py.Version(value=made.ops.py.Version(value=[], site="b"), site="c"))
        with made.session(homesite="app") as session:
            assert session.run(pipeline).one() == [list(sys.version_info[:2])] * 2
