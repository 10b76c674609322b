"""Random pipelines give the values of a plain local evaluation, on every target and under any order of delivery.

By default a tenth of the sizes named here is run; `DFMESH_TEST_SCALE=1` runs all of it. A failure prints its seed
and the smallest description found that still fails; `random_pipeline(seed, options)` makes it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from .building import build
from .conftest import Outcome, Runner, canonical, compiled_for, outcome_of_job, scaled, simulated
from .descriptions import Description
from .generator import Options, random_pipeline
from .interpreter import interpret
from .shrinking import shrink

PLAIN = Options()
WHOLE = Options(branches=True, failures=True)
BLOCKS = 10
SIMULATED, ORDERS = 500, 20
ON_LOCAL, ON_INPROC = 50, 100
FIRST_SEED = int(os.environ.get("DFMESH_TEST_SEED", "0"))

Run = Callable[[Description], Outcome]


def difference(description: Description, run: Run) -> str:
    """Say how a run differs from the plain evaluation; empty if it does not."""
    expected = interpret(description)
    try:
        found = run(description)
    except Exception as error:  # whatever it is, it is to be shown with its seed
        return f"{type(error).__name__}: {error}"
    lines = []
    for place in sorted({*expected.results, *found.results}):
        wanted, got = (canonical(results.get(place, [])) for results in (expected.results, found.results))
        if wanted != got:
            lines.append(f"place {place!r}: expected {wanted}, found {got}")
    if found.origins() != expected.origins:
        lines.append(f"origins: expected {sorted(expected.origins)}, found {[str(error) for error in found.errors]}")
    status = "failed" if expected.origins else "finished"
    if found.status != status:
        lines.append(f"status: expected {status}, found {found.status}")
    return "\n".join(lines)


def check(seed: int, options: Options, run: Run) -> None:
    """Compare the pipeline of one seed; if it differs, fail with the smallest that does."""
    description = random_pipeline(seed, options)
    first = difference(description, run)
    if not first:
        return
    kind = first.partition(" ")[0]
    small = shrink(description, lambda candidate: difference(candidate, run).partition(" ")[0] == kind)
    pytest.fail(
        f"seed {seed}, {options}\nsmallest that differs:\n{small.render()}\n{difference(small, run)}\n{small!r}",
        pytrace=False,
    )


def block(number: int, count: int) -> range:
    """Give the seeds of one of the blocks into which a test is cut, so that none takes long."""
    return range(FIRST_SEED + number * count // BLOCKS, FIRST_SEED + (number + 1) * count // BLOCKS)


def simulation(ops: Any, config: Any, orders: int) -> Run:
    """Run under several orders of delivery, which must all give the same."""

    def run(description: Description) -> Outcome:
        pipeline = compiled_for(build(description, ops), config)
        sets = list(description.parameter_sets)
        first = simulated(pipeline, config, sets, 0)
        for order in range(1, orders):
            other = simulated(pipeline, config, sets, order)
            assert canonical(dict(sorted(other.results.items()))) == canonical(dict(sorted(first.results.items()))), (
                f"order of delivery {order} gives other results than order 0"
            )
            assert other.origins() == first.origins(), f"order {order}: other errors than order 0"
        return first

    return run


def job(runner: Runner, ops: Any) -> Run:
    def run(description: Description) -> Outcome:
        running = runner.session.submit(build(description, ops), list(description.parameter_sets))
        return outcome_of_job(running, timeout=20)

    return run


@pytest.mark.parametrize("number", range(BLOCKS))
@pytest.mark.timeout(600)
def test_simulator(number: int, ops: Any, config: Any) -> None:
    for seed in block(number, scaled(SIMULATED)):
        check(seed, PLAIN, simulation(ops, config, ORDERS))


@pytest.mark.parametrize("number", range(BLOCKS))
@pytest.mark.timeout(600)
def test_simulator_with_branches_and_failures(number: int, ops: Any, config: Any) -> None:
    for seed in block(number, scaled(SIMULATED)):
        check(seed, WHOLE, simulation(ops, config, ORDERS))


@pytest.mark.parametrize("options", [PLAIN, WHOLE], ids=["plain", "whole"])
@pytest.mark.parametrize("number", range(BLOCKS))
@pytest.mark.timeout(600)
def test_inproc(number: int, options: Options, session_of: Callable[[str], Any], ops: Any, config: Any) -> None:
    for seed in block(number, scaled(ON_INPROC)):
        check(seed, options, job(Runner("inproc", session_of, config), ops))


@pytest.mark.parametrize("options", [PLAIN, WHOLE], ids=["plain", "whole"])
@pytest.mark.parametrize("number", range(BLOCKS))
@pytest.mark.timeout(600)
def test_local(number: int, options: Options, local: Runner, ops: Any) -> None:
    """All through one session."""
    for seed in block(number, max(BLOCKS, scaled(ON_LOCAL))):
        check(seed, options, job(local, ops))


@pytest.mark.parametrize("options", [PLAIN, WHOLE], ids=["plain", "whole"])
@pytest.mark.timeout(300)
def test_local_all_at_once(options: Options, local: Runner, ops: Any) -> None:
    """Many different jobs at the same time in one session keep apart."""
    descriptions = [random_pipeline(seed, options) for seed in range(1000, 1000 + max(10, scaled(ON_LOCAL)))]
    jobs = [local.session.submit(build(item, ops), list(item.parameter_sets)) for item in descriptions]
    for description, running in zip(descriptions, jobs, strict=True):
        wrong = difference(description, lambda _, running=running: outcome_of_job(running))
        assert not wrong, f"{wrong}\n{description.render()}"
