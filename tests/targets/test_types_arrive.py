"""Instances of registered classes reach adapters that nobody has called before; those of others reach nobody."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, ForEach, JobError, Pipeline, PlaceParam, Session, Yield

FOLDER = Path(__file__).resolve().parents[1] / "federations" / "types"
LIMIT = 60.0


@pytest.fixture(scope="module")
def stations() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        import types_stations

        yield types_stations
    for name in ("types_stations", "types_operations", "types_blank"):
        sys.modules.pop(name, None)


@pytest.fixture(params=["local", "inproc"])
def session(request: pytest.FixtureRequest, stations: Any) -> Iterator[Session]:
    with Federation.load(FOLDER / "types.dfm.yaml").session(target=request.param, homesite="app") as opened:
        yield opened


@pytest.mark.parametrize("site", ["far", "apart"])
@pytest.mark.parametrize("how", ["constant", "parameter", "loop"])
def test_the_first_call_can_take_one(session: Session, stations: Any, how: str, site: str) -> None:
    name = session.federation.ops.types.Name
    oslo = stations.Station("Oslo")
    with Pipeline() as pipeline:
        if how == "loop":
            with ForEach(PlaceParam("stations")) as station:
                Yield(name(station=station, site=site))
        else:
            Yield(name(station=oslo if how == "constant" else PlaceParam("station"), site=site))
    given = {"parameter": {"station": oslo}, "loop": {"stations": [oslo] * 3}}.get(how, {})
    job = session.submit(pipeline, given)
    assert job.wait(LIMIT)
    assert job.result()["yield"] == ["Oslo"] * (3 if how == "loop" else 1)


def test_what_an_adapter_made_can_go_elsewhere_and_back(session: Session, stations: Any) -> None:
    types = session.federation.ops.types
    with Pipeline() as pipeline:
        Yield(types.Name(station=types.Make(what="Bergen", site="far"), site="apart"))
        Yield(types.Make(what="Bergen", site="far"), place="itself")
    result = session.run(pipeline)
    assert result["yield"] == ["Bergen"]
    assert result["itself"] == [stations.Station("Bergen")]


@pytest.mark.parametrize("operation", ["Each", "EachAsync"])
def test_a_generator_in_its_own_process_can_give_some(session: Session, stations: Any, operation: str) -> None:
    types = session.federation.ops.types
    with Pipeline() as pipeline:
        made = types[operation](names=["Oslo", "Bergen"], site="apart")
        Yield(made)
        with ForEach(made) as station:
            Yield(types.Name(station=station, site="apart"), place="names")
    result = session.run(pipeline)
    assert result["yield"] == [stations.Station("Oslo"), stations.Station("Bergen")]
    assert result["names"] == ["Oslo", "Bergen"]


def test_one_that_is_not_registered_is_refused_each_time_on_each_target(session: Session) -> None:
    with Pipeline() as pipeline:
        Yield(session.federation.ops.types.Make(what="private", site="far"))
    for _ in range(2):
        with pytest.raises(
            JobError, match=r"test_types_arrive.py:\d+: types.Make .* at site 'far'.*Private is not reg"
        ):
            session.run(pipeline)


def test_a_site_that_does_not_know_a_class_says_so(stations: Any) -> None:
    with Federation.load(FOLDER / "types.dfm.yaml").session(homesite="app") as session:
        with Pipeline() as pipeline:
            Yield(session.federation.ops.types.Same(value=PlaceParam("station"), site="blank"))
        expected = r"test_types_arrive.py:\d+: types.Same .*types_stations.Station.* is registered at site 'blank'"
        with pytest.raises(JobError, match=expected):
            session.run(pipeline, station=stations.Station("Oslo"))
