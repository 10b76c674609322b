"""The examples give the answers that were computed on all data in one process, and keep their sites' rules."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dfmesh import Federation, PipelineError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TARGETS = ("inproc", "local")


def example(name: str) -> tuple[Federation, dict[str, Any]]:
    """Give the federation of an example, and what its pipeline.py defines."""
    (file,) = (EXAMPLES / name).glob("*.dfm.yaml")
    return Federation.load(file), runpy.run_path(str(EXAMPLES / name / "pipeline.py"))


@pytest.mark.parametrize("target", TARGETS)
def test_four_hospitals_answer_as_one(target: str) -> None:
    federation, script = example("hospital_trial")
    with federation.session(target, measure=False) as session:
        effect = session.run(script["build"](federation)).one("effect")
    assert effect["treated_ill"] == 27 / 295
    assert effect["placebo_ill"] == 52 / 307
    assert round(effect["odds_ratio"], 2) == 0.50
    assert round(effect["p_value"], 4) == 0.0053


def test_what_few_patients_say_goes_to_one_neighbour_only() -> None:
    federation, script = example("hospital_trial")
    explanation = script["build"](federation).explain(federation)
    assert {
        (row.operation, row.site) for row in explanation.rows if row.operation in ("trial.Merge", "trial.Effect")
    } == {
        ("trial.Merge", "uk"),
        ("trial.Merge", "office"),
        ("trial.Effect", "office"),
    }
    counts = [row for row in explanation.rows if row.operation == "trial.Counts"]
    assert [(row.site, row.why) for row in counts] == [
        (hospital, "rules of residency leave no other") for hospital in ("um", "iu", "uk", "case")
    ]
    assert [link.destination for link in explanation.links if link.source == "case"] == ["uk"]


def test_who_asks_for_patients_is_told_the_rule() -> None:
    federation, script = example("hospital_trial")
    with pytest.raises(PipelineError) as refused:
        federation.compile(script["peek"](federation))
    places = [fault.location for fault in refused.value.faults if fault.location is not None]
    rule = next(place for place in places if place.file == str(federation.config.path))
    line = Path(rule.file).read_text(encoding="utf-8").splitlines()[rule.line - 1]
    assert "residency: []" in line


@pytest.mark.parametrize("target", TARGETS)
def test_six_services_of_airports_answer_as_one(target: str) -> None:
    federation, script = example("airport_delays")
    with federation.session(target, measure=False) as session:
        results = session.run(script["build"](federation))
    means = {name: round(minutes, 2) for name, minutes in results.one("means").items()}
    assert means == {"below 2 miles": 30.24, "2 to 5 miles": 21.27, "5 miles and more": 11.95}
    months = [month for airport in script["AIRPORTS"] for month in results[airport]]
    assert len(months) == 36
    assert sum(flights for month in months for flights, _ in month.values()) == 326_993


def test_months_are_told_one_by_one() -> None:
    script = EXAMPLES / "airport_delays" / "watch.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    *months, low, middle, clear = done.stdout.splitlines()
    assert len(months) == 36
    assert "ewr, month 1: 9,633 flights" in months
    assert (low, middle) == ("below 2 miles: 30.24 minutes late", "2 to 5 miles: 21.27 minutes late")
    assert clear == "5 miles and more: 11.95 minutes late"


@pytest.mark.parametrize("readme", sorted(EXAMPLES.glob("*/README.md")), ids=lambda path: path.parent.name)
def test_the_files_that_a_readme_names_are_there(readme: Path) -> None:
    words = readme.read_text(encoding="utf-8").split()
    named = [word.partition(":")[0] for word in words if word.startswith("examples/")]
    assert named
    assert [name for name in named if not (EXAMPLES.parent / name).is_file()] == []
