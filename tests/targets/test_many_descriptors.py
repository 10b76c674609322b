"""Clients and hosts that have more files open than `select` takes."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from dfmesh import Federation, Pipeline, Yield
from dfmesh.processes.readiness import is_readable

FILE = Path(__file__).resolve().parents[1] / "federations" / "calc" / "calc.dfm.yaml"


@pytest.fixture
def many_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] != resource.RLIM_INFINITY and limits[1] < 2048:
        pytest.skip("this system does not allow as many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2048), limits[1]))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_files")
def test_sites_start_and_stop() -> None:
    federation = Federation.load(FILE)
    with Pipeline() as pipeline:
        Yield(federation.ops.calc.Add(a=1, b=2))
    with federation.session(target="local") as session:
        assert session.run(pipeline)["yield"] == [3]


@pytest.mark.usefixtures("many_files")
def test_the_end_of_a_pipe_is_seen() -> None:
    reading, writing = os.pipe()
    assert reading > 1023
    assert not is_readable(reading)
    os.close(writing)
    assert is_readable(reading)
    os.close(reading)
