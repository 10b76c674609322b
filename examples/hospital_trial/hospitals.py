"""What stands behind the operations of the trial: plain Python of the hospitals and of the office."""

from __future__ import annotations

import csv
from math import comb
from pathlib import Path

HERE = Path(__file__).parent


def patients(file: str) -> list[dict[str, str]]:
    with (HERE / file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def counts(patients: list[dict[str, str]]) -> dict[str, float]:
    """Count, and give this hospital's part of the two sums of the Mantel-Haenszel odds ratio."""

    def number(rx: str, outcome: str) -> int:
        return sum(patient["rx"] == rx and patient["outcome"] == outcome for patient in patients)

    ill, well = number("1_indomethacin", "1_yes"), number("1_indomethacin", "0_no")
    placebo_ill, placebo_well = number("0_placebo", "1_yes"), number("0_placebo", "0_no")
    total = len(patients)
    return {
        "treated": ill + well,
        "treated_ill": ill,
        "placebo": placebo_ill + placebo_well,
        "placebo_ill": placebo_ill,
        "upper": ill * placebo_well / total,
        "lower": well * placebo_ill / total,
    }


def merge(counts: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(part[name] for part in counts) for name in counts[0]}


def effect(counts: dict[str, float]) -> dict[str, float]:
    rates = {
        "treated_ill": counts["treated_ill"] / counts["treated"],
        "placebo_ill": counts["placebo_ill"] / counts["placebo"],
    }
    p_value = fisher(*(int(counts[name]) for name in ("treated_ill", "treated", "placebo_ill", "placebo")))
    return {**rates, "odds_ratio": counts["upper"] / counts["lower"], "p_value": p_value}


def fisher(treated_ill: int, treated: int, placebo_ill: int, placebo: int) -> float:
    """Fisher's exact test, two-sided: how likely are tables that are no likelier than this one (R. A. Fisher, 1935)."""
    ill = treated_ill + placebo_ill
    ways = [
        comb(treated, number) * comb(placebo, ill - number)
        for number in range(max(0, ill - placebo), min(ill, treated) + 1)
    ]
    seen = comb(treated, treated_ill) * comb(placebo, placebo_ill)
    return sum(way for way in ways if way <= seen) / sum(ways)
