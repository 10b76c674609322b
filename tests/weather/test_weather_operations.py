"""The operations of the weather day one by one."""

from __future__ import annotations

import io
from datetime import datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from weather_day_operations import analysis, basemap, bins, coast, palette, quality, render, reports
from weather_day_operations.reports import MEASURED

HOUR = datetime(1995, 3, 18, 6)


def table(*rows: dict) -> pa.Table:
    """Reports; what a row does not say is missing, but for a place in Kansas."""
    plain = {"time": HOUR, "station": "AAA", "latitude": 38.5, "longitude": -98.5, **dict.fromkeys(MEASURED)}
    floats = ("latitude", "longitude", *MEASURED)
    schema = pa.schema([("time", pa.timestamp("ms")), ("station", pa.string()), *((f, pa.float32()) for f in floats)])
    return pa.Table.from_pylist([{**plain, **row} for row in rows], schema)


def grid_of(latitude: list[float], longitude: list[float], temperature: list[float]) -> dict:
    cells = bins.cell_numbers(np.array(latitude), np.array(longitude))
    used, counts, sums = bins.add_up(cells, np.array(temperature))
    return {"reports": len(cells), "variables": {"t": {"cells": used, "counts": counts, "sums": sums}}}


def test_hours():
    hours = reports.hours_of_day("1995-03-18")
    assert (len(hours), hours[0], hours[-1]) == (24, datetime(1995, 3, 18), datetime(1995, 3, 18, 23))


def test_read_gives_the_reports_of_the_hour_only():
    found = reports.ReadReports().body(HOUR, "data/mx.parquet")
    assert found.num_rows > 0
    assert set(found["time"].to_pylist()) == {HOUR}
    assert "elevation" not in found.column_names


@pytest.mark.parametrize(("latitude", "longitude"), [(48.0, -790.2), (91.0, 0.0), (None, 0.0), (0.0, None)])
def test_a_report_from_nowhere_is_dropped(latitude, longitude):
    checked = quality.check_reports(table({"latitude": latitude, "longitude": longitude}, {}), "us")
    assert checked["counts"]["rejected"] == {"position": 1}
    assert checked["reports"].num_rows == 1


@pytest.mark.parametrize("name", MEASURED)
def test_limits_belong_to_what_is_possible(name):
    low, high = quality.LIMITS[name]
    rows = [{"station": str(n), name: value} for n, value in enumerate((low - 1, low, high, high + 1))]
    checked = quality.check_reports(table(*rows), "us")
    assert checked["reports"][name].to_pylist() == [None, low, high, None]
    assert checked["counts"]["rejected"] == {name: 2}


def test_the_most_complete_report_stays_then_the_first():
    rows = [
        {"station": "A", "air_temperature": 1},
        {"station": "A", "air_temperature": 2, "visibility": 5},
        {"station": "A", "air_temperature": 3, "visibility": 5},
        {"station": "A", "air_temperature": 4, "visibility": 999, "wind_speed": 999},
        {"station": "B", "air_temperature": 5},
        {"station": "A", "air_temperature": 6, "time": datetime(1995, 3, 18, 7)},
    ]
    checked = quality.check_reports(table(*rows), "us")
    assert checked["reports"]["air_temperature"].to_pylist() == [2, 5, 6]
    counts = checked["counts"]
    assert (counts["site"], counts["read"], counts["kept"]) == ("us", 6, 3)
    assert counts["rejected"] == {"repeated": 3, "visibility": 1, "wind_speed": 1}
    assert counts["bytes"] > 0


def test_no_report_at_all():
    checked = quality.check_reports(table(), "mx")
    part = bins.bin_reports(checked["reports"])
    assert checked["counts"]["kept"] == 0
    merged = bins.merge_bins([part, part])
    assert len(merged["variables"]["air_temperature"]["cells"]) == 0
    assert np.isnan(analysis.analyse(merged, "air_temperature", 250, 90, 350)["values"]).all()


@pytest.mark.parametrize(
    ("latitude", "longitude", "cell"),
    [(-90, -180, 0), (90, 180, 64799), (90, -180, 64440), (0, 0, 90 * 360 + 180), (-0.1, -0.1, 89 * 360 + 179)],
)
def test_cell_numbers(latitude, longitude, cell):
    assert bins.cell_numbers(np.array([latitude]), np.array([longitude])).tolist() == [cell]


def test_packing_loses_nothing():
    random = np.random.default_rng(1)
    cells = np.sort(random.choice(64800, 500, replace=False)).astype("u2")
    counts = random.integers(1, 65536, 500)
    sums = random.normal(0, 100, 500).astype("f4")
    unpacked = bins.unpack(bins.pack(cells, counts, sums))
    for before, after in zip((cells, counts, sums), unpacked, strict=True):
        np.testing.assert_array_equal(before, after)


def test_too_many_values_for_a_cell():
    with pytest.raises(ValueError, match=r"65,535"):
        bins.pack(np.array([1], "u2"), np.array([70000]), np.array([1.0]))


def test_merge_adds():
    parts = [
        bins.bin_reports(table({"air_temperature": 1}, {"air_temperature": 2, "latitude": 50.5}), ["air_temperature"]),
        bins.bin_reports(table({"air_temperature": 10}, {}), ["air_temperature"]),
    ]
    merged = bins.merge_bins(parts)
    assert merged["reports"] == 4
    assert merged["variables"]["air_temperature"]["counts"].tolist() == [2, 1]
    assert merged["variables"]["air_temperature"]["sums"].tolist() == [11, 2]


def at(field: dict, latitude: float, longitude: float) -> float:
    row = np.abs(field["latitude"] - latitude).argmin()
    return field["values"][row, np.abs(field["longitude"] - longitude).argmin()]


def test_analysis_of_a_constant_is_that_constant_near_data_and_nothing_elsewhere():
    field = analysis.analyse(grid_of([40.5, 60.5], [-100.5, -120.5], [7, 7]), "t", 250, 90, 350)
    assert at(field, 40.5, -100.5) == pytest.approx(7, abs=1e-3)
    assert at(field, 42.5, -100.5) == pytest.approx(7, abs=1e-3)  # 222 km
    assert np.isnan(at(field, 44.5, -100.5))  # 445 km
    assert at(field, 60.5, -115.5) == pytest.approx(7, abs=1e-3)  # 274 km: degrees are short up there
    assert np.isnan(at(field, 40.5, -105.5))  # 423 km


def test_analysis_keeps_a_front():
    longitude = np.tile(np.arange(-119.5, -80), 10)
    latitude = np.repeat(np.arange(35.5, 45), 40)
    field = analysis.analyse(grid_of(latitude, longitude, np.where(longitude < -100, -10, 20)), "t", 250, 90, 350)
    assert at(field, 40.5, -110) == pytest.approx(-10, abs=0.5)
    assert at(field, 40.5, -90) == pytest.approx(20, abs=0.5)
    assert at(field, 40.5, -98) - at(field, 40.5, -102) > 22


def test_analysis_weighs_by_count():
    field = analysis.analyse(grid_of([40.5, 40.5, 40.5], [-100.5, -100.5, -100.5], [0, 0, 3]), "t", 250, 90, 350)
    assert at(field, 40.5, -100.5) == pytest.approx(1, abs=0.05)


def pixel(png: bytes, latitude: float, longitude: float) -> tuple[int, int, int]:
    x, y = basemap.to_pixels(longitude, latitude)
    return Image.open(io.BytesIO(png)).convert("RGB").getpixel((int(x) + 9, int(y) + 9))


def test_north_is_up_and_colours_are_those_of_the_legend():
    field = analysis.analyse(grid_of([65.5, 35.5], [-110.5, -110.5], [-25.5, 25.5]), "t", 250, 90, 350)
    upside_down = {**field, "values": field["values"][::-1], "latitude": field["latitude"][::-1]}
    nothing = {**field, "values": np.full_like(field["values"], np.nan)}
    for given in (field, upside_down):
        png = render.render(given, nothing, HOUR)
        for latitude, degrees in ((65.5, -25.5), (35.5, 25.5)):
            colour = palette.colours()[palette.band_of(np.array([degrees]))[0]].astype(int)
            assert np.abs(colour - pixel(png, latitude, -110.5)).max() < 12
    assert basemap.to_pixels(-100, 60)[1] < basemap.to_pixels(-100, 40)[1]


def test_colours_diverge_around_freezing():
    colours = palette.colours().astype(int)
    grey = colours @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(grey[:20]) > 0).all()
    assert (np.diff(grey[20:]) < 0).all()
    assert (colours[:19, 2] > colours[:19, 0]).all()
    assert (colours[21:, 0] > colours[21:, 2]).all()
    assert palette.band_of(np.array([-99, -0.1, 0, 99])).tolist() == [0, 19, 20, 39]


def test_coast_lines_close_and_do_not_jump():
    outlines = coast.land_polygons()
    assert len(outlines) > 100
    for line in outlines:
        assert max(abs(a[0] - b[0]) for a, b in pairwise(line)) < 180
    hawaii = [line for line in outlines if all(-157 < x < -154 and 18 < y < 21 for x, y in line)]
    assert len(hawaii) == 1
    assert hawaii[0][0] == pytest.approx(hawaii[0][-1])
