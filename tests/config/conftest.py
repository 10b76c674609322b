"""Small federations, written by the tests that use them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from dfmesh.config import FederationConfig
from dfmesh.engine.adapters import SiteAdapters

Write = Callable[..., Path]
Load = Callable[..., FederationConfig]
Adapters = Callable[..., SiteAdapters]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a federation file, and further files by name; gives the path of the first."""

    def write(text: str, name: str = "fed.dfm.yaml", files: dict[str, str] | None = None) -> Path:
        for file, content in {name: text, **(files or {})}.items():
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(content))
        return tmp_path / name

    return write


@pytest.fixture
def load(write: Write) -> Load:
    """Write a federation and load it."""

    def load(text: str, **options: object) -> FederationConfig:
        return FederationConfig.load(write(text, **options))

    return load


@pytest.fixture
def adapters(load: Load) -> Iterator[Adapters]:
    """The adapters of a site of a federation, whose module `lib.py` is given as text."""
    before = list(sys.path), set(sys.modules)

    def adapters(text: str, lib: str, site: str = "us") -> SiteAdapters:
        return SiteAdapters(load(text, files={"lib.py": lib}), site)

    yield adapters
    sys.path[:] = before[0]
    for name in set(sys.modules) - before[1]:
        if name.startswith("lib"):
            del sys.modules[name]
