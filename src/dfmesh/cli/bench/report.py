"""What `dfmesh bench` shows: a table for people, or JSON."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfmesh.cli.bench.cases import FLOOR, MESH, ROWS, Found
from dfmesh.cli.bench.figures import MISSING, Row, write_ratio

if TYPE_CHECKING:
    from rich.table import Table

EXPLANATION = (
    "The floor is what two bare processes do with a Unix socket and msgspec, one message at a time; for arrays, one "
    "copy into memory that was faulted in before. Ratios above 1 x: dfmesh is better. Compare within a run only."
)


def machine() -> dict[str, Any]:
    """Say what the figures depend on besides the code."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "load": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text("utf-8").splitlines() if cpu_info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def as_data(found: Found, described: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Give everything for machines.

    Args:
        found: What was measured.
        described: The machine, before the run.
        seconds: How long the run took.
    """
    return {"machine": described, "seconds": round(seconds, 1), "rows": [_row_data(row, found) for row in ROWS]}


def _row_data(row: Row, found: Found) -> dict[str, Any]:
    own, floor = found.spread(MESH, row), found.spread(FLOOR, row)
    return {
        "label": row.label,
        "case": row.case,
        "figure": row.figure,
        "unit": row.unit.value,
        "more_is_better": row.more_is_better,
        MESH: None if own is None else asdict(own),
        FLOOR: None if floor is None else asdict(floor),
        "ratio": row.ratio(own, floor),
        "trouble": found.trouble(MESH, row.case) or None,
    }


def as_table(found: Found) -> Table:
    """Give the figures for people."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("median (lowest to highest)", MESH, FLOOR, f"{MESH} / {FLOOR}"):
        table.add_column(title, justify="left" if title.startswith("median") else "right")
    for row in ROWS:
        own, floor = found.spread(MESH, row), found.spread(FLOOR, row)
        cells = [
            found.trouble(name, row.case) or MISSING if spread is None else spread.write(row.unit)
            for name, spread in ((MESH, own), (FLOOR, floor))
        ]
        table.add_row(row.label, *cells, write_ratio(row.ratio(own, floor)))
    return table
