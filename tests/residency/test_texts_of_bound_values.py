"""What is said of a value that a rule of residency binds, errors and printed lines, stays where the value may be."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Choose, Federation, ForEach, If, IterationError, Job, Pipeline, Session, TryFromCache, Yield

FILE = Path(__file__).resolve().parents[1] / "federations" / "hospital" / "hospital.dfm.yaml"
STAYS = "its text stays at site 'h1', by a rule of residency ("
SEES = "); see the log of that site"
LIMIT = 30.0

pytestmark = pytest.mark.filterwarnings("ignore:warned of")


@pytest.fixture(scope="module", params=["inproc", "local"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    federation = Federation.load(FILE)
    with federation.session(target=request.param, homesite="app", output="none") as opened:
        yield opened
    sys.modules.pop("hospital_operations", None)


def run(session: Session, body: Callable[[Any], None]) -> Job:
    with Pipeline() as pipeline:
        body(session.federation.ops.h)
    job = session.submit(pipeline)
    job.wait(LIMIT)
    return job


def all_that_the_client_gets(job: Job) -> str:
    results = {place: job.partial_result()[place] for place in job.partial_result()}
    errors = [(error, vars(error)) for error in job.errors]
    return repr((results, errors, list(job.log), job.progress().sites)) + str(job.log) + str(job.progress())


def of_an_element(h: Any) -> None:
    with ForEach(h.Patients(), on_error="collect") as patient:
        added = h.Add(a=patient, b=1)
    Yield(patient.collect(added))


def of_a_part(h: Any) -> None:
    Yield(h.Add(a=h.Patients()[0]["name"], b=1))


def within_a_list(h: Any) -> None:
    Yield(h.Float(x=[1, {"all": h.Patients()}]))


def enumerated(h: Any) -> None:
    Yield(h.Kind(kind=h.Patients()[0]["name"]))


def raised(h: Any) -> None:
    Yield(h.Float(x=h.Patients()[0]["name"], retries=1))


def raised_from(h: Any) -> None:
    Yield(h.Wrapped(x=h.Patients()[0]["name"]))


def raised_in_a_process(h: Any) -> None:
    Yield(h.Apart(x=h.Patients()[0]["name"]))


def raised_in_a_task(h: Any) -> None:
    Yield(h.SayLater(x=h.Patients()[0]["name"]))


def raised_by_the_maker(h: Any) -> None:
    Yield(h.Count(x=h.Broken()))


def selected(h: Any) -> None:
    Yield(h.Count(x=h.Patients()[0]["nope"]))


def selected_and_gathered(h: Any) -> None:
    with ForEach(h.Patients(), on_error="collect") as patient:
        count = h.Count(x=patient["nope"])
    Yield(patient.collect(count))


def message_of_an_error(h: Any) -> None:
    with ForEach(h.Patients(), on_error="collect") as patient:
        made = h.Float(x=patient["name"])
    Yield(patient.collect(made)[0].field("message"))


def compared(h: Any) -> None:
    with If(h.Patients()[0] < 3):
        Yield(1)


def chosen(h: Any) -> None:
    Yield(h.Count(x=Choose(h.Patients() < 3, 1, 2)))


def looped(h: Any) -> None:
    with ForEach(h.Patients()[0]["age"]):
        Yield(1)


def streamed(h: Any) -> None:
    with ForEach(h.Stream()) as patient:
        Yield(h.Count(x=patient))


def taken_live(h: Any) -> None:
    Yield(h.Live(xs=h.Stream()))


def reduced(h: Any) -> None:
    with ForEach(h.Patients()) as patient:
        pass
    Yield(patient.reduce(h.Add, patient["name"]))


def reduced_alone(h: Any) -> None:
    with ForEach([1]) as _one:
        patients = h.Patients()
    Yield(h.Add(a=_one.reduce(h.Add, patients[0]["name"]), b=1))


def key(h: Any) -> None:
    with TryFromCache(key=h.Patients()[0]["name"].field("nope"), site="h1") as cached:
        cached.cache(1)
    Yield(h.Count(x=cached))


def at_another_site(h: Any) -> None:
    Yield(h.Float(x=h.Float(x=h.Patients()[0]["name"], site="h1"), site="app"))


FAIL = [
    of_an_element,
    of_a_part,
    within_a_list,
    enumerated,
    raised,
    raised_from,
    raised_in_a_process,
    raised_in_a_task,
    raised_by_the_maker,
    selected,
    selected_and_gathered,
    message_of_an_error,
    compared,
    chosen,
    looped,
    streamed,
    taken_live,
    reduced,
    reduced_alone,
    key,
    at_another_site,
]


@pytest.mark.parametrize("body", FAIL, ids=lambda body: body.__name__)
def test_an_error_shows_nothing_of_the_value(session: Session, body: Callable[[Any], None]) -> None:
    got = all_that_the_client_gets(run(session, body))
    assert "SECRET" not in got
    assert STAYS in got
    assert SEES in got


def test_what_an_error_still_says(session: Session) -> None:
    job = run(session, raised)
    (error,) = job.errors
    assert (error.kind, error.operation, error.site, error.frame) == ("ValueError", "h.Float", "h1", (0,))
    assert error.location.startswith(f"{Path(__file__)}:")
    assert error.raised_at.startswith("hospital_operations.py:")
    assert error.caused_by == "it was called 2 times"
    assert error.message.startswith(STAYS)
    assert "hospital.dfm.yaml:" in error.message
    assert error.traceback == ""


@pytest.mark.parametrize("operation", ["Say", "SayLater", "Apart"])
def test_what_is_printed_stays_and_that_is_said_once(session: Session, operation: str) -> None:
    def body(h: Any) -> None:
        with ForEach(h.Patients(), on_error="skip") as patient:
            said = getattr(h, operation)(x=patient["name"])
        Yield(h.Count(x=patient.collect(said)))

    job = run(session, body)
    assert "SECRET" not in all_that_the_client_gets(job)
    (line,) = (line for line in job.log if line.source != "WARNING")
    assert (line.operation, line.source) == (f"h.{operation}", "INFO")
    assert line.text.startswith("what it prints and logs stays at site 'h1', by a rule of residency (")


def test_what_a_loop_tolerates_shows_nothing_of_the_value(session: Session) -> None:
    def body(h: Any) -> None:
        with ForEach(h.Patients(), on_error="skip") as patient:
            Yield(h.Float(x=patient["name"]))

    job = run(session, body)
    assert "SECRET" not in all_that_the_client_gets(job)
    first, *_others = job.log
    assert (first.site, first.operation, first.frame[0]) == ("h1", "h.Float", 0)
    assert f"failed in this iteration, which its loop tolerates: ValueError: {STAYS}" in first.text
    (said,) = (entry.first_failure for entry in job.progress().operations if entry.first_failure)
    assert said.message.startswith(STAYS)


def test_what_has_nothing_to_do_with_the_rule_says_all(session: Session) -> None:
    def body(h: Any) -> None:
        patients = h.Patients()
        Yield(h.Float(x="many", after=patients), place="failed")
        Yield(h.Say(x="hello", site="h1"), place="said")

    job = run(session, body)
    (error,) = job.errors
    assert error.message == "could not convert string to float: 'many'"
    assert "could not convert" in error.traceback
    assert "printed hello" in str(job.log)
    assert "logged hello" in str(job.log)


def test_clients_that_may_have_the_value_get_the_text(session: Session) -> None:
    def body(h: Any) -> None:
        Yield(h.Float(x=h.Known()[0]["name"], site="h1"))
        Yield(h.Say(x=h.Known()[0]["name"]), place="said")

    job = run(session, body)
    (error,) = job.errors
    assert error.message == "could not convert string to float: 'SECRET-Ann'"
    assert "printed SECRET-Ann" in str(job.log)


def test_errors_that_loops_collect_keep_the_text_at_the_site_for_all(session: Session) -> None:
    """The list goes on as a value, to sites that the rule does not name."""

    def body(h: Any) -> None:
        with ForEach(h.Known(), on_error="collect") as patient:
            made = h.Float(x=patient["name"], site="h1")
        Yield(patient.collect(made))

    (items,) = run(session, body).result(LIMIT)["yield"]
    assert [item.message[: len(STAYS)] for item in items if isinstance(item, IterationError)] == [STAYS] * 2


def test_a_site_that_gets_the_value_keeps_the_text_as_well(session: Session) -> None:
    job = run(session, lambda h: Yield(h.Float(x=h.Partners()[0]["name"], site="h2")))
    (error,) = job.errors
    assert (
        error.message == "its text stays at site 'h2', by a rule of residency of another site; see the log of that site"
    )


def test_what_shows_no_value_is_said(session: Session) -> None:
    job = run(session, lambda h: Yield(h.Wait(x=h.Patients(), timeout=0.05)))
    (error,) = job.errors
    assert "longer than its timeout of 0.05 s" in error.message


def test_the_site_has_the_text_in_its_own_log() -> None:
    lines: list[str] = []
    federation = Federation.load(FILE)
    with federation.session(target="local", homesite="app", output=lambda _, line: lines.append(line)) as session:
        run(session, raised)
    said = "\n".join(lines)
    assert "site h1: h.Float (%1, " in said
    assert "failed, which is kept here by a rule of residency: ValueError: could not convert" in said
    assert "in to_float" in said, "its traceback as well"


def test_a_site_that_dies_does_not_take_its_last_lines_along() -> None:
    lines: list[str] = []
    federation = Federation.load(FILE)
    with federation.session(target="local", homesite="app", output=lambda _, line: lines.append(line)) as session:
        job = run(session, lambda h: Yield(h.Exit(x=h.Patients())))
        got = all_that_the_client_gets(job)
    assert "SECRET" not in got
    assert "exited with code 3 (what it printed last stays there, since the federation has rules of residency" in got
    assert any("leaving with" in line for line in lines), "the one who runs the sites sees what they print"
