"""Plots are made in an environment of their own, so that nobody needs matplotlib to measure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from environments import SetupError, environment_of

REQUIREMENTS = ("matplotlib==3.11.1",)
HERE = Path(__file__).resolve().parent


def plot(kind: str, data: Path, picture: Path) -> list[str]:
    """Draw a plot of measurements.

    Args:
        kind: A module of `plots`.
        data: JSON file that it reads.
        picture: File to write, without its ending: an SVG and a PNG are made.

    Returns:
        Names of the files written; none where matplotlib cannot be had, which is said on standard error.
    """
    try:
        python = environment_of("plot", REQUIREMENTS)
    except SetupError as error:
        print(f"no plot: {error}", file=sys.stderr)
        return []
    done = subprocess.run([str(python), "-m", f"plots.{kind}", str(data), str(picture)], cwd=HERE)
    if done.returncode != 0:
        print(f"no plot: plots.{kind} ended with code {done.returncode}", file=sys.stderr)
        return []
    return [f"{picture.name}.svg", f"{picture.name}.png"]
