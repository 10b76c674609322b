"""Who is measured, and how a child process of each is started."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent
SOURCES = BENCHMARKS.parent / "src"


@dataclass(frozen=True)
class Contestant:
    """One column of the table.

    Attributes:
        name: Column title.
        command: Starts a child; the kind of measurement and its parameters are added.
        environment: All environment variables of the child.
        note: How this contestant was measured, for the reader of the table.
        refused: Cases that it does not take part in, with the reason.
        repeats: For slow cases, how often they are repeated at most.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    note: str
    refused: Mapping[str, str] = field(default_factory=dict)
    repeats: Mapping[str, int] = field(default_factory=dict)

    def refuses(self, case: str) -> str:
        return self.refused.get(case, "")

    def repeats_at_most(self, case: str) -> int:
        return self.repeats.get(case, sys.maxsize)


def environment(*paths: Path, **more: str) -> dict[str, str]:
    """Our own environment with `paths` before the module search path of the child."""
    inherited = [path for path in [os.environ.get("PYTHONPATH", "")] if path]
    python_path = os.pathsep.join([*map(str, paths), *inherited])
    return {**os.environ, "PYTHONPATH": python_path, **more}


def floor() -> Contestant:
    return Contestant(
        "floor",
        (sys.executable, "-m", "floor.contestant"),
        environment(BENCHMARKS),
        "two bare processes, Unix domain socket, msgspec, one write per message, window 256, no framework; "
        "arrays as raw bytes through the socket into memory that was faulted in before",
    )


def dfmesh() -> Contestant:
    installed = importlib.util.find_spec("dfmesh") is not None
    paths = [BENCHMARKS] if installed else [BENCHMARKS, SOURCES]
    return Contestant(
        "dfmesh",
        (sys.executable, "-m", "dfmesh_cases.contestant"),
        environment(*paths),
        "public session API, target local: sites home (homesite), a and b, and the client; prepared pipelines",
        dict.fromkeys(("memcpy_1mb", "memcpy_256mb"), "see floor"),
    )
