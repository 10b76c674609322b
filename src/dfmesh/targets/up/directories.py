"""Where the host of a federation has its socket, and where it keeps what has to outlive it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path

from dfmesh.errors import SessionError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,47}")
_LONGEST_STEM = 32


def host_name(federation: Path) -> str:
    """Name the host of a federation file, if its user gives no name.

    Args:
        federation: The file; by whatever path it is named, the name is the same.
    """
    real = os.path.realpath(federation)
    stem = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(real).partition(".")[0]).lstrip("._-")
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    return f"{stem[:_LONGEST_STEM] or 'federation'}-{digest}"


def named_host(wanted: str | os.PathLike[str]) -> str:
    """Give the name of the host that a user means, who named it or its federation file."""
    return host_name(Path(wanted)) if os.path.isfile(wanted) else os.path.basename(wanted)


def check_name(name: str) -> str:
    """Give a name that the user chose for a host.

    Raises:
        SessionError: it cannot be the name of a file.
    """
    if not _NAME.fullmatch(name):
        raise SessionError(
            f"{name!r} cannot be the name of a host: up to 48 letters, digits, dots, dashes and underscores"
        )
    return name


def runtime_directory() -> Path:
    """Give the directory for sockets, which only this user can enter; it is made if it is not there.

    `$XDG_RUNTIME_DIR/dfmesh` or, without that, a directory of this user where temporary files go.

    Raises:
        SessionError: it cannot be made, or others could enter or replace it.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    path = (
        Path(base) / "dfmesh" if base and os.path.isdir(base) else Path(tempfile.gettempdir()) / f"dfmesh-{os.getuid()}"
    )
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise SessionError(f"there is no place for sockets of hosts: {error}; set XDG_RUNTIME_DIR") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SessionError(
            f"{path} is not a directory of yours alone (mode 0700), so sockets in it could be anybody's;"
            " remove it, or set XDG_RUNTIME_DIR"
        )
    return path


def state_directory(name: str) -> Path:
    """Give the directory in which a host keeps its jobs and what its sites print; it need not be there.

    Args:
        name: Name of the host.
    """
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "dfmesh" / name
