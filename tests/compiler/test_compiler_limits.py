"""Names that are no Unicode and numbers that no message can hold are faults with the user's line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fault_cases import FEDERATION

from dfmesh import Choose, FederationConfig, ForEach, Pipeline, PipelineError, PlaceParam, TryFromCache, Yield
from dfmesh.compiler import compile_pipeline

LONE = "a\ud800"
HUGE = 10**30


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> FederationConfig:
    path = tmp_path_factory.mktemp("federation") / "weather.dfm.yaml"
    path.write_text(json.dumps(FEDERATION))
    return FederationConfig.load(path)


def _loop(window: int) -> None:
    with ForEach([1, 2], window=window) as element:
        Yield(element)


def _cached(ttl: Any) -> None:
    with TryFromCache(key="k", ttl=ttl) as cached:
        cached.cache(1)
    Yield(cached)


CASES: dict[str, tuple[Callable[[Any], object], str]] = {
    "place": (lambda w: Yield(1, place=LONE), r"place='a\ud800' is no name"),
    "parameter": (lambda w: Yield(PlaceParam(LONE)), r"'a\ud800' cannot be the name of a parameter"),
    "parameter inside": (lambda w: Yield({"x": [PlaceParam(LONE)]}), r"'a\ud800' cannot be the name of a parameter"),
    "item": (lambda w: Yield(PlaceParam("v")[LONE]), r"selects 'a\ud800'"),
    "field": (lambda w: Yield([PlaceParam("v").field(LONE)]), r"selects 'a\ud800'"),
    "item of a condition": (lambda w: Yield(Choose(PlaceParam("v")[LONE] == 3, 1, 2)), r"selects 'a\ud800'"),
    "site": (lambda w: Yield(w.Read(hour=1, site=LONE)), r"no site 'a\ud800'"),
    "provider": (lambda w: Yield(w.Read(hour=1, provider=LONE)), r"provider 'a\ud800'"),
    "argument": (lambda w: Yield(w.Read(hour=1, **{LONE: 1})), r"no parameter 'a\ud800'"),
    "window": (lambda w: _loop(HUGE), "ForEach: window=1000000000000000000000000000000"),
    "retries": (lambda w: Yield(w.Read(hour=1, retries=HUGE)), "retries=1000000000000000000000000000000"),
    "timeout": (lambda w: Yield(w.Read(hour=1, timeout=HUGE)), "timeout=1000000000000000000000000000000"),
    "ttl": (lambda w: _cached(HUGE), "ttl=1000000000000000000000000000000"),
    "very long": (lambda w: Yield(w.Read(hour=1, timeout=10**10_000)), "timeout=a huge number"),
    "index": (lambda w: Yield(PlaceParam("v")[-HUGE]), "selects [-1000000000000000000000000000000]"),
}


@pytest.mark.parametrize("case", CASES)
def test_fault_with_the_users_line(case: str, weather: FederationConfig) -> None:
    build, message = CASES[case]
    with Pipeline() as pipeline:
        build(weather.ops.weather)
    with pytest.raises(PipelineError) as raised:
        compile_pipeline(pipeline, weather, "app")
    (fault,) = raised.value.faults
    assert message in fault.message
    assert fault.location is not None
    assert fault.location.file == __file__
    str(raised.value).encode()


def test_the_name_of_a_pipeline(weather: FederationConfig) -> None:
    with Pipeline(name=LONE) as pipeline:
        Yield(1)
    with pytest.raises(PipelineError, match="name=") as raised:
        compile_pipeline(pipeline, weather, "app")
    (fault,) = raised.value.faults
    assert fault.location is not None
    assert fault.location.file == __file__


def test_a_script_whose_name_is_no_unicode(weather: FederationConfig) -> None:
    code = "with Pipeline() as pipeline:\n    Yield(1)\n"
    names: dict[str, Any] = {"Pipeline": Pipeline, "Yield": Yield}
    exec(compile(code, "caf\udce9.py", "exec"), names)
    assert b"py:2" in b"".join(compile_pipeline(names["pipeline"], weather, "app").encoded_nets.values())
