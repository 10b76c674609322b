"""What the conformance tests share: the calc federation, sessions on it, and one way to run on every target."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CALC = Path(__file__).resolve().parents[1] / "federations" / "calc"
CALC_FILE = CALC / "calc.dfm.yaml"
sys.path.insert(0, str(CALC))

from calc_plain import canonical  # noqa: E402

TARGETS = ("simulator", "inproc", "local")
HOMESITE = "app"

LIMIT = 60.0
"""Seconds after which something that should happen at once has not happened, however busy the machine is."""


def scaled(full: int) -> int:
    """Give how much of a large test to do: all of it if DFMESH_TEST_SCALE is 1, a tenth by default."""
    return max(1, round(full * float(os.environ.get("DFMESH_TEST_SCALE", "0.1"))))


@dataclass
class Outcome:
    """What a run gave, whether it failed or not.

    Attributes:
        results: Place to values in frame order.
        errors: The `OperationFailure`s.
        status: As text, such as `finished`.
        items: (place, frame, value) of each result.
    """

    results: dict[str, list[Any]] = field(default_factory=dict)
    errors: list[Any] = field(default_factory=list)
    status: str = "finished"
    items: list[tuple[str, tuple[int, ...], Any]] = field(default_factory=list)

    def origins(self) -> set[tuple[str, tuple[int, ...]]]:
        """Give (node, frame) of each error; (~operation, frame) inside sub-pipelines, where ids are numbers."""
        names = [(str(error.node), error.operation, tuple(error.frame)) for error in self.errors]
        return {(f"~{operation}" if node.startswith("%") else node, frame) for node, operation, frame in names}


def assert_same(found: Any, expected: Any) -> None:
    """Compare values with their types, at any depth, and the order of dictionaries."""
    assert canonical(found) == canonical(expected)


def outcome_of_job(job: Any, timeout: float = LIMIT) -> Outcome:
    """Wait for a job and take everything it gave."""
    import dfmesh

    assert job.wait(timeout=timeout), f"the job did not end within {timeout} s: {job.progress()}"
    status = str(getattr(job.status, "value", job.status))
    try:
        results = job.result(timeout=LIMIT)
    except dfmesh.JobError as error:
        items = items_of(job)
        return Outcome(_grouped(items), list(error.errors), status, [(i.place, i.frame, i.value) for i in items])
    items = [item for place in results for item in results.items_of(place)]
    return Outcome(_without_empty(results), [], status, [(item.place, item.frame, item.value) for item in items])


def _without_empty(results: Any) -> dict[str, list[Any]]:
    """Leave out places that got nothing: a session lists them, the simulator does not."""
    return {place: list(values) for place, values in results.items() if len(values)}


def items_of(job: Any) -> list[Any]:
    """Take the results of a job one by one, also of a failed one."""
    import dfmesh

    items = []
    try:
        for item in job:
            items.append(item)  # noqa: PERF402 - what came before the error is wanted
    except dfmesh.JobError:
        pass
    return items


def _grouped(items: list[Any]) -> dict[str, list[Any]]:
    results: dict[str, list[Any]] = {}
    for item in sorted(items, key=lambda item: item.frame):
        results.setdefault(item.place, []).append(item.value)
    return results


@pytest.fixture(scope="session")
def fed() -> Any:
    import dfmesh

    return dfmesh.Federation.load(CALC_FILE)


@pytest.fixture(scope="session")
def config() -> Any:
    from dfmesh.config import FederationConfig

    return FederationConfig.load(CALC_FILE)


@pytest.fixture(scope="session")
def ops(fed: Any) -> Any:
    return fed.ops


@pytest.fixture(scope="session")
def session_of(fed: Any) -> Iterator[Callable[[str], Any]]:
    """Give the session of a target, opened at first use and closed after the last test."""
    sessions: dict[str, Any] = {}

    def get(target: str) -> Any:
        if target not in sessions:
            session = fed.session(target=target, homesite=HOMESITE)
            session.__enter__()
            sessions[target] = session
        return sessions[target]

    yield get
    for session in sessions.values():
        session.__exit__(None, None, None)


class Runner:
    """Runs pipelines on one target.

    Attributes:
        target: Name of the target.
        orders: Under how many orders of delivery to run on the simulator; all must give the same.
    """

    orders = 4

    def __init__(self, target: str, session_of: Callable[[str], Any], config: Any) -> None:
        self.target = target
        self._session_of = session_of
        self._config = config

    @property
    def session(self) -> Any:
        return self._session_of(self.target)

    def outcome(self, pipeline: Any, *parameter_sets: dict[str, Any]) -> Outcome:
        """Run with parameter sets (by default one, empty) and give what comes, errors included."""
        sets = list(parameter_sets) or [{}]
        try:
            if self.target == "simulator":
                return self._simulate(pipeline, sets)
            return outcome_of_job(self.session.submit(pipeline, sets))
        except KeyboardInterrupt as error:  # of an operation; it would end all tests
            raise RuntimeError("a KeyboardInterrupt of an operation came through") from error

    def _simulate(self, pipeline: Any, sets: list[dict[str, Any]]) -> Outcome:
        compiled = compiled_for(pipeline, self._config)
        outcomes = [simulated(compiled, self._config, sets, seed) for seed in range(self.orders)]
        for other in outcomes[1:]:
            assert_same(other.results, outcomes[0].results)
            assert other.origins() == outcomes[0].origins()
        return outcomes[0]

    def __call__(self, pipeline: Any, /, **parameters: Any) -> dict[str, list[Any]]:
        """Run to the end; raises the JobError if there is one."""
        import dfmesh

        if self.target != "simulator":
            return _without_empty(self.session.run(pipeline, **parameters))
        outcome = self.outcome(pipeline, parameters)
        if outcome.status != "finished":
            raise dfmesh.JobError("simulated", outcome.errors)
        return outcome.results


def compiled_for(pipeline: Any, config: Any) -> Any:
    from dfmesh.compiler import compile_pipeline

    return compile_pipeline(pipeline, config, HOMESITE)


@functools.cache
def _adapters() -> dict[str, Any]:
    from dfmesh.config import FederationConfig
    from dfmesh.engine.adapters import SiteAdapters

    config = FederationConfig.load(CALC_FILE)
    return {site: SiteAdapters(config, site) for site in config.sites}


def simulated(
    compiled: Any, config: Any, sets: list[dict[str, Any]], seed: int, caches: dict[str, Any] | None = None
) -> Outcome:
    """Run on the simulator under one order of delivery.

    Args:
        compiled: What to run.
        config: The federation.
        sets: Parameter sets.
        seed: Decides the order.
        caches: Caches by site, to keep them or to let them fail; new ones by default.
    """
    import dfmesh

    result = dfmesh.simulate(compiled, config, HOMESITE, sets, seed, _adapters(), caches)
    items = [(item.place, item.frame, item.value) for item in result.items]
    status = str(getattr(result.status, "value", result.status))
    return Outcome(_without_empty(result.results), list(result.errors), status, items)


@pytest.fixture(params=TARGETS)
def run(request: pytest.FixtureRequest, session_of: Callable[[str], Any], config: Any) -> Runner:
    return Runner(request.param, session_of, config)


@pytest.fixture(params=["inproc", "local"])
def live(request: pytest.FixtureRequest, session_of: Callable[[str], Any], config: Any) -> Runner:
    """A runner on targets with a clock and jobs that can be watched."""
    return Runner(request.param, session_of, config)


@pytest.fixture
def local(session_of: Callable[[str], Any], config: Any) -> Runner:
    return Runner("local", session_of, config)
