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

from dfmesh import Federation, ForEach, If, JobCancelledError, Pipeline, PlaceParam, Session, Yield

DAY = datetime(2020, 1, 1)
FRAME = pandas.DataFrame(
    {"n": [1, 2], "day": [pandas.Timestamp(DAY), pandas.NaT], "long": pandas.to_timedelta([1, 2], "D")}
)
DAYS = pyarrow.array([DAY, None])


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
        (set("hgfedcba"), list("abcdefgh")),
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


@pytest.mark.parametrize("column", [FRAME["n"], FRAME["day"], FRAME["long"], pyarrow.array([1, None]), DAYS])
def test_a_selector_gives_what_a_loop_gives(session: Session, column: Any) -> None:
    """Also of a table: a time, and what is missing, is Python's in either way."""
    table = column.to_frame("x") if hasattr(column, "to_frame") else pyarrow.table({"x": column})
    with Pipeline() as pipeline:
        with ForEach(PlaceParam("column")) as cell:
            Yield([cell, cell == DAY], place="loop")
        for row in range(2):
            selected = PlaceParam("column")[row]
            Yield([selected, selected == DAY], place="selector")
            Yield(PlaceParam("table")["x"][row], place="of a table")
    found = session.run(pipeline, column=column, table=table)
    assert found["loop"] == found["selector"]
    assert [type(cell) for cell, _ in found["selector"]] == [type(cell) for cell, _ in found["loop"]]
    assert found["of a table"] == [cell for cell, _ in found["loop"]]


def test_elements_of_xarray(session: Session) -> None:
    data = xarray.Dataset({"t": (("y", "x"), [[1, 2], [3, 4]])})
    with Pipeline() as pipeline, ForEach(PlaceParam("sequence")) as element:
        Yield(element)
    rows = session.run(pipeline, {"sequence": data["t"]})["yield"]
    assert [row.values.tolist() for row in rows] == [[1, 2], [3, 4]]
    pairs = session.run(pipeline, {"sequence": data})["yield"]
    assert [(name, array.dims) for name, array in pairs] == [("t", ("y", "x"))]


def test_a_loop_without_calls_holds_nobody_up(session: Session) -> None:
    with Pipeline() as endless, ForEach(range(10**12)) as number, If(number >= 0):
        Yield(number)
    with Pipeline() as short:
        Yield("short")
    job = session.submit(endless)
    assert next(iter(job)).value == 0
    assert session.run(short)["yield"] == ["short"]
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.result(60)
