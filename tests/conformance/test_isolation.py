"""A pipeline means the same when all its adapters run in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dfmesh.engine.adapters import SiteAdapters
from dfmesh.engine.isolation import WorkerProcesses

from .building import build, parameter_sets
from .comparing import described, differences
from .conftest import HOMESITE, outcome_of_job
from .constructs import CONSTRUCTS
from .interpreter import interpret


@pytest.fixture(scope="module")
def isolated(fed: Any) -> Iterator[Any]:
    """A session in which every adapter is isolated; those of a site share their processes, to need fewer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            SiteAdapters,
            "isolated",
            lambda self, operation, provider=None: self.config.adapter(self.site_name, operation, provider),
        )
        patch.setattr(WorkerProcesses, "_key", lambda _self, _operation, _provider: (None, "", ""))
        with fed.session(target="inproc", homesite=HOMESITE) as session:
            yield session


@pytest.mark.parametrize(
    "name",
    [
        "ForEach over a stream",
        "stream of an async generator that breaks",
        "stream that breaks in a tolerant loop",
    ],
)
def test_construct(name: str, isolated: Any, ops: Any) -> None:
    description = CONSTRUCTS[name]()
    pipeline = build(description, ops)
    found = outcome_of_job(isolated.submit(pipeline, parameter_sets(description, pipeline)), timeout=100)
    wrong = differences(interpret(description), found)
    assert not wrong, "\n".join([description.render(), *wrong, "found", described(found)])
