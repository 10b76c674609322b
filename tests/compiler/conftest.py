"""A small federation whose costs the tests declare, and pipelines on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dfmesh import FederationConfig

OPERATIONS: dict[str, Any] = {
    "op.Make": {"parameters": {"n": {"type": "integer", "description": "How many."}}, "required": ["n"]},
    "op.Use": {"parameters": {"x": {}, "y": {}}, "required": ["x"]},
    "op.Merge": {
        "parameters": {"left": {}, "right": {}, "weight": {"type": "number", "minimum": 0}},
        "required": ["left", "right"],
    },
    "op.Rare": {"parameters": {"x": {}}, "required": ["x"]},
    "op.Nowhere": {},
    "op.Hidden": {"parameters": {"x": {}}},
}

OFFERED = {
    "a": ["op.Make", "op.Use", "op.Merge"],
    "b": ["op.Make", "op.Use", "op.Merge", "op.Rare"],
    "c": ["op.Use"],
    "home": [],
}


def interface(operations: list[str]) -> dict[str, Any]:
    return {name: {"adapter": "builtins.dict"} for name in operations}


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], FederationConfig]:
    """Read a federation that is given as a dictionary."""

    def read(document: dict[str, Any]) -> FederationConfig:
        path = tmp_path_factory.mktemp("federation") / "small.dfm.yaml"
        path.write_text(json.dumps({"dfm": "1.0.0", **document}))
        return FederationConfig.load(path)

    return read


@pytest.fixture(scope="session")
def small(load: Callable[[dict[str, Any]], FederationConfig]) -> FederationConfig:
    """Sites a, b, c and home; `op.Rare` is b's alone, `op.Hidden` that of a provider of c, `op.Use` takes more at b."""
    sites: dict[str, Any] = {site: {"interface": interface(operations)} for site, operations in OFFERED.items()}
    exposing = {"const": 1, "expose-as": {"param": "level", "type": "integer"}}
    sites["b"]["interface"]["op.Use"] = {"adapter": "builtins.dict", "args": {"x": "x", "y": "y", "level": exposing}}
    sites["a"]["interface"]["op.Use"] = {
        "adapter": "builtins.dict",
        "args": {"x": "x", "detail": {"const": 1, "expose-as": {"param": "detail", "type": "integer"}}},
    }
    sites["c"]["providers"] = {"deep": {"interface": interface(["op.Hidden"])}}
    return load({"operations": OPERATIONS, "sites": sites})


@pytest.fixture(scope="session")
def ops(small: FederationConfig) -> Any:
    return small.ops


@pytest.fixture(scope="session")
def calc() -> FederationConfig:
    return FederationConfig.load(Path(__file__).resolve().parents[1] / "federations" / "calc" / "calc.dfm.yaml")
