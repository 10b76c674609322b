"""The keys that say where adapters and sites run, and which version of an operation there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dfmesh.config import FederationConfig
from dfmesh.errors import ConfigError

FILE = """
dfm: 1.0.0
operations:
  text.Count: {{version: {version}}}
sites:
  us:
    python: python3.12
    interface: {{text.Count: {{adapter: words.count, isolation: {isolation}}}}}
"""


def load(folder: Path, version: str = "2", isolation: str = "process") -> FederationConfig:
    file = folder / "text.dfm.yaml"
    file.write_text(FILE.format(version=version, isolation=isolation))
    return FederationConfig.load(file)


def test_what_they_say(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config.sites["us"].python == "python3.12"
    assert config.adapter("us", "text.Count").isolation == "process"
    assert load(tmp_path, isolation="none").adapter("us", "text.Count").isolation == "none"


@pytest.mark.parametrize(("written", "version"), [("2", "2"), ('"2"', "2"), ("1.10", "1.10"), ("2.0.1", "2.0.1")])
def test_a_version_is_a_text_or_a_number(tmp_path: Path, written: str, version: str) -> None:
    assert load(tmp_path, version=written).operations["text.Count"].version == version


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"isolation: expected none or process, found the text 'thread'"):
        load(tmp_path, isolation="thread")
    with pytest.raises(ConfigError, match="version: expected text"):
        load(tmp_path, version="[1]")
