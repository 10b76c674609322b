"""The weather day: bytes are predicted to a few percent, from one run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from dfmesh import Federation

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "weather_day"


def test_bytes_of_the_weather_day(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(EXAMPLE), *sys.path])
    spec = importlib.util.spec_from_file_location("predicted_weather_pipeline", EXAMPLE / "pipeline.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    federation = Federation.load(EXAMPLE / "weather.dfm.yaml")
    pipeline, day = module.build(federation), {"day": "1995-03-18"}
    with federation.session("local", homesite="app", measure=True) as session:
        job = session.submit(pipeline, day)
        job.result()
        measured = {report.site: report.bytes_sent for report in job.progress().sites}
    prediction = federation.predict(pipeline, day, homesite="app", measure=True)
    assert prediction.assumptions == ()
    assert prediction.measured == 1.0
    assert prediction.results == 4 * 24
    total = job.progress().bytes_between_sites
    assert prediction.bytes_between_sites == pytest.approx(total, rel=0.05)
    for link in prediction.links:
        assert link.size == pytest.approx(measured[link.source][link.destination], rel=0.1)
