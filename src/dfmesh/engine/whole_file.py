"""Puts a file in its place whole or not at all, and leaves nothing else, whenever the process is killed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

_WITHOUT_NAME = getattr(os, "O_TMPFILE", 0)
_NOT_THERE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EXDEV, errno.EPERM})
"""What a file system, or a system without /proc, says that cannot do it."""


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, so that a reader sees all of it, or what was there before, or nothing.

    The file has no name until all of it is written; one that has no name goes with its process. Where the file system
    has no such files it is written under another name first, which stays if the process is killed meanwhile.

    Args:
        path: The file; its directory is there.
        data: What is to be in it.

    Raises:
        OSError: it cannot be written; nothing has changed.
    """
    if not (_WITHOUT_NAME and _write_without_name(path, data)):
        _write_beside(path, data)


def _write_without_name(path: Path, data: bytes) -> bool:
    """Write a file that gets its name last; False if that is not possible here."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            descriptor = os.open(path.parent, _WITHOUT_NAME | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in _NOT_THERE:
                return False
            raise
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
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


def _write_beside(path: Path, data: bytes) -> None:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(6)}.draft")
    try:
        draft.write_bytes(data)
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
