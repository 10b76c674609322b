"""The examples of docs/configuration.md work as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from dfmesh.config import FederationConfig
from dfmesh.engine.adapters import Adapter, AdapterKind, SiteAdapters

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files of the page."""
    for name, content in re.findall(r"```(?:yaml|python)\n# (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("name", ["first", "weather", "shared"])
def test_every_adapter_of_every_example_loads(examples, name):
    fed = FederationConfig.load(examples / f"{name}.dfm.yaml")
    for site in fed.sites.values():
        adapters = SiteAdapters(fed, site.name)
        for operation in site.interface:
            assert isinstance(adapters.find(operation, None), Adapter)
        for provider in site.providers.values():
            for operation in provider.interface:
                assert isinstance(adapters.find(operation, provider.name), Adapter)


def test_what_the_page_says_about_the_examples(examples, monkeypatch):
    first = FederationConfig.load(examples / "first.dfm.yaml")
    assert SiteAdapters(first, "library").find("text.Count").bind({"text": "to be or not", "least": 3})() == 1
    us = SiteAdapters(FederationConfig.load(examples / "weather.dfm.yaml"), "us")
    read = us.find("weather.Read")
    assert read.kind is AdapterKind.GENERATOR
    assert next(read.bind({"hour": 4})()) == {"hour": 4, "station": "us-0"}
    binning = us.find("weather.Bin")
    assert binning.streams_into("reports")
    assert binning.bind({"reports": [], "step": 0})() == {"region": "north", "step": 0, "cells": []}


def test_every_key_is_on_the_page():
    from dfmesh.config import arguments, federation, interface, sites

    text = PAGE.read_text()
    tables = [federation._SECTIONS, sites._SITE_KEYS, sites._CACHE_KEYS, sites._SEND_COST_KEYS, sites._VAULT_KEYS]
    tables += [interface._ADAPTER_KEYS, interface._COST_KEYS, dict.fromkeys(arguments._SOURCE_KEYS, 0)]
    for key in {key for table in tables for key in table}:
        assert key in text or key.replace("_", "-") in text, key
