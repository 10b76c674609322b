"""The oracle of the chaos driver finds what is wrong, and takes nothing else for wrong."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chaos_run.case import Case, Draft
from chaos_run.client import FEDERATION
from chaos_run.faults import PROFILES, Loss
from chaos_run.faulty_templates import leaves, raising_loop
from chaos_run.leftovers import complaints
from chaos_run.oracle import Outcome, judge
from chaos_run.templates import many_sets, side_by_side
from chaos_run.worker import draw_job

import dfmesh

ALL = frozenset({"home", "north", "south", "east"})
KILLED = "killed by SIGKILL"


@pytest.fixture(scope="module")
def federation() -> dfmesh.Federation:
    return dfmesh.Federation.load(FEDERATION)


@pytest.fixture
def draw(federation: dfmesh.Federation, tmp_path: Path) -> Callable[..., Case]:
    def draw(template: Callable[[Draft], None], wanted: Callable[[Case], bool] = lambda case: True) -> Case:
        """Draw cases until one is as the test needs it."""
        for seed in range(1000):
            draft = Draft(random.Random(seed), federation.ops, f"job{seed}", tmp_path)
            template(draft)
            if wanted(draft.case):
                return draft.case
        raise AssertionError("no seed gives such a case")

    return draw


def items(case: Case) -> list[tuple[str, tuple[int, ...], Any]]:
    return [(place, frame, value) for place, found in case.results.items() for frame, value in found]


def failure(site: str, kind: str, message: str, node: str = "%1", frame: tuple[int, ...] = (0,)) -> Any:
    return dfmesh.OperationFailure(
        site=site, operation="chaos.Wait", node=node, frame=frame, location="", kind=kind, message=message
    )


def finished(case: Case, **changes: Any) -> Outcome:
    return dataclasses.replace(Outcome("finished", items(case), [], ALL), **changes)


def kill(site: str) -> Loss:
    return Loss(site, KILLED, 0.0, 10.0)


def test_what_is_as_it_should_be_is_right(draw: Callable[..., Case]) -> None:
    case = draw(side_by_side)
    assert judge(case, finished(case)) == []
    assert judge(case, finished(case, losses=[kill("north")])) == []
    assert judge(case, finished(case, status="cancelled", cancelled=True, items=[])) == []


def test_results(draw: Callable[..., Case]) -> None:
    case = draw(side_by_side)
    good = items(case)
    place, frame, value = good[0]
    for bad, said in (
        (good[1:], "finished without 1 results"),
        ([*good, good[0]], "2 results at"),
        ([(place, frame, value + 1), *good[1:]], f"not {value}"),
        ([(place, frame, float(value)), *good[1:]], f"not {value}"),
        ([*good, ("nowhere", (0,), 1)], "where there is none"),
    ):
        assert [said in text for text in judge(case, finished(case, items=bad))] == [True]


def test_results_as_they_came(draw: Callable[..., Case]) -> None:
    case = draw(side_by_side)
    keys = [(place, frame) for place, frame, _ in items(case)]
    assert judge(case, finished(case, iterated=keys)) == []
    assert "iterating gave other" in judge(case, finished(case, iterated=[*keys, keys[0]]))[0]


def test_cancelled_by_nobody(draw: Callable[..., Case]) -> None:
    case = draw(side_by_side)
    assert "nobody did that" in judge(case, finished(case, status="cancelled"))[0]


def test_a_call_that_was_made_twice(draw: Callable[..., Case]) -> None:
    case = draw(many_sets)
    assert "called 2 times" in judge(case, finished(case, once_calls=["set 1", "set 2", "set 1"]))[0]


def test_a_loss_must_have_happened_as_it_is_told(draw: Callable[..., Case]) -> None:
    case = draw(many_sets, lambda case: bool(case.once_sites))
    site = next(iter(case.once_sites))
    lost = finished(case, status="failed", items=items(case)[:3], errors=[failure(site, "SiteLost", KILLED)])
    assert judge(case, dataclasses.replace(lost, losses=[kill(site)])) == []
    other = "north" if site != "north" else "south"
    assert "did not happen" in judge(case, dataclasses.replace(lost, losses=[kill(other)]))[0]
    exited = Loss(site, "exited with code 3", 0.0, 10.0)
    assert "did not happen" in judge(case, dataclasses.replace(lost, losses=[exited]))[0]


def test_a_job_that_may_be_run_again_must_not_fail(draw: Callable[..., Case]) -> None:
    case = draw(many_sets, lambda case: not case.once_sites)
    lost = finished(case, status="failed", errors=[failure("north", "SiteLost", KILLED)], losses=[kill("north")])
    assert "may be run again" in judge(case, lost)[0]
    assert judge(case, dataclasses.replace(lost, losses=[kill("north")] * 5)) == []


def test_what_needs_nothing_of_a_lost_site_must_come(draw: Callable[..., Case]) -> None:
    case = draw(leaves, lambda case: case.deaths[0].reason.startswith("exited") and case.deaths[0].site != "home")
    death = case.deaths[0]
    loss = Loss(death.site, death.reason, 0.0, 10.0)
    error = failure(death.site, "SiteLost", death.reason, death.node)
    right = finished(case, status="failed", errors=[error], losses=[loss])
    assert judge(case, right) == []
    partly = [item for item in items(case) if item[0] != "elsewhere"]
    assert "need only" in judge(case, dataclasses.replace(right, items=partly))[0]
    unnamed = failure(death.site, "SiteLost", death.reason, "%7")
    assert "does not name bad" in judge(case, dataclasses.replace(right, errors=[unnamed]))[0]
    assert "an operation fails" in judge(case, finished(case))[0]


def test_failures_of_operations(draw: Callable[..., Case]) -> None:
    case = draw(raising_loop, lambda case: bool(case.failures) and len(case.failures[0].frames) > 1)
    own = case.failures[0]
    errors = [failure(own.site, own.kind, own.text, own.node, frame) for frame in own.frames]
    right = finished(case, status="failed", errors=errors)
    assert judge(case, right) == []
    assert "other errors than expected" in judge(case, dataclasses.replace(right, errors=errors[1:]))[0]
    strange = failure(own.site, "KeyError", "'x'")
    assert "nothing explains" in judge(case, dataclasses.replace(right, errors=[*errors, strange]))[0]
    assert "failed without 1 results" in judge(case, dataclasses.replace(right, items=items(case)[1:]))[0]


@pytest.mark.parametrize("profile", list(PROFILES))
def test_a_job_follows_from_its_name(federation: dfmesh.Federation, tmp_path: Path, profile: str) -> None:
    for number in range(20):
        first, second = (draw_job(f"1/x/0/{number}", PROFILES[profile], federation.ops, tmp_path) for _ in range(2))
        assert first.faults == second.faults
        assert first.case.pipeline.model_dump_json() == second.case.pipeline.model_dump_json()
        assert first.case.sets == second.case.sets


def test_complaints_are_found_among_what_processes_print() -> None:
    quiet = [
        "[north] WARNING dfmesh.engine: chaos.Loop did not stop",
        "Fatal Python error: Aborted",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in run',
        "SessionError: no host",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "a.py", line 2, in run',
        "KeyboardInterrupt",
    ]
    assert complaints(quiet) == []
    loud = [
        "[home] ERROR dfmesh.engine: site home",
        "[home] Traceback (most recent call last):",
        "[home]   File",
        "[home] KeyError: 1",
    ]
    assert [text.splitlines()[-1] for text in complaints([*quiet, *loud, *quiet])] == [
        "ERROR dfmesh.engine: site home",
        "KeyError: 1",
    ]
    assert complaints(loud[1:])[0].endswith("KeyError: 1")
