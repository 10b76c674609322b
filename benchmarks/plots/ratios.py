"""How many times as good dfmesh is, figure by figure: `python -m plots.ratios DATA PICTURE`."""

# mypy: disable-error-code="import-not-found"
# (matplotlib is only in the environment that runs this module)

from __future__ import annotations

import statistics
from typing import Any

from plots.drawing import COLOURS, figure, read, save

SUBJECT = "dfmesh"
ROW_INCHES = 0.36


def medians(data: dict[str, Any]) -> dict[tuple[str, str, str], float]:
    """By (contestant, case, figure)."""
    return {
        (sample["contestant"], sample["case"], name): statistics.median(values)
        for sample in data["samples"]
        for name, values in sample["figures"].items()
    }


def ratio(row: dict[str, Any], found: dict[tuple[str, str, str], float], other: str) -> float | None:
    own, theirs = (found.get((name, row["case"], row["figure"])) for name in (SUBJECT, other))
    if not row["compared"] or not own or not theirs or own < 0 or theirs < 0:
        return None
    return own / theirs if row["more_is_better"] else theirs / own


def main() -> None:
    data, picture = read()
    found = medians(data)
    others = [name for name in dict.fromkeys(s["contestant"] for s in data["samples"]) if name != SUBJECT]
    points = [(row["label"], {name: ratio(row, found, name) for name in others}) for row in data["rows"]]
    points = [(label, ratios) for label, ratios in points if any(value is not None for value in ratios.values())]
    drawing, axes = figure(9, 1.6 + ROW_INCHES * len(points))
    for colour, name in zip(COLOURS, others, strict=False):
        placed = [(ratios[name], -index) for index, (_, ratios) in enumerate(points) if ratios[name] is not None]
        axes.scatter(*zip(*placed, strict=True) if placed else ([], []), color=colour, label=name, s=36, zorder=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks([-index for index in range(len(points))], [label for label, _ in points])
    axes.set_xlabel("how many times as good dfmesh is (right of the line: better)")
    axes.legend(loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=3, frameon=False)
    save(drawing, picture)


if __name__ == "__main__":
    main()
