"""A small federation and pipelines for the tests of the command line."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

FEDERATION = """
dfm: 1.0.0
info: {code-package: shop}
operations:
  shop.Numbers:
    parameters: {n: {type: integer}}
    required: [n]
  shop.Double:
    parameters: {x: {type: integer}}
    required: [x]
  shop.Fail:
    parameters: {x: {}}
    required: [x]
  shop.Wait:
    parameters: {seconds: {type: number}}
    required: [seconds]
  shop.Make:
    parameters: {kind: {type: string}}
    required: [kind]
sites:
  app: {}
  a:
    interface:
      "#/operations/shop.Numbers": {adapter: cli_shop.numbers}
      "#/operations/shop.Double": {adapter: cli_shop.double}
      "#/operations/shop.Wait": {adapter: cli_shop.wait}
      "#/operations/shop.Make": {adapter: cli_shop.make}
  b:
    interface:
      "#/operations/shop.Double": {adapter: cli_shop.double}
      "#/operations/shop.Fail": {adapter: cli_shop.fail}
"""

ADAPTERS = """
import asyncio

import numpy as np
import pyarrow as pa


def numbers(n):
    return list(range(n))


def double(x):
    return 2 * x


def fail(x):
    raise ValueError(f"no more {x}")


async def wait(seconds):
    await asyncio.sleep(seconds)
    return seconds


def make(kind):
    return {
        "png": b"\\x89PNG\\r\\n\\x1a\\nrest",
        "bytes": b"abc",
        "text": "hello",
        "table": pa.table({"x": [1, 2]}),
        "array": np.arange(3),
        "tuple": (1, {2: "two"}),
    }[kind]
"""

PIPELINE = """
from dfmesh import ForEach, Pipeline, PlaceParam, Yield


def build(federation):
    shop = federation.ops.shop
    with Pipeline(name="shopping") as pipeline:
        with ForEach(shop.Numbers(n=PlaceParam("n"))) as number:
            Yield(shop.Double(x=number, site="b"), place="doubled")
    return pipeline


def failing(federation):
    shop = federation.ops.shop
    with Pipeline() as pipeline:
        Yield(shop.Double(x=21), place="fine")
        Yield(shop.Fail(x="bread"), place="never")
    return pipeline


def faulty(federation):
    shop = federation.ops.shop
    with Pipeline() as pipeline:
        Yield(shop.Double(), place="doubled")
        shop.Double(x=1, site="nowhere")
    return pipeline


def waiting(federation):
    with Pipeline() as pipeline:
        Yield(1, place="at once")
        Yield(federation.ops.shop.Wait(seconds=60), place="late")
    return pipeline


def things(federation):
    with Pipeline() as pipeline:
        for kind in ("png", "bytes", "text", "table", "array", "tuple"):
            Yield(federation.ops.shop.Make(kind=kind, node_id=kind), place=kind)
    return pipeline


def raising(federation):
    return {}["key"]


number = 3
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory with `shop.dfm.yaml`, its adapters, and `shopping.py`."""
    (tmp_path / "shop.dfm.yaml").write_text(dedent(FEDERATION), "utf-8")
    (tmp_path / "cli_shop.py").write_text(ADAPTERS, "utf-8")
    (tmp_path / "shopping.py").write_text(PIPELINE, "utf-8")
    return tmp_path
