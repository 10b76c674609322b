"""The weather day on the engine: the same bins as pooled data, little on the wire, one page."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline import build
from weather_day import FEDERATION, HOME, run_day
from weather_pooled import assert_same_bins, clean, pooled_rows

from dfmesh import Federation

LIMIT = 250_000
"""Bytes that may cross between sites."""


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_bins_are_those_of_pooled_data(target):
    federation = Federation.load(FEDERATION)
    with federation.session(target=target, homesite=HOME) as session:
        results = session.run(build(federation, with_bins=True), day="1995-03-18")
    rows = pooled_rows(FEDERATION.parent / "data")
    assert_same_bins(results["bins"], rows)
    kept, _ = clean(rows)
    assert sum(counts["kept"] for counts in results["quality"]) == len(kept)
    assert all(png.startswith(b"\x89PNG") for png in results["frame"])


@pytest.mark.parametrize("target", ["inproc", "local"])
def test_a_day_moves_little_and_leaves_maps_and_a_page(target, tmp_path: Path):
    seen = []
    report = run_day(tmp_path, target=target, on_progress=lambda report: seen.append(len(report.maps)))
    assert len(list(tmp_path.glob("map-*.png"))) == 24
    assert (tmp_path / "index.html").read_text("utf-8").count("<img") == 24
    assert seen == sorted(seen)
    assert set(range(25)) <= set(seen)  # maps came one by one
    assert sum(row.read for row in report.rows.values()) == 32_715
    assert 0 < report.bytes_moved < LIMIT < report.bytes_raw
    assert [site.site for site in report.placement if site.site != HOME] == list(report.rows)
