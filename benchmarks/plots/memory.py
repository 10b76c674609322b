"""Memory of every process, and counters, over time: `python -m plots.memory SAMPLES PICTURE`."""

# mypy: disable-error-code="import-not-found"
# (matplotlib is only in the environment that runs this module)

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

from plots.drawing import COLOURS, figure, save

MEGABYTE = 1 << 20

Series = dict[str, list[tuple[float, float]]]


def read(path: Path) -> tuple[Series, Series, list[tuple[float, str]]]:
    """Resident memory by process, counters by name, and marks."""
    memory: Series = defaultdict(list)
    counts: Series = defaultdict(list)
    marks = []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            at = float(row["seconds"])
            if row["kind"] == "mark":
                marks.append((at, row["name"]))
            elif row["kind"] == "resident":
                memory[row["name"]].append((at, float(row["value"]) / MEGABYTE))
            elif row["kind"] == "count":
                counts[row["name"]].append((at, float(row["value"])))
    return memory, counts, marks


def main() -> None:
    memory, counts, marks = read(Path(sys.argv[1]))
    counts = {name: samples for name, samples in counts.items() if samples[-1][1]}
    drawing, axes = figure(8, 6 if counts else 4, rows=2 if counts else 1)
    top = axes[0] if counts else axes
    for colour, (name, samples) in zip(COLOURS, sorted(memory.items()), strict=False):
        top.plot(*zip(*samples, strict=True), color=colour, label=name)
    top.set_ylabel("resident memory, MB")
    top.set_ylim(bottom=0)
    top.legend(frameon=False, ncols=3)
    if counts:
        for colour, (name, samples) in zip(COLOURS, sorted(counts.items()), strict=False):
            axes[1].plot(*zip(*samples, strict=True), color=colour, label=name)
        axes[1].set_ylabel("items")
        axes[1].legend(frameon=False)
    for at, text in marks:
        top.axvline(at, color="black", linewidth=0.8, linestyle=":")
        top.annotate(text, (at, 0), xytext=(3, 3), textcoords="offset points", rotation=90, fontsize=7)
    (axes[1] if counts else axes).set_xlabel("seconds")
    save(drawing, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
