"""Why an iteration failed whose loop tolerates it: in the log, the progress and where its failure is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_job_log import FILE, LIMIT, command, ended, target, texts  # noqa: F401 - `target` is a fixture

from dfmesh import Federation, ForEach, Pipeline, Session, Yield, simulate
from dfmesh.config import FederationConfig

HERE = Path(__file__).name


@pytest.fixture(scope="module")
def session(target: str) -> Iterator[Session]:  # noqa: F811
    with Federation.load(FILE).session(target=target, measure=False, output="none") as opened:
        yield opened


def failing(federation: Federation, count: int, on_error: str) -> Pipeline:
    with Pipeline() as pipeline:
        with ForEach([str(number) for number in range(count)], window=1, on_error=on_error) as text:
            failed = federation.ops.loud.Fail(text=text)
        Yield(text.collect(failed))
    return pipeline


def without_place(text: str) -> str:
    return re.sub(r"[^\s(]*[/\\](\S+\.py):\d+", r"\1", text)


FIRST = f"{HERE}: failed in this iteration, which its loop tolerates: ValueError: 0 [loud_operations.py:"
OTHERS = f"{HERE}: and 4 more iterations of loud.Fail failed"


@pytest.mark.parametrize("on_error", ["skip", "collect"])
def test_the_first_one_is_told_and_the_others_are_counted(session: Session, on_error: str) -> None:
    job = ended(session, failing(session.federation, 5, on_error))
    assert job.status == "finished"
    assert not job.errors
    said = list(map(without_place, texts(job)))
    assert said[0] == "0"
    assert said[1].startswith(FIRST)
    assert said[2:] == ["1", "2", "3", "4", OTHERS]
    lines = [line for line in job.log if line.logger == "dfmesh"]
    assert [(line.site, line.operation, line.source, line.frame) for line in lines] == [
        ("us", "loud.Fail", "WARNING", (0, 0)),
        ("us", "loud.Fail", "WARNING", ()),
    ]


def test_it_is_bounded(session: Session) -> None:
    job = ended(session, failing(session.federation, 500, "skip"))
    told = [line.text for line in job.log if line.logger == "dfmesh"]
    assert len(told) == 2
    assert "and 499 more iterations of loud.Fail failed" in told[1]


def test_the_progress_names_it(session: Session) -> None:
    job = ended(session, failing(session.federation, 5, "skip"))
    (operation,) = job.progress().operations
    first = operation.first_failure
    assert first is not None
    assert (operation.failed, first.operation, first.frame, first.kind, first.message) == (
        5,
        "loud.Fail",
        (0, 0),
        "ValueError",
        "0",
    )
    assert "in fail" in first.traceback
    assert f"first failure: {first}" in str(job.progress())


def test_nothing_is_told_where_nothing_is_tolerated(session: Session) -> None:
    with Pipeline() as pipeline:
        with ForEach(["0", "1"], window=1) as text:
            failed = session.federation.ops.loud.Fail(text=text)
        Yield(text.collect(failed))
    job = ended(session, pipeline)
    assert texts(job) == ["0", "1"]
    assert len(job.errors) == 2


@pytest.mark.parametrize("target", ["up"], indirect=True)
def test_the_host_keeps_and_shows_it(session: Session) -> None:
    job = ended(session, failing(session.federation, 5, "skip"))
    met = session.attach(job.id)
    assert met.wait(LIMIT)
    assert list(met.log) == list(job.log)
    assert "more iterations of loud.Fail failed" in command(FILE.parent, "logs", "us", "--job", job.id)
    assert "failed in this iteration" in command(FILE.parent, "logs", "us")


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("operation", ["Join", "JoinApart"])
def test_what_cannot_take_a_failed_iteration_says_why_that_failed(
    session: Session, operation: str, retries: int
) -> None:
    ops = session.federation.ops.loud
    with Pipeline() as pipeline:
        with ForEach([["a"], [1], ["b"]], on_error="collect") as part:
            joined = ops.Join(texts=part)
        Yield(getattr(ops, operation)(texts=part.collect(joined), retries=retries))
    (failure,) = ended(session, pipeline).errors
    assert failure.kind == "TypeError"
    said = without_place(failure.message)
    assert said.startswith(
        f"texts[1] is the failure of iteration 1 of loud.Join ({HERE}): TypeError: sequence item 0: "
    )
    assert said.endswith("(sequence item 1: expected str instance, IterationError found)")
    assert failure.raised_at.startswith("loud_operations.py:")


def test_an_argument_of_another_type_and_an_expression_say_so_as_well(session: Session) -> None:
    ops = session.federation.ops.loud
    with Pipeline() as pipeline:
        with ForEach([["a"], [1]], on_error="collect") as part:
            joined = ops.Join(texts=part)
        with ForEach(part.collect(joined)) as text:
            Yield(ops.Raw(text=text))
            Yield(text["key"])
    by_argument, by_selector = (
        without_place(failure.message) for failure in ended(session, pipeline).errors if failure.frame == (0, 1)
    )
    which = f"is the failure of iteration 1 of loud.Join ({HERE}): TypeError: sequence item 0"
    assert by_argument.startswith(f"text {which}")
    assert by_selector.startswith(f"the value {which}")


def test_the_simulator_tells_it_in_every_order() -> None:
    federation = Federation.load(FILE)
    pipeline = failing(federation, 5, "skip")
    for seed in range(10):
        done = simulate(pipeline, FederationConfig.load(FILE), "app", seed=seed)
        first, others = (without_place(line.text) for line in done.log)
        assert first.startswith(FIRST)
        assert others == OTHERS
        (report,) = (entry for site in done.reports for entry in site.operations)
        assert report.first_failure is not None
        assert report.first_failure.frame == (0, 0)
