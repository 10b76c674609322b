"""Places where a site keeps files: local paths, or paths on any fsspec file system."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast


@dataclass(frozen=True, slots=True)
class StoragePath:
    """A path on an fsspec file system, used like a `pathlib.Path`.

    Attributes:
        filesystem: The fsspec file system.
        path: The path on it.
    """

    filesystem: Any
    path: str

    def __truediv__(self, other: str | os.PathLike[str]) -> StoragePath:
        return StoragePath(self.filesystem, f"{self.path.rstrip('/')}/{os.fspath(other).lstrip('/')}")

    def __str__(self) -> str:
        return str(self.filesystem.unstrip_protocol(self.path))

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> StoragePath:
        """The directory that this is in."""
        return StoragePath(self.filesystem, self.path.rstrip("/").rpartition("/")[0])

    def exists(self) -> bool:
        """Whether there is something."""
        return bool(self.filesystem.exists(self.path))

    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return bool(self.filesystem.isdir(self.path))

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Make a directory; the file system decides what that means to it.

        Args:
            parents: Whether to make the directories above, too.
            exist_ok: Whether it may be there already.
        """
        if parents:
            self.filesystem.makedirs(self.path, exist_ok=exist_ok)
        elif not (exist_ok and self.exists()):
            self.filesystem.mkdir(self.path, create_parents=False)

    def iterdir(self) -> Iterator[StoragePath]:
        """Iterate over what is in the directory."""
        for path in self.filesystem.ls(self.path, detail=False):
            yield StoragePath(self.filesystem, path)

    def open(self, mode: str = "rb", **options: Any) -> IO[Any]:
        """Open the file.

        Args:
            mode: As for the built-in `open`.
            options: For the file system.
        """
        return cast("IO[Any]", self.filesystem.open(self.path, mode, **options))

    def read_bytes(self) -> bytes:
        """Content of the file."""
        return bytes(self.filesystem.cat_file(self.path))

    def write_bytes(self, data: bytes) -> None:
        """Replace the content of the file."""
        self.filesystem.pipe_file(self.path, data)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Content of the file as text."""
        return self.read_bytes().decode(encoding)

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Replace the content of the file by a text."""
        self.write_bytes(text.encode(encoding))

    def unlink(self) -> None:
        """Remove the file."""
        self.filesystem.rm_file(self.path)


def storage_directory(protocol: str, options: Mapping[str, Any], path: str) -> Path | StoragePath:
    """Give a directory, made if it is not there; a local one for the owner of the process alone.

    Args:
        protocol: fsspec protocol; `file` gives a plain `pathlib.Path`.
        options: Keyword arguments of the file system.
        path: The directory.

    Raises:
        FileExistsError: If there is a file of that name.
    """
    if protocol in ("file", "local"):
        make_private(Path(path))
        return Path(path)
    import fsspec

    directory = StoragePath(fsspec.filesystem(protocol, **options), path)
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing, for the owner of the process alone; leave what is there.

    Args:
        directory: The directory.

    Raises:
        FileExistsError: If there is a file of that name.
    """
    if directory.is_dir():
        return
    if not directory.parent.is_dir():
        make_private(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
