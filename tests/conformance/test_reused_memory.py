"""What an adapter gives is what it was then, whatever the adapter does with it later, and wherever it goes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dfmesh import Federation, ForEach, Pipeline, PlaceParam, Yield
from dfmesh.session import simulate

FILE = Path(__file__).resolve().parents[1] / "federations" / "stepping" / "stepping.dfm.yaml"
SIZES = (0, 100, 20_000)
"""Numbers in an array: a list, an array that travels in its message, one beside it."""

Run = Callable[[Pipeline], dict[str, list[Any]]]


@pytest.fixture(scope="module")
def federation() -> Iterator[Federation]:
    yield Federation.load(FILE)
    sys.modules.pop("stepping_operations", None)


@pytest.fixture(scope="module", params=["simulator", "inproc", "local"])
def run(request: pytest.FixtureRequest, federation: Federation) -> Iterator[Run]:
    if request.param == "simulator":
        yield lambda pipeline: simulate(pipeline, federation.config, "app", [{}]).results
    else:
        with federation.session(target=request.param) as session:
            yield session.run


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_parameters_that_an_iterator_steps(federation: Federation, target: str) -> None:
    def sets(size: int) -> Iterator[dict[str, Any]]:
        state = np.zeros(size)
        for _ in range(4):
            yield {"rows": [state]}
            state += 1

    with Pipeline() as pipeline:
        Yield(federation.ops.steps.Firsts(rows=PlaceParam("rows"), site="lab"), place="sites")
    with federation.session(target=target) as session:
        for size in SIZES[1:]:
            assert session.run(pipeline, sets(size))["sites"] == [[0], [1], [2], [3]]


def _sizes(site: str) -> tuple[int, ...]:
    """Each of them takes processes of its own where adapters have some."""
    return SIZES if site == "lab" else SIZES[-1:]


@pytest.mark.parametrize(("name", "site"), [("Step", "lab"), ("AsyncStep", "lab"), ("Step", "apart")])
def test_a_state_that_is_stepped(run: Run, federation: Federation, name: str, site: str) -> None:
    steps = federation.ops.steps
    for size in _sizes(site):  # One after the other, so that a process of its own sees all steps of one.
        with Pipeline() as pipeline:
            with ForEach(range(4), window=1) as x:
                state = getattr(steps, name)(x=x, size=size, site=site)
                Yield(state, place="client")
            for taker in ("lab", "other"):
                Yield(steps.Firsts(rows=x.collect(state), site=taker), place="sites")
        found = run(pipeline)
        assert list(found["sites"]) == [[0, 1, 2, 3]] * 2
        assert [row[0] for row in found["client"]] == [0, 1, 2, 3]


@pytest.mark.parametrize(("name", "site"), [("Rows", "lab"), ("AsyncRows", "lab"), ("Rows", "apart")])
def test_a_buffer_that_is_used_again(run: Run, federation: Federation, name: str, site: str) -> None:
    steps = federation.ops.steps
    with Pipeline() as pipeline:
        for size in _sizes(site):
            for taker in ("lab", "other"):
                Yield(steps.LiveFirsts(rows=getattr(steps, name)(size=size, site=site), site=taker), place="live")
            rows = getattr(steps, name)(size=size, site=site)
            with ForEach(rows) as row:
                Yield(row, place=f"client {size}")
    found = run(pipeline)
    assert list(found["live"]) == [[0, 1, 2, 3]] * 2 * len(_sizes(site))
    for size in _sizes(site):
        assert [row[0] for row in found[f"client {size}"]] == [0, 1, 2, 3]
