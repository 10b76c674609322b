"""What the tests of the engine share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("engine_support")

from engine_support import federation  # noqa: E402


@pytest.fixture(scope="session")
def ops() -> Any:
    return federation().ops.mesh


@pytest.fixture
def tallies() -> Any:
    """How often the adapters of this test were called, by name."""
    import mesh_operations

    mesh_operations.calls.clear()
    return mesh_operations.calls
