"""Every construct on every target, and the blocks inside each other; docs/constructs.md shows the table."""

from __future__ import annotations

import itertools
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from .building import build, parameter_sets
from .comparing import described, differences
from .conftest import TARGETS, Outcome, Runner, compiled_for, outcome_of_job, simulated
from .constructs import BLOCKS, CONSTRUCTS, VARIANTS, nested
from .descriptions import Description
from .interpreter import interpret
from .test_random_pipelines import job, simulation

PAGE = Path(__file__).resolve().parents[2] / "docs" / "constructs.md"


def assert_means(description: Description, run: Runner, ops: Any, config: Any) -> None:
    """Compare a run with the plain evaluation."""
    found = _outcome(description, run, ops, config)
    wrong = differences(interpret(description), found)
    assert not wrong, "\n".join([description.render(), *wrong, "found", described(found)])


def _outcome(description: Description, run: Runner, ops: Any, config: Any) -> Outcome:
    if run.target == "simulator":
        return simulation(ops, config, 4, failing=2)(description)
    return job(run, ops)(description)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_construct(name: str, run: Runner, ops: Any, config: Any) -> None:
    assert_means(CONSTRUCTS[name](), run, ops, config)


@pytest.mark.parametrize("inner", BLOCKS)
@pytest.mark.parametrize("outer", BLOCKS)
def test_nesting(outer: str, inner: str, run: Runner, ops: Any, config: Any) -> None:
    """Works, fails, and fails in loops that tolerate it."""
    for variant in VARIANTS:
        assert_means(nested((outer, inner), variant), run, ops, config)


@pytest.mark.parametrize("outer", BLOCKS)
def test_three_blocks_deep(outer: str, ops: Any, config: Any) -> None:
    run = simulation(ops, config, 1)
    for inner in itertools.product(BLOCKS, BLOCKS):
        for variant in VARIANTS[1:]:
            description = nested((outer, *inner), variant)
            wrong = differences(interpret(description), run(description))
            assert not wrong, "\n".join([description.render(), *wrong])


def test_second_run_takes_everything_from_the_cache(ops: Any, config: Any) -> None:
    """Of a block whose value is kept nothing comes any more, but that value."""
    from dfmesh.engine.site_cache import MemoryCache

    for name in ("TryFromCache at a site", "TryFromCache with equal keys", "TryFromCache in parameter sets"):
        description = CONSTRUCTS[name]()
        pipeline = build(description, ops)
        sets = parameter_sets(description, pipeline)
        caches: dict[str, Any] = {site: MemoryCache() for site in config.sites}
        compiled = compiled_for(pipeline, config)
        first, second = (simulated(compiled, config, sets, seed, caches) for seed in range(2))
        assert any(place.startswith("computed") for place in first.results)
        assert not any(place.startswith("computed") for place in second.results)
        assert {place: first.results[place] for place in second.results} == second.results


def test_later_job_takes_everything_from_the_cache(live: Runner, ops: Any) -> None:
    """A value is handed on before it is written, so that the very next job may come too early; not a later one."""
    for name in ("TryFromCache at a site", "TryFromCache with equal keys"):
        description = CONSTRUCTS[name]()
        pipeline = build(description, ops, uuid.uuid4().hex)
        sets = parameter_sets(description, pipeline)
        first = outcome_of_job(live.session.submit(pipeline, sets))
        assert differences(interpret(description), first) == []
        for _ in range(20):
            later = outcome_of_job(live.session.submit(pipeline, sets))
            if not any(place.startswith("computed") for place in later.results):
                break
        assert later.results == {place: values for place, values in first.results.items() if place in ("c", "e")}


def test_page_of_constructs() -> None:
    page = _page()
    if os.environ.get("DFMESH_REGENERATE"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, (
        "run this test with DFMESH_REGENERATE=1 to rewrite docs/constructs.md"
    )


def _page() -> str:
    order = ("inproc", "local", "simulator")
    assert set(order) == set(TARGETS)
    lines = [
        "# Constructs and targets",
        "",
        "<!-- Written by tests/conformance/test_constructs.py with DFMESH_REGENERATE=1; do not edit. -->",
        "",
        "Every cell is a test that runs a small pipeline on that target and compares all values, types included,",
        "all errors and how the job ended with a plain evaluation in the tests, which knows nothing of dfmesh. The",
        "test of a cell is `test_construct[<target>-<construct>]` in `tests/conformance/test_constructs.py`; its",
        "pipeline is in `constructs.py` beside it. On the simulator each runs under several orders of delivery, and",
        "with caches that fail.",
        "",
        f"| construct | {' | '.join(order)} |",
        f"|---|{'---|' * len(order)}",
        *(f"| {name} | {' | '.join('tested' for _ in order)} |" for name in CONSTRUCTS),
        "",
        "That a `timeout` runs out is tested where there is a clock, on `inproc` and `local` (`test_timeout` in",
        "`test_faults.py`). Random pipelines of all this are in `test_random_pipelines.py`.",
        "",
        "## Inside each other",
        "",
        "`test_nesting[<target>-<outer>-<inner>]`, on each target: works, fails, and fails in loops with",
        '`on_error="skip"` and `"collect"`. Three deep, all 125 on the simulator: `test_three_blocks_deep`.',
        "",
        f"| outer, inner | {' | '.join(BLOCKS)} |",
        f"|---|{'---|' * len(BLOCKS)}",
        *(f"| **{outer}** | {' | '.join(f'{outer} > {inner}' for inner in BLOCKS)} |" for outer in BLOCKS),
        "",
    ]
    return "\n".join(lines)
