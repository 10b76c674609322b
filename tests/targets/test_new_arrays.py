"""Adapters that make their arrays where other sites can see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from link_ends import needs_memory_files

import dfmesh
from dfmesh import Pipeline, Yield
from dfmesh.cli.bench import resources
from dfmesh.values import empty_array

FEDERATION = """
dfm: 1.0.0
info: {code-package: grids}
operations:
  grids.Make: {parameters: {megabytes: {type: integer}}, required: [megabytes]}
  grids.Refill: {parameters: {value: {type: number}}, required: [value]}
  grids.Sum: {parameters: {array: {}}, required: [array]}
  grids.Write: {parameters: {}}
  grids.Peak: {parameters: {}}
sites:
  app: {}
  a:
    interface: &all
      "#/operations/grids.Make": {adapter: making.make}
      "#/operations/grids.Refill": {adapter: making.refill}
      "#/operations/grids.Sum": {adapter: making.total}
      "#/operations/grids.Write": {adapter: making.write}
      "#/operations/grids.Peak": {adapter: making.peak}
  b:
    interface: *all
"""

ADAPTERS = """
import os
import numpy as np
from dfmesh.cli.bench import resources
from dfmesh.values import empty_array

made = None

def make(megabytes):
    global made
    made = None
    resources.reset_peak(os.getpid())
    array = empty_array((megabytes, 2**17), dtype="f8")
    array[:] = np.arange(megabytes)[:, None]
    made = array
    return array

kept = np.zeros(2**20)

def refill(value):
    kept.fill(value)
    return kept

def total(array):
    return float(array.sum()), array.flags.writeable

def write():
    try:
        made[0, 0] = 1
    except ValueError as error:
        return str(error)
    return "written"

def peak():
    return resources.peak_bytes(os.getpid())
"""


@pytest.fixture(params=["inproc", "local"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    (tmp_path / "making.py").write_text(ADAPTERS)
    (tmp_path / "grids.dfm.yaml").write_text(FEDERATION)
    with dfmesh.Federation.load(tmp_path / "grids.dfm.yaml").session(request.param, measure=False) as session:
        yield session


def sent(session: Any, megabytes: int) -> Any:
    ops = session.federation.ops.grids
    with Pipeline() as p:
        array = ops.Make(megabytes=megabytes, site="a")
        total = ops.Sum(array=array, site="b")
        Yield(total, place="total")
        Yield(ops.Write(site="a", after=total), place="write")
    return session.run(p)


def test_a_new_array_reaches_other_sites_and_is_read_only_once_it_was_sent(session: Any) -> None:
    found = sent(session, 8)
    assert found.one("total") == (float(2**17 * sum(range(8))), False)
    if session.target == "local":
        assert "read-only" in found.one("write")


def test_an_adapter_may_fill_and_return_the_same_array_again_and_again(session: Any) -> None:
    ops = session.federation.ops.grids
    with Pipeline() as p:
        arrays = []
        for value in range(8):
            arrays.append(ops.Refill(value=value, site="a", after=arrays[-1:]))
        for array in arrays:
            Yield(ops.Sum(array=array, site="b", after=arrays[-1]), place="total")
    assert sorted(session.run(p)["total"]) == [(float(value * 2**20), False) for value in range(8)]


@needs_memory_files
@pytest.mark.skipif(not resources.available(), reason="needs Linux's /proc")
@pytest.mark.parametrize("session", ["local"], indirect=True)
def test_new_arrays_cost_their_sender_no_more_than_themselves(session: Any) -> None:
    with Pipeline() as p:
        Yield(session.federation.ops.grids.Peak(site="a"))
    sent(session, 1)
    before = session.run(p).one()
    for megabytes in (100, 100, 150):
        sent(session, megabytes)
        rise = session.run(p).one() - before
        assert rise < (megabytes + 24) * 2**20


def test_elsewhere_a_new_array_is_an_ordinary_one() -> None:
    for shape in (3, (4, 5), [2, 0], ()):
        array = empty_array(shape, "i4")
        assert array.shape == np.empty(shape).shape
        assert array.dtype == np.int32
        assert array.flags.owndata
        assert array.flags.writeable
    assert empty_array(2, object).tolist() == [None, None]
    with pytest.raises(ValueError, match="negative"):
        empty_array((2, -1))
