"""How a process of ours is started: interpreter, environment, module search path."""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from pathlib import Path

import dfmesh
from dfmesh.errors import SessionError


def interpreter(python: str | None = None) -> list[str]:
    """Give the beginning of a command that runs Python.

    Args:
        python: Path or name of another interpreter; None for the one that runs us.

    Raises:
        SessionError: there is no such interpreter.
    """
    found = sys.executable if python is None else shutil.which(python)
    if not found:
        what = "Python does not know its own executable" if python is None else f"there is no interpreter {python!r}"
        raise SessionError(f"processes cannot be started: {what}")
    # -P: the current directory must not hide modules that the process itself needs to start
    return [found, "-P", "-X", "faulthandler"]


def environment(python: str | None = None) -> dict[str, str]:
    """Our environment variables, made sure that dfmesh is found also if it was put on `sys.path` by a script.

    Args:
        python: As for `interpreter`. Another one finds its own libraries, and dfmesh there if ours is installed.
    """
    variables = dict(os.environ)
    # The C library keeps up to 40 MB of freed arrays per arena, and has eight arenas per core for our threads.
    variables.setdefault("MALLOC_ARENA_MAX", "2")
    if python is not None:
        variables.pop("PYTHONHOME", None)
    root = str(Path(dfmesh.__file__).resolve().parent.parent)
    if root not in site.getsitepackages():
        before = variables.get("PYTHONPATH")
        variables["PYTHONPATH"] = os.pathsep.join([root, before] if before else [root])
    return variables


def import_path(python: str | None = None) -> tuple[str, ...]:
    """Our `sys.path` as another process can use it.

    Args:
        python: As for `interpreter`. Another one gets only what does not belong to ours: directories of the user.
    """
    path = dict.fromkeys(os.path.abspath(entry) for entry in sys.path)
    if python is None:
        return tuple(path)
    own = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    inside = tuple({os.path.join(prefix, "") for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)})
    return tuple(entry for entry in path if entry not in own and not entry.startswith(inside))
