"""Tests must not depend on what earlier runs have cost, nor leave anything in the user's cache."""

from __future__ import annotations

import os
import signal

os.environ["DFMESH_MEASURE"] = "0"

# A shell that starts the tests in the background has SIGINT ignored, and every process started here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
