"""Imports only point downwards, also those inside functions and those for type checkers alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "dfmesh"

LAYERS = {
    "shown_text": 0,
    "text_tables": 0,
    "user_lines": 0,
    "errors": 0,
    "processes": 1,
    "values": 1,
    "netir": 2,
    "api": 3,
    "config": 4,
    "compiler": 5,
    "engine": 5,
    "targets": 6,
    "session": 7,
    "cli": 8,
    "dashboard": 8,
}

SIBLINGS_MAY_NOT_MEET = {("compiler", "engine"), ("engine", "compiler")}

ANYWHERE = {"", "__init__", "__main__"}
"""The package itself, which only says where its names are."""


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if "__pycache__" not in path.parts)


def layer_of(module: str) -> str:
    """Give the part of `dfmesh` that a dotted name belongs to; empty for the package itself."""
    _, _, below = module.partition("dfmesh.")
    return below.partition(".")[0]


def imported(path: Path) -> list[tuple[int, str]]:
    """List what a module imports from dfmesh, wherever in the module, as (line, dotted name)."""
    package = ["dfmesh", *path.relative_to(SOURCE).parent.parts]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from dfmesh import values` names a layer, too.
            found += [(node.lineno, f"{module}.{alias.name}" if module == "dfmesh" else module) for alias in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "import_module":
            found += [(node.lineno, str(arg.value)) for arg in node.args if isinstance(arg, ast.Constant)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dfmesh":
            found.append((node.lineno, f"dfmesh.{node.attr}"))
    return [(line, name) for line, name in found if name == "dfmesh" or name.startswith("dfmesh.")]


def violations(path: Path) -> list[str]:
    own = path.relative_to(SOURCE).with_suffix("").parts[0]
    if own in ANYWHERE:
        return []
    found = []
    for line, name in imported(path):
        other = layer_of(name)
        where = f"{path.relative_to(SOURCE.parent)}:{line}: {own} imports {name}"
        if other in LAYERS:
            if LAYERS[other] > LAYERS[own]:
                found.append(f"{where}, which is above it")
            elif (own, other) in SIBLINGS_MAY_NOT_MEET:
                found.append(f"{where}; the two know only NetIR of one another")
        elif other and not other.startswith("__"):  # `dfmesh.Federation` would load any layer behind our back
            found.append(f"{where}; import from the layer that has it")
    return found


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {path.relative_to(SOURCE).with_suffix("").parts[0] for path in modules()}
    assert parts - ANYWHERE <= set(LAYERS), "give the new part a layer here and in docs/architecture.md"


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_downwards(layer: str) -> None:
    own = [path for path in modules() if path.relative_to(SOURCE).with_suffix("").parts[0] == layer]
    assert [violation for path in own for violation in violations(path)] == []


def test_the_check_sees_every_kind_of_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "dfmesh"
    monkeypatch.setattr(f"{__name__}.SOURCE", source)
    module = source / "compiler" / "deep" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "from typing import TYPE_CHECKING\n"
        "import dfmesh.engine.wiring\n"
        "from dfmesh import session\n"
        "from dfmesh.netir import Net\n"
        "if TYPE_CHECKING:\n"
        "    from dfmesh.targets.local import Runner\n"
        "def function():\n"
        "    from ...engine import net_runner\n"
        "    importlib.import_module('dfmesh.cli')\n"
        "    from ..graph import Graph\n"
        "import dfmesh\n"
        "print(dfmesh.__file__, dfmesh.Federation)\n"
    )
    assert [violation.partition(": ")[2] for violation in sorted(violations(module))] == [
        "compiler imports dfmesh.Federation; import from the layer that has it",
        "compiler imports dfmesh.engine.wiring; the two know only NetIR of one another",
        "compiler imports dfmesh.session, which is above it",
        "compiler imports dfmesh.targets.local, which is above it",
        "compiler imports dfmesh.engine; the two know only NetIR of one another",
        "compiler imports dfmesh.cli, which is above it",
    ]
