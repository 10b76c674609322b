"""The environment of the nv-dfm-core contestant: its own venv, and the package that it generates from a federation."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from contestants import BENCHMARKS, Contestant, environment

NAME = "nv-dfm-core"
REQUIREMENT = "nv-dfm-core==3.1.31"
HOME = BENCHMARKS / ".envs" / NAME
GENERATED = HOME / "generated"
FEDERATION_FILE = Path(__file__).with_name("federation.dfm.yaml")
SUPPORTED_VERSIONS = ((3, 10), (3, 11), (3, 12))
SUPPORTED_PYTHONS = tuple(f"python{major}.{minor}" for major, minor in SUPPORTED_VERSIONS)

NOTE = (
    f"{REQUIREMENT} from PyPI in its own environment, target local, the same three sites, shipped settings but for "
    "DFM_LOCAL_REATTACH_FINISH_GRACE_SECONDS=0 (with the default of 5 s a client gets 4 jobs and then time-outs); "
    "ForEach does not compile there, so items and arrays are parameter sets (a PlaceParam each, one operation at a and "
    "one at b); "
    "8 threads hold 3 jobs in flight together (4 slots; a submission without a free slot blocks for 30 s)"
)

TOO_SLOW = "not run: 2,000 took 36 s, 1,000 4 to 79 s"
REFUSED = {
    "memcpy_1mb": "see floor",
    "memcpy_256mb": "see floor",
    "items_10000": TOO_SLOW,
    "items_100000": TOO_SLOW,
}


class SetupError(Exception):
    """The peer's environment cannot be made on this machine."""


def contestant() -> Contestant:
    """Make the environment unless it is there, and give the contestant that runs in it.

    Raises:
        SetupError: If there is no Python that it supports, or installing or generating fails.
    """
    python = HOME / "bin" / "python"
    if not (HOME / "installed").exists():
        install(python)
    generate()
    return Contestant(
        NAME,
        (str(python), "-m", "nv_dfm_core_cases.contestant"),
        environment(BENCHMARKS, GENERATED, DFM_LOCAL_REATTACH_FINISH_GRACE_SECONDS="0.0"),
        NOTE,
        REFUSED,
        {"items_1000": 3, "array_256mb": 3},
    )


def install(python: Path) -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    run(supported_python(), "-m", "venv", str(HOME))
    run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT)
    (HOME / "installed").write_text(REQUIREMENT)


def supported_python() -> str:
    if sys.version_info[:2] in SUPPORTED_VERSIONS:
        return sys.executable
    found = next(filter(None, map(shutil.which, SUPPORTED_PYTHONS)), None)
    if found is None:
        raise SetupError(f"{NAME} needs a Python from 3.10 to 3.12, and none is on PATH")
    return found


def generate() -> None:
    """Write the index of federations that its command line reads, and let it generate the package."""
    index = HOME / "federations.yaml"
    index.write_text(
        "federations:\n"
        "  bench:\n"
        f"    federation_dir: {FEDERATION_FILE.parent}\n"
        f"    config_path: {FEDERATION_FILE.name}\n"
        "    project_path: there-is-none.yaml\n"
    )
    shutil.rmtree(GENERATED, ignore_errors=True)
    run(str(HOME / "bin" / "dfm"), "fed", "-c", str(index), "gen", "code", "bench", "--output-dir", str(GENERATED))


def run(*command: str) -> None:
    print("setup:", *command, file=sys.stderr, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, cwd=HOME.parent if HOME.parent.exists() else None)
    if done.returncode != 0:
        raise SetupError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
