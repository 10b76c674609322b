"""Random pipelines as JSON documents, and compiled in other processes: nothing is lost, nothing depends on chance."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Pipeline

from .building import build, parameter_sets
from .conftest import CALC, CALC_FILE, HOMESITE, canonical, compiled_for, scaled, simulated
from .generator import Options, random_pipeline

WHOLE = Options(branches=True, failures=True, whole=True)

COMPILE = f"""
import hashlib, sys
sys.path[:0] = [{str(Path(__file__).parents[1])!r}, {str(CALC)!r}]
from conformance.building import build
from conformance.generator import Options, random_pipeline
from dfmesh.compiler import compile_pipeline
from dfmesh.config import FederationConfig
config = FederationConfig.load({str(CALC_FILE)!r})
for seed in range({scaled(300)}):
    pipeline = build(random_pipeline(seed, Options(branches=True, failures=True, whole=True)), config.ops)
    compiled = compile_pipeline(pipeline, config, {HOMESITE!r})
    nets = getattr(compiled, "nets", compiled)
    whole = b"".join(site.encode() + nets[site].to_bytes() for site in nets)
    print(seed, hashlib.sha256(whole).hexdigest())
"""


def compiling(hash_seed: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", COMPILE], env=environment, stdout=pipe, stderr=pipe, text=True)


def compiled(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=250)
    assert process.returncode == 0, errors
    return out


@pytest.mark.timeout(300)
def test_nets_do_not_depend_on_the_hash_seed() -> None:
    start = time.perf_counter()
    first, *others = [compiled(process) for process in [compiling(seed) for seed in ("1", "2")]]
    assert len(first.splitlines()) == scaled(300)
    assert others == [first]
    took = time.perf_counter() - start
    print(f"\ncompiled with two hash seeds: seeds 0 to {scaled(300) - 1}, {took:.1f} s", file=sys.__stderr__)


@pytest.mark.parametrize("number", range(4))
def test_documents_hold_everything(number: int, ops: Any, config: Any) -> None:
    count = scaled(300)
    for seed in range(number * count // 4, (number + 1) * count // 4):
        description = random_pipeline(seed, WHOLE)
        pipeline = build(description, ops)
        text = pipeline.model_dump_json()
        again = Pipeline.load(text)
        assert again.model_dump_json() == text, f"seed {seed}"
        sets = parameter_sets(description, pipeline)
        found, expected = (simulated(compiled_for(each, config), config, sets, 0) for each in (again, pipeline))
        assert canonical(found.results) == canonical(expected.results), f"seed {seed}"
        assert found.origins() == expected.origins(), f"seed {seed}"
