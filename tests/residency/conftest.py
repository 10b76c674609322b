"""A federation with a clinic whose results may go to its partner only, and the same as a dishonest client sees it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from residency_federations import load

from dfmesh import Federation


@pytest.fixture
def honest(tmp_path: Path) -> Federation:
    cache = {"cache-config": {"base-path": str(tmp_path / "cache")}}
    return load(tmp_path / "honest" / "clinics.dfm.yaml", ["partner"], **cache)


@pytest.fixture
def dishonest(tmp_path: Path) -> Federation:
    cache = {"cache-config": {"base-path": str(tmp_path / "cache")}}
    return load(tmp_path / "dishonest" / "clinics.dfm.yaml", None, **cache)
