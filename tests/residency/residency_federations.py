"""A federation with a clinic whose results may go where its owner says, written to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dfmesh import Federation

OPERATIONS: dict[str, Any] = {
    "c.Read": {},
    "c.Stream": {},
    "c.Names": {"parameters": {"count": {"type": "integer"}}, "required": ["count"]},
    "c.Work": {"parameters": {"x": {}}, "required": ["x"]},
    "c.Leave": {},
    "c.Join": {"parameters": {"left": {}, "right": {}}, "required": ["left", "right"]},
}
FREE = {"c.Work", "c.Join", "c.Leave"}
"""What is made of results is a new value, and may go anywhere."""


def document(residency: list[str] | None, **more: Any) -> dict[str, Any]:
    def offered(names: list[str], rule: list[str] | None = None) -> dict[str, Any]:
        return {
            name: {"adapter": f"residency_operations.{name.partition('.')[2].lower()}"}
            | ({"residency": rule} if rule is not None and name not in FREE else {})
            for name in names
        }

    everything = list(OPERATIONS)
    return {
        "dfm": "1.0.0",
        "info": {"name": "clinics"},
        "operations": OPERATIONS,
        "sites": {
            "clinic": {"interface": offered(everything, residency), **more},
            "partner": {"interface": offered(["c.Work", "c.Join"]), **more},
            "abroad": {"interface": offered(["c.Work", "c.Join"])},
            "home": {"interface": {}},
        },
    }


def load(path: Path, residency: list[str] | None, **more: Any) -> Federation:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document(residency, **more), indent=1))
    return Federation.load(path)
