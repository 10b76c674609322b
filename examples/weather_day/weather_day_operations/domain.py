"""The part of the Earth that is mapped: Hawaii to Newfoundland, Mexico to Ellesmere Island."""

from __future__ import annotations

WEST, EAST = -180, -50
SOUTH, NORTH = 14, 84
"""Edges, in whole degrees."""

STEP = 0.5
"""Size of a cell of an analysed field, degrees."""
