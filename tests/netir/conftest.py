"""What the tests of NetIR share: sound nets to plant faults in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
for path in (TESTS, TESTS / "engine", TESTS / "federations" / "calc", Path(__file__).parent):
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))
pytest.register_assert_rewrite("netir_plans")


@cache
def _plan() -> Any:
    from netir_plans import whole_plan

    return whole_plan()


@pytest.fixture
def nets() -> dict[str, Any]:
    """The nets of a pipeline with every construct, at four sites. They are immutable; the dictionary is yours."""
    return dict(_plan().nets)


@pytest.fixture(scope="session")
def random_plan() -> Callable[[int], Any]:
    from netir_plans import random_plan

    return random_plan
