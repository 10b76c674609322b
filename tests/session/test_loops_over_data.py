"""What a loop gives of the containers that people have their data in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy
import pandas
import pyarrow
import pytest
import xarray

from dfmesh import Federation, ForEach, Pipeline, PlaceParam, Session, Yield

DAY = datetime(2020, 1, 1)
FRAME = pandas.DataFrame(
    {"n": [1, 2], "day": [pandas.Timestamp(DAY), pandas.NaT], "long": pandas.to_timedelta([1, 2], "D")}
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    path: Path = tmp_path_factory.mktemp("loops") / "o.dfm.yaml"
    path.write_text("dfm: 1.0.0\noperations: {}\nsites: {a: {}}\n")
    with Federation.load(path).session("inproc", measure=False) as session:
        yield session


@pytest.mark.parametrize(
    ("sequence", "elements"),
    [
        ({"a": 1, "b": 2}, [("a", 1), ("b", 2)]),
        (pyarrow.table({"n": [1, 2], "k": ["a", "b"]}), [{"n": 1, "k": "a"}, {"n": 2, "k": "b"}]),
        (pyarrow.array([1, None]), [1, None]),
        (
            FRAME,
            [
                {"n": 1, "day": DAY, "long": timedelta(1)},
                {"n": 2, "day": None, "long": timedelta(2)},
            ],
        ),
        (pandas.DataFrame({"n": [1]}, index=["x"]), [{"n": 1}]),
        (FRAME["day"], [DAY, None]),
        (pandas.Series([1.5, 2.5]), [1.5, 2.5]),
        (numpy.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    ],
)
def test_elements(session: Session, sequence: Any, elements: list[Any]) -> None:
    with Pipeline() as pipeline, ForEach(PlaceParam("sequence")) as element:
        Yield(element)
    found = session.run(pipeline, {"sequence": sequence})["yield"]
    assert [item.tolist() if isinstance(item, numpy.ndarray) else item for item in found] == elements


def test_elements_of_xarray(session: Session) -> None:
    data = xarray.Dataset({"t": (("y", "x"), [[1, 2], [3, 4]])})
    with Pipeline() as pipeline, ForEach(PlaceParam("sequence")) as element:
        Yield(element)
    rows = session.run(pipeline, {"sequence": data["t"]})["yield"]
    assert [row.values.tolist() for row in rows] == [[1, 2], [3, 4]]
    pairs = session.run(pipeline, {"sequence": data})["yield"]
    assert [(name, array.dims) for name, array in pairs] == [("t", ("y", "x"))]
