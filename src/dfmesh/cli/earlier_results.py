"""What an earlier run has left in the directory that results go to: two runs must not mix there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from dfmesh.cli.failures import CommandError
from dfmesh.cli.result_files import INDEX, safe_name


class EarlierResults:
    """The results of an earlier run, as its index lists them.

    Attributes:
        directory: The directory.
        files: Results that are still there.
    """

    def __init__(self, directory: Path, places: Iterable[str], job: str | None = None) -> None:
        """Look what is there; nothing is changed.

        Args:
            directory: The directory.
            places: To which the new results will go.
            job: Id of the job of which they will be; None if it is new. Where the index is of this very job, files
                that it does not list are results that were written after it.

        Raises:
            CommandError: there are files where results will go, and no index says that dfmesh wrote them.
        """
        self.directory = directory
        self._index = directory / INDEX
        self._job: str | None = None
        self.files = self._listed()
        known = set(self.files)
        for place in places if job is None or job != self._job else ():
            folder = directory / safe_name(place)
            strange = sorted(path.name for path in folder.iterdir() if path not in known) if folder.is_dir() else []
            if strange:
                raise CommandError(
                    f"{folder} holds files that no {INDEX} lists, such as {strange[0]}, "
                    "and results would mix with them; remove them, or name another directory with --out"
                )

    def _listed(self) -> list[Path]:
        try:
            index: Any = json.loads(self._index.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, ValueError) as error:
            raise self._not_ours(str(error)) from error
        if not isinstance(index, dict) or "job" not in index or not isinstance(index.get("results"), list):
            raise self._not_ours("it lists no results of a job")
        self._job = str(index["job"])
        entries = [entry.get("file") if isinstance(entry, dict) else None for entry in index["results"]]
        paths = [self._inside(entry) for entry in entries if isinstance(entry, str)]
        return [path for path in paths if path is not None and path.is_file()]

    def _not_ours(self, why: str) -> CommandError:
        return CommandError(f"{self._index} is not of a run of dfmesh ({why}); name another directory with --out")

    def _inside(self, file: str) -> Path | None:
        """Give the path of a result, `place/frame.ext`; None if it is none, or leads out of the directory."""
        parts = PurePosixPath(file).parts
        if len(parts) != 2 or ".." in parts or parts[0] == "/" or (self.directory / parts[0]).is_symlink():
            return None
        return self.directory.joinpath(*parts)

    def remove(self) -> int:
        """Remove the results, the folders that are empty then, and the index.

        Returns:
            How many results there were.

        Raises:
            CommandError: something cannot be removed.
        """
        try:
            for path in self.files:
                path.unlink(missing_ok=True)
            for folder in {path.parent for path in self.files}:
                with contextlib.suppress(OSError):  # it holds something else as well
                    folder.rmdir()
            with contextlib.suppress(NotADirectoryError):
                self._index.unlink(missing_ok=True)
        except OSError as error:
            raise CommandError(f"cannot remove the results of an earlier run: {error}") from error
        return len(self.files)


__all__ = ["EarlierResults"]
