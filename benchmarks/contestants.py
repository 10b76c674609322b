"""Who is measured, and how a child process of each is started."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from environments import SetupError, environment_of
from nv_dfm_core_cases import setup as nv_dfm_core

BENCHMARKS = Path(__file__).resolve().parent
SOURCES = BENCHMARKS.parent / "src"

NUMPY = f"numpy=={importlib.metadata.version('numpy')}"
RAY = ("ray==2.58.1", NUMPY)
DASK = ("dask==2026.7.1", "distributed==2026.7.1", NUMPY)
PARSL = ("parsl==2026.10.12", NUMPY)

SEE_FLOOR = "see floor"
TOO_SLOW = "not run: 2,000 took 36 s, 1,000 4 to 79 s"


@dataclass(frozen=True)
class Contestant:
    """One column of the tables.

    Attributes:
        name: Column title.
        command: Starts a child; the orders are added.
        environment: All environment variables of the child.
        note: How this contestant is measured, for the reader of the table.
        absent: Why it cannot be measured at all; empty if it can.
        refused: Cases that it does not take part in, with the reason.
        repeats: For slow cases, how often they are repeated at most.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    note: str
    absent: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)
    repeats: Mapping[str, int] = field(default_factory=dict)

    def refuses(self, case: str) -> str:
        return self.absent or self.refused.get(case, "")

    def repeats_at_most(self, case: str) -> int:
        return self.repeats.get(case, sys.maxsize)


def environment(python: Path | str, *paths: Path, **more: str) -> dict[str, str]:
    """The environment of a child: `paths` on the module search path, the programs beside its Python first."""
    programs = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])
    search_path = os.pathsep.join(map(str, [*paths, BENCHMARKS, SOURCES]))
    return {**os.environ, "PATH": programs, "PYTHONPATH": search_path, **more}


def floor() -> Contestant:
    return Contestant(
        "floor",
        (sys.executable, "-m", "measuring", "floor"),
        environment(sys.executable),
        "two bare processes, Unix domain socket, msgspec, no framework, one message at a time (a write and reads of "
        "its own for each), up to 256 unanswered; it has one site, not four; arrays: one copy into memory that was "
        "faulted in before",
        refused=dict.fromkeys(("at_rest", "array_memory_256mb", "array_memory_1gb"), "-"),
    )


def batched_floor() -> Contestant:
    same = ("import", "cold", "at_rest", "array_1mb", "array_16mb", "array_256mb", "array_1gb")
    return Contestant(
        "floor, batched",
        (sys.executable, "-m", "measuring", "floor-batched"),
        environment(sys.executable),
        "the same, but each write and each read takes as many messages as there are",
        refused=dict.fromkeys((*same, "array_memory_256mb", "array_memory_1gb"), SEE_FLOOR),
    )


def dfmesh() -> Contestant:
    return Contestant(
        "dfmesh",
        (sys.executable, "-m", "measuring", "dfmesh"),
        environment(sys.executable, DFMESH_MEASURE="0"),
        "public session API, target local, four sites (home, which is the homesite, a, b, c) and the client; prepared "
        "pipelines; costs are not measured while it runs (DFMESH_MEASURE=0)",
    )


def ray() -> Contestant:
    python = environment_of("ray", RAY)
    return Contestant(
        "ray",
        (str(python), "-m", "peers.ray_peer", "ray"),
        environment(python, RAY_USAGE_STATS_ENABLED="0", RAY_DISABLE_IMPORT_WARNING="1"),
        f"{RAY[0]}: one node without dashboard, an actor for each site; jobs one after the other are a compiled graph "
        "of one actor, all else calls of actors; items are references out of a's stream, given to b",
    )


def dask() -> Contestant:
    python = environment_of("dask", DASK)
    return Contestant(
        "dask",
        (str(python), "-m", "peers.dask_peer", "dask"),
        environment(python),
        f"{DASK[1]}: a local cluster without dashboard, four worker processes of one thread; jobs are calls of an "
        "actor, items a map over the list at worker b, all else futures bound to workers",
    )


def parsl() -> Contestant:
    python = environment_of("parsl", PARSL)
    return Contestant(
        "parsl",
        (str(python), "-m", "peers.parsl_peer", "parsl"),
        environment(python),
        f"{PARSL[0]}: a HighThroughputExecutor for each site, one worker each; all values pass through the client",
    )


def nv_dfm_core_peer() -> Contestant:
    python, generated = nv_dfm_core.python_and_package()
    return Contestant(
        nv_dfm_core.NAME,
        (str(python), "-m", "nv_dfm_core_cases.contestant", nv_dfm_core.NAME),
        environment(python, generated, DFM_LOCAL_REATTACH_FINISH_GRACE_SECONDS="0.0"),
        f"{nv_dfm_core.REQUIREMENTS[0]}: target local, the same four sites, shipped settings but for "
        "DFM_LOCAL_REATTACH_FINISH_GRACE_SECONDS=0 (with the default of 5 s a client gets 4 jobs and then time-outs); "
        "ForEach does not compile there, so items and arrays are parameter sets (a PlaceParam each, one operation at a "
        "and one at b); 8 threads hold 3 jobs in flight together (4 slots; a submission without a free slot blocks for "
        "30 s)",
        refused=dict.fromkeys(("items_10000", "items_100000", "items_1000000"), TOO_SLOW),
        repeats={"items_1000": 3, "array_256mb": 2, "array_1gb": 1, "array_memory_1gb": 1},
    )


PEERS: dict[str, Callable[[], Contestant]] = {
    "ray": ray,
    "dask": dask,
    "parsl": parsl,
    nv_dfm_core.NAME: nv_dfm_core_peer,
}


def peer(name: str) -> Contestant:
    """Set a peer up; one that cannot be is a column that says why."""
    try:
        return PEERS[name]()
    except SetupError as error:
        print(f"{name} is not measured: {error}", file=sys.stderr)
        return Contestant(name, (), {}, f"not measured: {error}", absent="not installed: see the notes")


def chosen(names: str) -> list[str]:
    """Read `ray,dask`, or `all`.

    Raises:
        ValueError: One of them is not a peer.
    """
    if names == "all":
        return list(PEERS)
    wanted = [name for name in names.split(",") if name]
    unknown = [name for name in wanted if name not in PEERS]
    if unknown:
        raise ValueError(f"no peer is called {', '.join(unknown)}; there are {', '.join(PEERS)}")
    return wanted
