"""Where measured costs are kept between runs: one file per federation, shared by all clients of this user."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from dfmesh.compiler.measured import NOTHING_MEASURED, MeasuredCosts
from dfmesh.config.federation_folder import federation_folder

MEASURE_VARIABLE = "DFMESH_MEASURE"
"""Environment variable that switches measuring off for a process: `0`, `no`, `off` or `false`."""


def measuring(wanted: bool | None = None) -> bool:
    """Tell whether measured costs are used and kept.

    Args:
        wanted: What the user's code says; None leaves it to the environment.
    """
    if wanted is not None:
        return wanted
    return os.environ.get(MEASURE_VARIABLE, "1").strip().lower() not in ("0", "no", "off", "false")


def costs_file(federation: str) -> Path:
    """Give the file in which the costs of a federation are kept.

    Args:
        federation: Name of the federation.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "dfmesh" / federation_folder(federation) / "costs.json"


def kept_costs(federation: str, wanted: bool | None = None) -> CostStore | None:
    """Give the measured costs of a federation; None if they are neither used nor kept.

    Args:
        federation: Name of the federation.
        wanted: As in `measuring`.
    """
    return CostStore(costs_file(federation)) if measuring(wanted) else None


class CostStore:
    """The measured costs of one federation. All methods may be called from any thread.

    A file that cannot be read or written is no reason for a job to fail: it is warned of once, and what was measured
    is used as long as the process lives.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        """Use a file; nothing is read yet.

        Args:
            path: The file; need not be there.
        """
        self.path = path
        self._lock = threading.Lock()
        self._pending = NOTHING_MEASURED
        self._known = NOTHING_MEASURED
        self._stamp: tuple[int, int] | None = None
        self._warned = False

    def add(self, measured: MeasuredCosts) -> None:
        """Note what a job has measured. It reaches the file with the next `costs` or `flush`."""
        with self._lock:
            self._pending = self._pending.joined(measured)

    def costs(self) -> MeasuredCosts:
        """Give all that is known, what was noted just now included."""
        with self._lock:
            if self._pending:
                self._fold()
            else:
                self._read()
            return self._known

    def flush(self) -> None:
        """Put what was noted into the file."""
        with self._lock:
            if self._pending:
                self._fold()

    def reset(self, operation: str | None = None) -> None:
        """Forget what is known.

        Args:
            operation: The operation to forget; None for everything.
        """
        with self._lock:
            pending, self._pending = self._pending, NOTHING_MEASURED
            self._change(
                lambda known: NOTHING_MEASURED if operation is None else known.joined(pending).without(operation)
            )

    def __repr__(self) -> str:
        return f"<CostStore {str(self.path)!r}>"

    def _fold(self) -> None:
        pending, self._pending = self._pending, NOTHING_MEASURED
        self._change(lambda known: known.joined(pending))

    def _change(self, change: Callable[[MeasuredCosts], MeasuredCosts]) -> None:
        """Change what the file holds, with no other client in between."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self.path.with_suffix(".lock")):
                self._read()
                self._known = change(self._known)
                self._write()
        except OSError as error:
            self._warn(f"measured costs cannot be kept in {self.path}: {error.strerror or error}")
            self._known = change(self._known)

    def _read(self) -> None:
        """Read the file if it is another one than last time."""
        try:
            stamp = _stamp(self.path)
            if stamp == self._stamp:
                return
            self._known = MeasuredCosts.from_json(self.path.read_bytes())
            self._stamp = stamp
        except FileNotFoundError:
            if self._stamp is not None:
                self._known, self._stamp = NOTHING_MEASURED, None
        except (OSError, ValueError) as error:
            self._warn(f"measured costs in {self.path} cannot be read and do not count: {error}")

    def _write(self) -> None:
        # One name for all: if we are killed now, the next one who writes takes it over.
        draft = self.path.with_suffix(".draft")
        try:
            draft.write_bytes(self._known.to_json())
            os.replace(draft, self.path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        self._stamp = _stamp(self.path)

    def _warn(self, text: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(text, RuntimeWarning, stacklevel=4)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_ino


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes out while a file is read, changed and written."""
    try:
        import fcntl
    except ImportError:  # Windows: two clients that end at once may lose what was measured.
        yield
        return
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


__all__ = ["MEASURE_VARIABLE", "CostStore", "costs_file", "kept_costs", "measuring"]
