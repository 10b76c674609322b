"""Tests must not depend on what earlier runs have cost, nor leave anything in the user's cache."""

from __future__ import annotations

import os

os.environ["DFMESH_MEASURE"] = "0"
