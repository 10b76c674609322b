"""A child that an adapter forks and that comes back from the adapter ends; it does not go on as a copy of the site."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dfmesh import Federation, ForEach, Pipeline, Session, Yield

FEDERATION = """
dfm: 1.0.0
info: {code-package: coming_back}
operations:
  fork.Plain: {parameters: {how: {type: string}}}
  fork.Coroutine: {parameters: {how: {type: string}}}
  fork.Items: {parameters: {how: {type: string}}}
  fork.AsyncItems: {parameters: {how: {type: string}}}
sites:
  lab:
    interface:
      fork.Plain: coming_back.plain
      fork.Coroutine: coming_back.coroutine
      fork.Items: coming_back.items
      fork.AsyncItems: coming_back.async_items
  apart:
    interface:
      fork.Plain: {adapter: coming_back.plain, isolation: process}
      fork.Coroutine: {adapter: coming_back.coroutine, isolation: process}
      fork.Items: {adapter: coming_back.items, isolation: process}
      fork.AsyncItems: {adapter: coming_back.async_items, isolation: process}
"""

ADAPTERS = """
import asyncio, os, sys, types

def leave(how):
    if how == "exits":
        sys.exit(3)
    if how == "raises":
        raise ValueError("of a child")
    if how == "prints nowhere":
        sys.stdout = sys.stderr = None
        sys.exit("to nobody")

def plain(how):
    child = os.fork()
    if child == 0:
        return leave(how)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

@types.coroutine
def turn():
    yield

async def coroutine(how):
    child = os.fork()
    if child == 0:
        leave(how)
        await turn()
        return
    await asyncio.sleep(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def items(how):
    yield plain(how)

async def async_items(how):
    yield await coroutine(how)
"""


@pytest.fixture(scope="module", params=["local", "inproc"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("forks")
    (folder / "forks.dfm.yaml").write_text(FEDERATION)
    (folder / "coming_back.py").write_text(ADAPTERS)
    with Federation.load(folder / "forks.dfm.yaml").session(target=request.param, homesite="lab") as opened:
        yield opened
    sys.modules.pop("coming_back", None)


@pytest.mark.parametrize("site", ["lab", "apart"])
def test_a_child_that_comes_back_ends(session: Session, site: str) -> None:
    ops = session.federation.ops.fork
    endings = {"returns": 0, "exits": 3, "raises": 1, "prints nowhere": 1}
    with Pipeline() as pipeline:
        for how in endings:
            for operation in (ops.Plain, ops.Coroutine):
                Yield(operation(how=how, site=site), place=how)
        for operation in (ops.Items, ops.AsyncItems):
            with ForEach(operation(how="exits", site=site)) as code:
                Yield(code, place="exits")
    job = session.submit(pipeline)
    assert job.wait(timeout=60)
    found = job.result()
    assert {how: set(found[how]) for how in endings} == {how: {code} for how, code in endings.items()}
    assert len(found["exits"]) == 4
