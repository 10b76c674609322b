"""The example is not installed: its directory goes on the module path, as the sites do it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "weather_day"))
