"""What the tests of the language share: the operations of the calc federation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dfmesh import FederationConfig

CALC_FILE = Path(__file__).resolve().parents[1] / "federations" / "calc" / "calc.dfm.yaml"


@pytest.fixture(scope="session")
def calc() -> FederationConfig:
    return FederationConfig.load(CALC_FILE)


@pytest.fixture(scope="session")
def ops(calc: FederationConfig) -> Any:
    return calc.ops
