"""What all plots share: where they read and write, and how they look."""

# mypy: disable-error-code="import-not-found"
# (matplotlib is only in the environment that runs this module)

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

# Okabe and Ito, Color Universal Design (2008): told apart by the colour-blind.
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#999999")


def read() -> tuple[Any, Path]:
    """The data, and the picture's name without ending, from the command line."""
    return json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])


def figure(width: float, height: float, rows: int = 1) -> tuple[Any, Any]:
    """A figure of so many inches with one plot, or several below one another."""
    pyplot.rcParams["svg.hashsalt"] = "dfmesh"  # the same data gives the same file
    drawing, axes = pyplot.subplots(rows, figsize=(width, height), layout="constrained", sharex=rows > 1)
    for one in axes if rows > 1 else [axes]:
        one.grid(visible=True, color="#dddddd", linewidth=0.6)
        one.spines[["top", "right"]].set_visible(False)
    return drawing, axes


def save(drawing: Any, picture: Path) -> None:
    """Write SVG and PNG."""
    drawing.savefig(picture.with_name(f"{picture.name}.svg"), metadata={"Date": None})
    drawing.savefig(picture.with_name(f"{picture.name}.png"), dpi=120)
