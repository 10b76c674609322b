"""Random pipelines give the values of a plain local evaluation, on every target and under any order of delivery.

By default a tenth of the sizes named here is run; `DFMESH_TEST_SCALE=1` runs all of it, `DFMESH_TEST_SEED=n` begins at
another seed. A failure prints its seed and the smallest description found that still fails; `random_pipeline(seed,
options)` makes it again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calc_plain import canonical

from dfmesh import JobError, Pipeline, Yield
from dfmesh.engine.site_cache import MemoryCache

from .building import build, parameter_sets
from .comparing import differences
from .conftest import LIMIT, Outcome, Runner, compiled_for, outcome_of_job, scaled, simulated
from .descriptions import Description
from .generator import Options, random_pipeline
from .interpreter import interpret
from .shrinking import shrink

PLAIN = Options()
BRANCHES = Options(branches=True, failures=True)
WHOLE = Options(branches=True, failures=True, whole=True)
BLOCKS = 10
SIMULATED, ORDERS = 500, 20
WHOLE_SIMULATED, WHOLE_ORDERS = 5000, 2
WHOLE_ON_LOCAL, ON_LIVE = 200, 50
FIRST_SEED = int(os.environ.get("DFMESH_TEST_SEED", "0"))

Run = Callable[[Description], Outcome]


def difference(description: Description, run: Run) -> str:
    """Say how a run differs from the plain evaluation; empty if it does not."""
    expected = interpret(description)
    try:
        found = run(description)
    except Exception as error:  # whatever it is, it is to be shown with its seed
        return f"{type(error).__name__}: {error}"
    return "\n".join(differences(expected, found))


def check(seed: int, options: Options, run: Run) -> None:
    """Compare the pipeline of one seed; if it differs, fail with the smallest that does."""
    description = random_pipeline(seed, options)
    first = difference(description, run)
    if not first:
        return
    kind = first.partition(" ")[0]
    small = shrink(description, lambda candidate: difference(candidate, run).partition(" ")[0] == kind)
    pytest.fail(
        f"seed {seed}, {options}\n{first}\nsmallest that differs:\n{small.render()}\n{difference(small, run)}",
        pytrace=False,
    )


def check_all(what: str, seeds: range, options: Options, run: Run) -> None:
    """Compare the pipelines of all seeds, and say which these were and how long it took."""
    start = time.perf_counter()
    for seed in seeds:
        check(seed, options, run)
    took = time.perf_counter() - start
    # Past the capturing of pytest, so that a run without -s tells it too.
    print(f"\n{what}: seeds {seeds.start} to {seeds.stop - 1}, 0 differences, {took:.1f} s", file=sys.__stderr__)


def block(number: int, count: int) -> range:
    """Give the seeds of one of the blocks into which a test is cut, so that none takes long."""
    return range(FIRST_SEED + number * count // BLOCKS, FIRST_SEED + (number + 1) * count // BLOCKS)


def simulation(ops: Any, config: Any, orders: int, failing: int = 0) -> Run:
    """Run under several orders of delivery; those of one kind must all give the same where nothing is cached.

    Args:
        ops: Operations.
        config: The federation.
        orders: How many.
        failing: How many further ones, with caches that fail.
    """

    def outcomes(description: Description) -> Iterator[Outcome]:
        pipeline = build(description, ops)
        compiled = compiled_for(pipeline, config)
        sets = parameter_sets(description, pipeline)
        for order in range(orders + failing):
            caches = None if order < orders else {site: MemoryCache(fails=True) for site in config.sites}
            yield simulated(compiled, config, sets, order, caches)

    def run(description: Description) -> Outcome:
        expected = interpret(description)
        first = None
        for order, found in enumerate(outcomes(description)):
            first = first or found
            if not any(blocks for *_, blocks in (*expected.items, *expected.failures)):
                assert canonical(sorted(found.items, key=_place)) == canonical(sorted(first.items, key=_place)), (
                    f"order of delivery {order} gives other results than order 0"
                )
                assert found.origins() == first.origins(), f"order {order}: other errors than order 0"
            elif differences(expected, found):
                return found
        assert first is not None
        return first

    return run


def _place(item: tuple[str, tuple[int, ...], Any]) -> Any:
    return item[:2]


def submitted(runner: Runner, ops: Any, description: Description) -> Any:
    """Start the job of a description, with keys for caches that no other job has."""
    pipeline = build(description, ops, uuid.uuid4().hex)
    return runner.session.submit(pipeline, parameter_sets(description, pipeline))


def job(runner: Runner, ops: Any) -> Run:
    return lambda description: outcome_of_job(submitted(runner, ops, description))


def compare_at_once(runner: Runner, ops: Any, seeds: Iterable[int], options: Options) -> None:
    """Run all jobs at the same time in one session."""
    descriptions = [random_pipeline(seed, options) for seed in seeds]
    jobs = [submitted(runner, ops, item) for item in descriptions]
    for description, running in zip(descriptions, jobs, strict=True):
        wrong = difference(description, lambda _, running=running: outcome_of_job(running))
        assert not wrong, f"{wrong}\n{description.render()}"


@pytest.mark.parametrize("options", [PLAIN, BRANCHES], ids=["plain", "branches"])
@pytest.mark.parametrize("number", range(BLOCKS))
@pytest.mark.timeout(600)
def test_many_orders_of_delivery(number: int, options: Options, ops: Any, config: Any) -> None:
    for seed in block(number, scaled(SIMULATED)):
        check(seed, options, simulation(ops, config, ORDERS))


@pytest.mark.parametrize("number", range(BLOCKS))
@pytest.mark.timeout(1200)
def test_whole_language_on_the_simulator(number: int, ops: Any, config: Any) -> None:
    """Each under some orders of delivery, and with caches that fail."""
    seeds = block(number, scaled(WHOLE_SIMULATED))
    check_all("simulator", seeds, WHOLE, simulation(ops, config, WHOLE_ORDERS, failing=1))


@pytest.mark.parametrize("number", range(BLOCKS))
@pytest.mark.timeout(600)
def test_whole_language_on_local(number: int, local: Runner, ops: Any) -> None:
    """All through one session."""
    check_all("local", block(number, scaled(WHOLE_ON_LOCAL)), WHOLE, job(local, ops))


@pytest.mark.timeout(600)
def test_whole_language_inproc(session_of: Callable[[str], Any], ops: Any, config: Any) -> None:
    seeds = range(FIRST_SEED, FIRST_SEED + scaled(WHOLE_ON_LOCAL))
    check_all("inproc", seeds, WHOLE, job(Runner("inproc", session_of, config), ops))


@pytest.mark.timeout(600)
def test_whole_language_on_local_where_caches_fail(
    fed: Any, ops: Any, config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands where the caches should be."""
    blocked = tmp_path / "blocked"
    blocked.write_text("no directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with fed.session(target="local", homesite="app") as session:
        runner = Runner("local", lambda _: session, config)
        seeds = range(FIRST_SEED, FIRST_SEED + scaled(ON_LIVE))
        check_all("local, failing caches", seeds, WHOLE, job(runner, ops))


def pids(session: Any, ops: Any) -> dict[str, int]:
    """Ask the sites for their processes, until all are there: one that was killed may just be starting."""
    with Pipeline() as p:
        for site in "abcd":
            Yield(ops.calc.Where(site=site)["pid"], place=site)
    job = session.submit(p)
    while job.wait(timeout=LIMIT) and job.status.value == "failed":
        job = session.submit(p)
    return {site: job.result(timeout=LIMIT).one(site) for site in "abcd"}


def assert_right_as_far_as_it_came(description: Description, job: Any) -> bool:
    """Check what must hold where a site died: the job ends and names what failed, and what came is right.

    Returns:
        Whether the job lost something.
    """
    found = outcome_of_job(job)
    expected = interpret(description)
    right = {(place, frame, canonical(value)) for place, frame, value, _ in expected.items}
    came = [(place, tuple(frame), canonical(value)) for place, frame, value in found.items]
    assert set(came) <= right, f"{sorted(set(came) - right)}\n{description.render()}"
    assert len(set(came)) == len(came), "a result came twice"
    lost = [error for error in found.errors if error.kind == "SiteLost"]
    if not lost:
        assert not differences(expected, found), description.render()
    assert found.status == ("failed" if found.errors else "finished")
    for error in found.errors:
        assert error.operation
        assert error.site
        assert error in lost or (str(error.node).startswith("%") or (str(error.node), error.frame) in expected.origins)
    return bool(lost)


@pytest.mark.timeout(600)
def test_sites_are_killed_on_local(fed: Any, ops: Any, config: Any) -> None:
    """Some jobs go on at the same time, and a site is killed as soon as the first result of one has come.

    Without loops that tolerate errors: there, what a dead site leaves behind is left out, and the rest goes on.
    """
    options = replace(WHOLE, tolerant=False)
    rounds = scaled(20)
    lost = []
    with fed.session(target="local", homesite="app") as session:
        runner = Runner("local", lambda _: session, config)
        for number in range(rounds):
            victim = pids(session, ops)["abcd"[number % 4]]
            seeds = range(50_000 + FIRST_SEED + number * 5, 50_005 + FIRST_SEED + number * 5)
            descriptions = [random_pipeline(seed, options) for seed in seeds]
            jobs = [submitted(runner, ops, description) for description in descriptions]
            with contextlib.suppress(JobError):
                next(iter(jobs[number % 5]), None)
            os.kill(victim, signal.SIGKILL)
            for description, running in zip(descriptions, jobs, strict=True):
                lost.append(assert_right_as_far_as_it_came(description, running))
    print(f"\nlocal, {rounds} kills: {len(lost)} jobs ended, {sum(lost)} lost something", file=sys.__stderr__)


@pytest.mark.parametrize("options", [PLAIN, BRANCHES], ids=["plain", "branches"])
@pytest.mark.parametrize("target", ["inproc", "local"])
@pytest.mark.timeout(600)
def test_parts_of_the_language(
    target: str, options: Options, session_of: Callable[[str], Any], ops: Any, config: Any
) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + scaled(ON_LIVE)):
        check(seed, options, job(Runner(target, session_of, config), ops))


@pytest.mark.parametrize("options", [PLAIN, BRANCHES, WHOLE], ids=["plain", "branches", "whole"])
@pytest.mark.timeout(300)
def test_local_all_at_once(options: Options, local: Runner, ops: Any) -> None:
    """Many different jobs at the same time in one session keep apart."""
    compare_at_once(local, ops, range(1000, 1000 + max(10, scaled(ON_LIVE))), options)
