"""What a user's callback, iterator or adapter does to itself must not reach anybody else: every job still ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import (
    Federation,
    ForEach,
    If,
    JobError,
    PickledObject,
    Pipeline,
    PlaceParam,
    Session,
    SessionError,
    StopToken,
    ValueEncodingError,
    Yield,
)

FILE = Path(__file__).with_name("session.dfm.yaml")
LIMIT = 20.0


@pytest.fixture(scope="module")
def federation() -> Federation:
    return Federation.load(FILE)


@pytest.fixture(scope="module", params=["inproc", "local"])
def session(request: pytest.FixtureRequest, federation: Federation) -> Iterator[Session]:
    with federation.session(target=request.param) as opened:
        yield opened


@pytest.fixture
def ops(federation: Federation) -> Any:
    return federation.ops


def works(session: Session, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.odd.Add(a=1, b=2, site="north"))
    assert session.submit(p).result(LIMIT)["yield"] == [3]


@pytest.mark.parametrize("how", ["no text", "no name", "surrogate", "huge", "file"])
def test_an_exception_of_any_kind_is_an_error_of_its_operation_alone(session: Session, ops: Any, how: str) -> None:
    with Pipeline() as p:
        Yield(ops.odd.Misbehave(how=how, site="north"), place="bad")
        Yield(ops.odd.Add(a=1, b=1, site="north"), place="good")
    job = session.submit(p)
    with pytest.raises(JobError) as caught:
        job.result(LIMIT)
    assert [error.operation for error in caught.value.errors] == ["odd.Misbehave"]
    assert len(str(caught.value)) < 30_000
    assert job.partial_result()["good"] == [2]
    works(session, ops)


def test_a_trace_function_of_an_adapter_does_not_stay(session: Session, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.odd.Misbehave(how="tracing", site="north"))
    assert session.submit(p).result(LIMIT)["yield"] == ["tracing"]
    works(session, ops)


def test_a_coroutine_that_ignores_its_cancellation_is_timed_out_all_the_same(session: Session, ops: Any) -> None:
    with Pipeline() as p:
        Yield(ops.odd.Deaf(seconds=30, timeout=0.2, site="north"))
    with pytest.raises(JobError, match="longer than its timeout"):
        session.submit(p).result(25)
    works(session, ops)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, ValueError])
def test_a_callback_that_raises_loses_nothing(session: Session, ops: Any, error: type[BaseException]) -> None:
    with Pipeline() as p, ForEach(ops.odd.Numbers(n=200, site="north")) as number:
        Yield(number)
    seen = []

    def callback(item: Any) -> None:
        seen.append(item.value)
        raise error

    job = session.submit(p, on_result=callback)
    assert job.result(LIMIT)["yield"] == list(range(200))
    assert sorted(seen) == list(range(200))
    works(session, ops)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_callback_of_execute_that_raises_loses_nothing(
    session: Session, ops: Any, error: type[BaseException]
) -> None:
    with Pipeline() as p, ForEach([1, 2, 3]) as number:
        Yield(number)
    came = []

    def callback(site: str, node: str, frame: tuple[int, ...], place: str, data: Any) -> None:
        came.append(data)
        raise error

    job = session.execute(p, default_callback=callback)
    assert job.wait_until_finished(LIMIT)
    assert sorted(came[:-1]) == [1, 2, 3]
    assert came[-1] == StopToken()
    works(session, ops)


def test_a_callback_may_not_wait(session: Session, ops: Any) -> None:
    refused = []

    def callback(_: Any) -> None:
        for wait in (session.close, lambda: list(job), lambda: job.result(), lambda: job.progress()):
            try:
                wait()
            except SessionError as error:
                refused.append(error)

    with Pipeline() as p:
        Yield(ops.odd.Add(a=1, b=2, site="north"))
    job = session.submit(p)
    job.wait(LIMIT)
    done = session.submit(p, on_result=callback)
    assert done.result(LIMIT)["yield"] == [3]
    assert len(refused) >= 2
    works(session, ops)


def test_a_late_callback_gets_what_has_come(session: Session, ops: Any) -> None:
    with Pipeline() as p, ForEach([1, 2, 3]) as number:
        Yield(ops.odd.Add(a=number, b=1, site="north"))
    job = session.submit(p)
    job.result(LIMIT)
    seen: list[Any] = []
    job.on_result(lambda item: seen.append(item.value))
    works(session, ops)  # Its messages are taken in after the call-back was.
    assert sorted(seen) == [2, 3, 4]


@pytest.mark.parametrize("error", [ValueError, SessionError])
def test_parameter_sets_that_raise_end_the_job_with_their_error(session: Session, ops: Any, error: Any) -> None:
    with Pipeline() as p:
        Yield(ops.odd.Add(a=PlaceParam("x"), b=1, site="north"))

    def sets() -> Iterator[dict[str, Any]]:
        yield {"x": 1}
        raise error("no more")

    job = session.submit(p, sets())
    with pytest.raises(error, match="no more"):
        job.result(LIMIT)
    (failure,) = job.errors
    assert (failure.cause, failure.frame) == (f"{error.__name__}: no more", (1,))
    assert failure.location.startswith(f"{__file__}:")
    works(session, ops)


@pytest.mark.parametrize("site", ["app", "north"])
def test_an_adapter_that_changes_its_argument_changes_nobody_elses(session: Session, ops: Any, site: str) -> None:
    with Pipeline() as p:
        made = ops.odd.Numbers(n=2, site="north")
        spoiled = ops.odd.Spoil(values=made, site=site)
        Yield(spoiled, place="spoiled")
        Yield(ops.odd.Same(values=made, site="north", after=spoiled), place="later")
        Yield(made, place="made")
        given = ops.odd.Spoil(values=PlaceParam("given"), site=site)
        Yield(ops.odd.Same(values=PlaceParam("given"), site=site, after=given), place="given")
    mine = ["mine"]
    job = session.submit(p, {"given": mine})
    mine.append("late")
    results = dict(job.result(LIMIT))
    assert results == {"spoiled": [3], "later": [[0, 1]], "made": [[0, 1]], "given": [["mine"]]}
    assert mine == ["mine", "late"]


def test_a_pickled_object_arrives_where_the_owner_allows_it_and_nowhere_else(session: Session, ops: Any) -> None:
    odd = PickledObject(iter([1, 2]))
    with Pipeline() as p:
        Yield(ops.odd.Kind(thing=odd, site="north"), place="allowed")
        Yield(ops.odd.Kind(thing=PlaceParam("thing"), site="north"), place="allowed as parameter")
        Yield(ops.odd.Kind(thing=odd), place="where it is taken")
        Yield(ops.odd.Kind(thing=PlaceParam("thing"), site="app"), place="refused")
    job = session.submit(p, {"thing": PickledObject(Ellipsis)})
    with pytest.raises(JobError, match="takes no pickled objects") as caught:
        job.result(LIMIT)
    assert [error.site for error in caught.value.errors] == ["app"]
    results = job.partial_result()
    assert results["allowed"] == results["where it is taken"] == ["list_iterator"]
    assert results["allowed as parameter"] == ["ellipsis"]
    assert results["refused"] == []


def test_what_cannot_be_pickled_is_refused_at_once() -> None:
    with pytest.raises(ValueEncodingError, match="cannot be pickled"):
        PickledObject(lambda: None)


@pytest.mark.parametrize("site", ["app", "north"])
@pytest.mark.parametrize("kind", ["Endless", "EndlessAsync"])
def test_an_endless_stream_ends_when_nobody_wants_more(session: Session, ops: Any, kind: str, site: str) -> None:
    with Pipeline() as p:
        numbers = getattr(ops.odd, kind)(site="north")
        few = ops.odd.First(items=numbers, n=3, site=site)
        more = ops.odd.First(items=numbers, n=200, site="app")
        Yield(few, place="few")
        Yield(more, place="more")
    results = session.submit(p).result(LIMIT)
    assert results["few"] == [[0, 1, 2]]
    assert results["more"] == [list(range(200))]


@pytest.mark.parametrize("kind", ["Endless", "EndlessAsync"])
def test_an_endless_stream_whose_takers_are_all_skipped_ends(session: Session, ops: Any, kind: str) -> None:
    with Pipeline() as p:
        numbers = getattr(ops.odd, kind)(site="north")
        with If(PlaceParam("on") > 0):
            Yield(ops.odd.First(items=numbers, n=3, site="north"), place="few")
        Yield("done", place="end")
    results = session.submit(p, {"on": 0}).result(LIMIT)
    assert dict(results) == {"few": [], "end": ["done"]}


def test_more_readers_of_streams_than_threads_do_not_wait_for_one_another(session: Session, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(list(range(100)), window=100) as number:
            Yield(ops.odd.Total(items=ops.odd.Counted(n=number, site="north"), site="north"), place="loop")
        one = ops.odd.Counted(n=10, site="north")
        Yield([ops.odd.Total(items=one, site="north") for _ in range(80)], place="one stream")
    results = session.submit(p).result(LIMIT)
    assert results["loop"] == [sum(range(n)) for n in range(100)]
    assert results["one stream"] == [[45] * 80]


def test_calls_that_nobody_waits_for_do_not_hold_up_the_next_job(session: Session, ops: Any) -> None:
    with Pipeline() as p:
        with ForEach(list(range(80)), window=80):
            ops.odd.Block(seconds=20, site="north")
        Yield(1)
    cancelled = session.submit(p)
    with Pipeline() as q:
        with ForEach(list(range(80)), window=80, on_error="skip") as number:
            Yield(ops.odd.Block(seconds=20, site="north", timeout=0.1), place="late")
        Yield(number.collect(number), place="all")
    assert session.submit(q).result(LIMIT)["late"] == []
    cancelled.cancel()
    works(session, ops)
