"""Efficiency by granularity of tasks, a plot for each pattern: `python -m plots.granularity DATA PICTURE`."""

# mypy: disable-error-code="import-not-found"
# (matplotlib is only in the environment that runs this module)

from __future__ import annotations

from typing import Any

from plots.drawing import COLOURS, figure, read, save

INCHES = 1.9


def points(figures: dict[str, list[float]]) -> list[tuple[float, float]]:
    """(granularity in seconds, efficiency), of all repeats."""
    found = [
        (float(name.partition("@")[2]), value)
        for name, values in figures.items()
        if name.startswith("efficiency@")
        for value in values
    ]
    return sorted(found)


def main() -> None:
    data, picture = read()
    patterns = list(dict.fromkeys(sample["pattern"] for sample in data["samples"]))
    names = list(dict.fromkeys(sample["contestant"] for sample in data["samples"]))
    drawing, all_axes = figure(8, 1 + INCHES * len(patterns), rows=len(patterns))
    by_pattern: dict[str, Any] = dict(zip(patterns, all_axes if len(patterns) > 1 else [all_axes], strict=True))
    for sample in data["samples"]:
        found = points(sample["figures"])
        if found:
            colour = COLOURS[names.index(sample["contestant"]) % len(COLOURS)]
            axes = by_pattern[sample["pattern"]]
            axes.plot(*zip(*found, strict=True), color=colour, marker="o", markersize=3, label=sample["contestant"])
    for pattern, axes in by_pattern.items():
        axes.axhline(0.5, color="black", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_ylim(0, 1.15)
        axes.set_ylabel(f"{pattern}\nefficiency")
    by_pattern[patterns[0]].legend(frameon=False, ncols=4, loc="lower right")
    by_pattern[patterns[-1]].set_xlabel("granularity of tasks, seconds (elapsed x workers / tasks)")
    save(drawing, picture)


if __name__ == "__main__":
    main()
