"""Large arrays that are there at the same time: together or alone, each arrives whole at everybody who gets it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dfmesh
from dfmesh import ForEach, Pipeline, Yield

FEDERATION = """
dfm: 1.0.0
info: {code-package: grids}
operations:
  grids.Make: {parameters: {index: {type: integer}, fresh: {}}, required: [index, fresh]}
  grids.Nested: {parameters: {index: {type: integer}}, required: [index]}
  grids.Look: {parameters: {value: {}}, required: [value]}
sites:
  app: {}
  a:
    interface: &all
      "#/operations/grids.Make": {adapter: together.make}
      "#/operations/grids.Nested": {adapter: together.nested}
      "#/operations/grids.Look": {adapter: together.look}
  b:
    interface: *all
  c:
    interface: *all
"""

ADAPTERS = """
import threading
from functools import cache
import numpy as np

SIZES = (10_000, 40_000, 131_072, 300_000, 450_000, 600_000)

def fill(index):
    return np.full(SIZES[index % len(SIZES)], float(index))

@cache
def made(index):
    array = fill(index)
    array.flags.writeable = False
    return array

mine = threading.local()

def make(index, fresh):
    if fresh == "changed":
        if not hasattr(mine, "state"):
            mine.state = np.zeros(131_072)
        mine.state.fill(index)
        return mine.state
    return fill(index) if fresh else made(index)

def nested(index):
    return {"parts": [fill(index), (fill(index + 1), "text")], "index": index}

def look(value):
    arrays = [value] if isinstance(value, np.ndarray) else [value["parts"][0], value["parts"][1][0] - 1]
    assert all(array.min() == array.max() for array in arrays)
    assert not any(array.flags.writeable for array in arrays[:1])
    return [float(array[0]) for array in arrays], sum(array.size for array in arrays)
"""

SIZES = (10_000, 40_000, 131_072, 300_000, 450_000, 600_000)
COUNT = 40


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("together")
    (folder / "together.py").write_text(ADAPTERS)
    (folder / "grids.dfm.yaml").write_text(FEDERATION)
    with dfmesh.Federation.load(folder / "grids.dfm.yaml").session(target="local", homesite="app") as session:
        yield session


def size_of(index: int, fresh: Any) -> int:
    return 131_072 if fresh == "changed" else SIZES[index % len(SIZES)]


@pytest.mark.parametrize("fresh", [True, False, "changed"])
@pytest.mark.parametrize("window", [4, COUNT])
def test_a_loop_over_arrays_for_two_sites_and_the_client(session: Any, fresh: Any, window: int) -> None:
    ops = session.federation.ops.grids
    with Pipeline() as p, ForEach(list(range(COUNT)), window=window) as index:
        array = ops.Make(index=index, fresh=fresh, site="a")
        Yield(ops.Look(value=array, site="b"), place="b")
        Yield(ops.Look(value=array, site="c"), place="c")
        Yield(array, place="array")
    results = session.run(p)
    expected = [([float(index)], size_of(index, fresh)) for index in range(COUNT)]
    assert list(results["b"]) == list(results["c"]) == expected
    for index, array in enumerate(results["array"]):
        assert isinstance(array, np.ndarray)
        assert array.size == size_of(index, fresh)
        assert (array == index).all()


def test_arrays_within_values(session: Any) -> None:
    ops = session.federation.ops.grids
    with Pipeline() as p, ForEach(list(range(COUNT)), window=8) as index:
        Yield(ops.Look(value=ops.Nested(index=index, site="a"), site="b"))
    sizes = [size_of(index, None) + size_of(index + 1, None) for index in range(COUNT)]
    assert list(session.run(p)["yield"]) == [([index, index], sizes[index]) for index in range(COUNT)]
