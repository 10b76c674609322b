"""A site and a client that have had a thousand jobs of many kinds hold no more than after the first hundred."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, ForEach, Pipeline, PlaceParam, Session, TryFromCache, Yield

FILE = Path(__file__).resolve().parents[1] / "federations" / "counted" / "counted.dfm.yaml"
sys.path.insert(0, str(FILE.parent))

from counted_operations import objects  # noqa: E402

JOBS = 1000


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Federation.load(FILE).session(target="local", homesite="steady", output="none") as opened:
        yield opened


def pipelines(ops: Any) -> list[tuple[Pipeline, dict[str, Any]]]:
    """Errors, loops, arrays, streams and a cache, and at last a site that dies: pipelines with their parameters."""
    with Pipeline() as failing:
        with ForEach(PlaceParam("xs"), on_error="collect") as x:
            value = ops.Fail(x=ops.Same(x=x, site="dying"), site="steady")
        Yield(x.collect(value))
        Yield(ops.Fail(x=1, site="steady"))
    with Pipeline() as arrays:
        Yield(ops.Same(x=ops.Zeros(n=PlaceParam("n"), site="dying"), site="steady"))
    with Pipeline() as streams:
        with ForEach(ops.Items(n=3, site="dying"), window=2) as item:
            Yield(ops.Same(x=item, site="steady"))
        with TryFromCache(key=PlaceParam("key"), site="steady") as cached:
            cached.cache(ops.Same(x=3, site="dying"))
        Yield(item.collect(cached))
    with Pipeline() as dying:
        Yield(ops.Same(x=ops.Leave(site="dying"), site="steady"))
    given: list[tuple[Pipeline, dict[str, Any]]] = [
        (failing, {"xs": [1, 2, 3]}),
        (arrays, {"n": 10}),
        (streams, {"key": 1}),
        (arrays, {"n": 100_000}),
    ]
    return [*given * 8, (streams, {"key": "other"}), (failing, {"xs": list(range(50))}), (dying, {})]


def test_a_thousand_jobs_leave_nothing(session: Session) -> None:
    ops = session.federation.ops.count
    with Pipeline() as counting:
        Yield(ops.Objects(site="steady"))
    *kinds, last = pipelines(ops)

    def run(number: int) -> None:
        for count in range(number):
            pipeline, parameters = last if count == number // 2 else kinds[count % len(kinds)]
            job = session.submit(pipeline, **parameters)
            if count % 50 == 49:
                job.cancel("enough")
            assert job.wait(timeout=60)

    run(JOBS // 10)
    before = {"site": session.run(counting).one(), "client": objects()}
    run(JOBS)
    after = {"site": session.run(counting).one(), "client": objects()}
    for who, counts in after.items():
        blocks = counts.pop("blocks") - before[who].pop("blocks")
        grown = {kind: (before[who].get(kind, 0), now) for kind, now in counts.items()}
        assert {kind: of for kind, of in grown.items() if of[1] > of[0] + 20} == {}, who
        assert blocks < 2 * JOBS, who
