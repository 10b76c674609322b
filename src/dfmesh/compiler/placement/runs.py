"""Runs of equal numbers in a list."""

from __future__ import annotations

import numpy as np

from dfmesh.compiler.placement.problem import Indices


def beginnings(names: Indices) -> Indices:
    """Give the positions at which runs of equal numbers begin; none if there are no numbers."""
    begins = np.append(np.True_, names[1:] != names[:-1])[: len(names)]
    return np.flatnonzero(begins)


__all__ = ["beginnings"]
