"""`capacity` of a site and `concurrency` of an adapter hold while jobs run, and no limit turns into a deadlock."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, ForEach, JobError, Pipeline, Session, Yield

FILE = Path(__file__).resolve().parents[1] / "federations" / "limits" / "limits.dfm.yaml"
LIMIT = 60.0
"""Seconds after which something that should happen at once has not happened."""


@pytest.fixture(scope="module", params=["local", "inproc"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with Federation.load(FILE).session(target=request.param, homesite="app") as opened:
        yield opened
    sys.modules.pop("limits_operations", None)


def calls(session: Session, operation: str, site: str, count: int = 12, **options: Any) -> Pipeline:
    with Pipeline() as pipeline, ForEach(range(count), window=count) as number:
        Yield(session.federation.ops.limit[operation](number=number, site=site, **options))
    return pipeline


def run(session: Session, pipeline: Pipeline) -> list[Any]:
    job = session.submit(pipeline)
    assert job.wait(LIMIT), "the calls wait for one another"
    return list(job.result()["yield"])


def until(condition: Any) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


@pytest.mark.parametrize("options", [{}, {"retries": 1}, {"timeout": LIMIT}], ids=str)
@pytest.mark.parametrize(
    ("operation", "site", "most"),
    [("Compute", "one", 1), ("Compute", "two", 2), ("Alone", "two", 1), ("Ask", "one", 2)],
)
def test_no_more_compute_than_may(
    session: Session, operation: str, site: str, most: int, options: dict[str, Any]
) -> None:
    assert max(run(session, calls(session, operation, site, **options))) == most


@pytest.mark.parametrize(("operation", "most"), [("Compute", 2), ("Alone", 1)])
def test_processes_of_their_own_count_as_well(session: Session, operation: str, most: int) -> None:
    times = run(session, calls(session, operation, "apart", 6))
    assert max(sum(one[0] <= began < one[1] for one in times) for began, _ in times) <= most


@pytest.mark.parametrize("site", ["one", "two", "apart"])
def test_streams_that_feed_each_other_need_one_place(session: Session, site: str) -> None:
    limit = session.federation.ops.limit
    with Pipeline() as pipeline, ForEach(range(3), window=3):
        Yield(limit.Total(items=limit.Make(count=20, site=site), site=site))
    assert run(session, pipeline) == [190] * 3


def test_jobs_take_turns_and_a_waiting_call_can_be_cancelled(session: Session, tmp_path: Path) -> None:
    limit = session.federation.ops.limit
    with Pipeline() as holding:
        Yield(limit.Hold(mark=str(tmp_path / "mark"), site="one"))
    held = session.submit(holding)
    until((tmp_path / "mark").exists)
    given_up, many, few = (session.submit(calls(session, "Compute", "one", count)) for count in (30, 30, 1))
    given_up.cancel()
    assert given_up.wait(LIMIT)
    assert held.status == "running"
    (tmp_path / "mark").unlink()
    assert few.wait(LIMIT)
    assert many.wait(LIMIT)
    assert held.result()["yield"] == [1]
    assert len(many.result()["yield"]) == 30


def test_a_cancelled_call_makes_room(session: Session, tmp_path: Path) -> None:
    with Pipeline() as holding:
        Yield(session.federation.ops.limit.Hold(mark=str(tmp_path / "mark"), site="one"))
    held = session.submit(holding)
    until((tmp_path / "mark").exists)
    held.cancel()
    assert run(session, calls(session, "Compute", "one", 2)) == [1, 1]


@pytest.mark.parametrize("use", ["yield", "loop", "argument"])
@pytest.mark.parametrize(("how", "before"), [("first", []), ("third", [1, 2]), ("async", [1, 2])])
@pytest.mark.parametrize("site", ["two"])
def test_a_timeout_is_the_time_until_the_next_item(
    session: Session, how: str, before: list[int], use: str, site: str
) -> None:
    limit = session.federation.ops.limit
    with Pipeline() as pipeline:
        late = limit.Late(how=how, timeout=0.3, site=site)
        if use == "yield":
            Yield(late)
        elif use == "argument":
            Yield(limit.Total(items=late, site=site))
        else:
            with ForEach(late) as item:
                Yield(item)
    job = session.submit(pipeline)
    assert job.wait(LIMIT), "nobody has stopped it"
    with pytest.raises(JobError, match=r"next item took longer than the timeout of 0.3 s"):
        job.result()
    assert [error.kind for error in job.errors] == ["CallTimeoutError"]
    assert job.partial_result().get("yield", []) == ([] if use == "argument" else before)
