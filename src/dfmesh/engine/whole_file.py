"""Puts a file in its place whole or not at all, and leaves nothing else, whenever the process is killed."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

_WITHOUT_NAME = getattr(os, "O_TMPFILE", 0)
_NOT_THERE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EXDEV, errno.EPERM})
"""What a file system, or a system without /proc, says that cannot do it."""


_MODE = 0o600
"""Only the owner of the process reads what is written."""


def write_whole(path: Path, *parts: bytes) -> None:
    """Write a file, so that a reader sees all of it, or what was there before, or nothing.

    The file has no name until all of it is written; one that has no name goes with its process. Where the file system
    has no such files it is written under another name first, which stays if the process is killed meanwhile.

    Args:
        path: The file; its directory is there.
        parts: What is to be in it, one behind the other.

    Raises:
        OSError: it cannot be written; nothing has changed.
    """
    if not (_WITHOUT_NAME and _write_without_name(path, parts)):
        _write_beside(path, parts)


def _write_without_name(path: Path, parts: Sequence[bytes]) -> bool:
    """Write a file that gets its name last; False if that is not possible here."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            descriptor = os.open(path.parent, _WITHOUT_NAME | os.O_WRONLY | os.O_CLOEXEC, _MODE)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return False
            raise
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
            file.flush()
            return _give_name(descriptor, directory, path.name)
    finally:
        os.close(directory)


def _give_name(descriptor: int, directory: int, name: str) -> bool:
    while True:
        try:
            # With a directory's descriptor Python calls linkat, which follows the link in /proc to the file itself.
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=directory, follow_symlinks=True)
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return False
            raise
        else:
            return True


def _write_beside(path: Path, parts: Sequence[bytes]) -> None:
    draft = path.with_name(f"{path.name}.{os.urandom(6).hex()}.draft")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE), "wb") as file:
            file.writelines(parts)
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
