"""A client that does not keep up holds up what makes its results; nothing piles up at the sites."""

from __future__ import annotations

import textwrap
import threading
import time
from pathlib import Path

import pytest

from dfmesh import Federation, ForEach, Pipeline, Yield

ITEMS = 60_000
SIZE = 2_000
MOST_AHEAD = 40_000_000 // SIZE

FEDERATION = """
dfm: 1.0.0
operations:
  slow.Numbers: {parameters: {count: {type: integer}, path: {type: string}}}
  slow.Blob: {parameters: {n: {type: integer}, path: {type: string}}}
sites:
  home: {interface: {}}
  away: {interface: {slow.Numbers: making.numbers, slow.Blob: making.blob}}
"""

MAKING = f"""
def _note(path, n):
    if n % 100 == 0:
        with open(path, "w") as file:
            file.write(str(n))

def numbers(count, path):
    for n in range(count):
        _note(path, n)
        yield bytes({SIZE})

def blob(n, path):
    _note(path, n)
    return bytes({SIZE})
"""


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    path = tmp_path / "slow.dfm.yaml"
    path.write_text(textwrap.dedent(FEDERATION))
    (tmp_path / "making.py").write_text(MAKING)
    return Federation.load(path)


def made_when_it_stands_still(path: Path) -> int:
    """Wait until no more is made, and say how much was."""
    before, since, deadline = -1, time.monotonic(), time.monotonic() + 60
    while time.monotonic() < deadline:
        text = path.read_text() if path.exists() else ""
        now = int(text or 0)
        if now != before:
            before, since = now, time.monotonic()
        elif now and time.monotonic() - since > 1:
            return now
        time.sleep(0.05)
    raise AssertionError(f"it goes on making: {before}")


@pytest.mark.parametrize("how", ["stream", "loop"])
def test_a_client_that_takes_nothing_stops_who_makes_results_for_it(
    federation: Federation, tmp_path: Path, how: str
) -> None:
    ops, path = federation.ops.slow, tmp_path / "made"
    with Pipeline() as p:
        if how == "stream":
            Yield(ops.Numbers(count=ITEMS, path=str(path)))
        else:
            with ForEach(range(ITEMS), window=50) as n:
                Yield(ops.Blob(n=n, path=str(path)))
    go_on = threading.Event()
    with federation.session(homesite="home") as session:
        job = session.submit(p, on_result=lambda item: go_on.wait(120))
        try:
            assert made_when_it_stands_still(path) < MOST_AHEAD
        finally:
            go_on.set()
        assert sum(len(item.value) for item in job.results()) == ITEMS * SIZE
