"""The environment of the nv-dfm-core contestant: its own venv, and the package that it generates from a federation."""

from __future__ import annotations

import shutil
from pathlib import Path

from environments import cache_directory, environment_of, run_quietly

NAME = "nv-dfm-core"
REQUIREMENTS = ("nv-dfm-core==3.1.31",)
FEDERATION_FILE = Path(__file__).with_name("federation.dfm.yaml")
SUPPORTED_PYTHONS = ("3.11", "3.12")


def python_and_package() -> tuple[Path, Path]:
    """Make the environment unless it is there, and generate the package.

    Returns:
        The Python, and the directory that holds the generated package.

    Raises:
        SetupError: There is no Python that it supports, or installing or generating fails.
    """
    python = environment_of(NAME, REQUIREMENTS, SUPPORTED_PYTHONS)
    return python, generated_by(python)


def generated_by(python: Path) -> Path:
    """Write the index of federations that its command line reads, and let it generate the package."""
    generated = cache_directory() / "generated" / NAME
    generated.parent.mkdir(parents=True, exist_ok=True)
    index = generated.parent / "federations.yaml"
    index.write_text(
        "federations:\n"
        "  bench:\n"
        f"    federation_dir: {FEDERATION_FILE.parent}\n"
        f"    config_path: {FEDERATION_FILE.name}\n"
        "    project_path: there-is-none.yaml\n"
    )
    shutil.rmtree(generated, ignore_errors=True)
    command = (str(python.parent / "dfm"), "fed", "-c", str(index), "gen", "code", "bench", "--output-dir")
    run_quietly(*command, str(generated))
    return generated
