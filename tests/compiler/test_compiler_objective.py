"""A user may choose what the sites are chosen for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dfmesh import Federation, Pipeline, Yield

FEDERATION = """
dfm: 1.0.0
operations:
  x.Make: {description: Makes much., parameters: {}, returns: builtins.bytes}
  x.Use: {description: Makes little of it., parameters: {made: {}}, returns: builtins.int}
sites:
  slow:
    interface:
      x.Make: {adapter: m.make, compute_cost: {fixed_size: 50000000}}
      x.Use: {adapter: m.use, compute_cost: {fixed_time: 100, fixed_size: 10}}
    send_cost: {fast: {fixed_time: 0.1, bandwidth: 100000000}}
  fast:
    interface:
      x.Use: {adapter: m.use, compute_cost: {fixed_time: 1, fixed_size: 10, price_per_second: 1000}}
"""


@pytest.mark.parametrize(("objective", "site"), [("time", "fast"), ("bytes", "slow"), ("money", "slow")])
def test_the_objective_decides(tmp_path: Path, objective: str, site: str) -> None:
    file = tmp_path / "x.dfm.yaml"
    file.write_text(FEDERATION)
    federation = Federation.load(file)
    ops = federation.ops
    with Pipeline() as p:
        used = ops.x.Use(made=ops.x.Make())
        Yield(used)
    compiled = federation.compile(p, homesite="slow", objective=objective)  # type: ignore[arg-type]
    assert compiled.node(used.node_id) == site
    assert compiled.placement.certificate.gap == 0
