"""The examples of docs/pipelines.md run as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import dfmesh

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipelines.md"

ADAPTERS = """
def numbers(n): return list(range(1, n + 1))
def double(x): return 2 * x
def add(left, right): return left + right
def total(values): return sum(values)
"""

INTEGER = {"type": "integer"}

OPERATIONS = {
    "shop.Numbers": {"n": INTEGER},
    "shop.Double": {"x": INTEGER},
    "shop.Add": {"left": INTEGER, "right": INTEGER},
    "shop.Total": {"values": {}},
}


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> dfmesh.Federation:
    directory = tmp_path_factory.mktemp("shop")
    (directory / "shop_adapters.py").write_text(ADAPTERS)
    interface = {name: {"adapter": f"shop_adapters.{name.partition('.')[2].lower()}"} for name in OPERATIONS}
    operations = {name: {"parameters": fields, "required": list(fields)} for name, fields in OPERATIONS.items()}
    sites = {site: {"interface": interface} for site in ("here", "there")}
    path = directory / "shop.dfm.yaml"
    path.write_text(json.dumps({"dfm": "1.0.0", "operations": operations, "sites": sites}))
    return dfmesh.Federation.load(path)


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(examples())))
def test_example(number: int, federation: dfmesh.Federation) -> None:
    names = {name: getattr(dfmesh, name) for name in dfmesh.__all__}
    with federation.session(target="inproc", homesite="here") as session:
        code = compile(examples()[number], str(PAGE), "exec")
        exec(code, {**names, "ops": federation.ops, "session": session})
