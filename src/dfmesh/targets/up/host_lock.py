"""A host's right to its name: while a process holds the lock, no other one can have it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from dfmesh.errors import SessionError
from dfmesh.targets.up.directories import runtime_directory
from dfmesh.targets.up.host_record import record_path, socket_path


class HostLock:
    """The lock of one name. The system frees it when its holder ends, however that happens."""

    def __init__(self, name: str) -> None:
        """Take the lock, and remove what a host that was killed has left.

        Args:
            name: Name of the host.

        Raises:
            SessionError: another process has it.
        """
        self._name = name
        self._path = runtime_directory() / f"{name}.lock"
        self._descriptor = _take(self._path)
        if self._descriptor < 0:
            raise SessionError(
                f"the host {name!r} is up already, or just starts; `dfmesh jobs {name}` lists its jobs,"
                f" `dfmesh down {name}` stops it, and `dfmesh up FILE --name` starts another beside it"
            )
        self._clear()

    def release(self) -> None:
        """Remove everything that stands for the name, then let it go."""
        self._clear()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)  # Still ours, so whoever waits for it sees that it is another file.
        os.close(self._descriptor)

    def _clear(self) -> None:
        for path in (socket_path(self._name), record_path(self._name)):
            path.unlink(missing_ok=True)


def clear_leftovers(name: str) -> bool:
    """Remove what a host that was killed has left; False if one runs."""
    try:
        HostLock(name).release()
    except SessionError:
        return False
    return True


def _take(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return -1
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)  # Its holder has just removed it.
