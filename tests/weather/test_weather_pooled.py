"""What the federation computes is what one process computes from all the data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from weather_day_operations import bins, quality, reports
from weather_pooled import assert_same_bins, clean, pooled_rows

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "weather_day"


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return pooled_rows(EXAMPLE / "data")


@pytest.fixture(scope="module")
def by_calls() -> dict[str, Any]:
    """The operations called one after another: grids by hour, counts, bytes of bins that a federation would send."""
    readers = {site: reports.ReadReports() for site in ("us", "ca", "mx")}
    grids, dropped, sent = [], Counter(), 0
    for hour in reports.hours_of_day("1995-03-18"):
        parts = []
        for site, reader in readers.items():
            checked = quality.check_reports(reader.body(hour, f"data/{site}.parquet"), site)
            dropped.update(checked["counts"]["rejected"])
            parts.append(bins.bin_reports(checked["reports"]))
            sent += sum(len(packed) for packed in parts[-1]["variables"].values())
        grids.append(bins.merge_bins(parts))
    return {"grids": grids, "dropped": dropped, "sent": sent}


def test_bins_are_those_of_pooled_data(by_calls, rows):
    assert_same_bins(by_calls["grids"], rows)


def test_what_was_dropped_is_what_pooled_rules_drop(by_calls, rows):
    kept, dropped = clean(rows)
    assert dict(by_calls["dropped"]) == dropped
    assert sum(grid["reports"] for grid in by_calls["grids"]) == len(kept)


def test_faults_named_in_the_notice_are_gone(rows):
    kept, dropped = clean(rows)
    assert dropped["position"] == 23  # the station at -790.2 degrees
    assert max(row["dew_point_temperature"] or 0 for row in kept) < 35
    assert dropped["wind_from_direction"] == 16
    assert dropped["air_pressure_at_mean_sea_level"] == 3


def test_no_station_belongs_to_two_services(rows):
    """Otherwise pooled data would drop repeats that no single service can see."""
    owners: dict[str, set[int]] = {}
    ends = (24199, 24199 + 8050, len(rows))
    for number, row in enumerate(rows):
        owners.setdefault(row["station"], set()).add(sum(number >= end for end in ends))
    assert all(len(owner) == 1 for owner in owners.values())


def test_bins_leave_half_of_the_limit_to_the_heads_of_messages(by_calls):
    assert by_calls["sent"] < 125_000
