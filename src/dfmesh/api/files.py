"""Reading the files that users name, which may turn out to be devices, pipes, or far too large."""

from __future__ import annotations

import errno
import os
import stat

MEBIBYTE = 1 << 20


def read_file(path: str | os.PathLike[str], limit: int) -> bytes:
    """Read a regular file of a sensible size.

    Args:
        path: The file.
        limit: Bytes that it may have.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger; `strerror` says so.
    """
    # Before it is opened: opening a pipe waits for a writer.
    if not stat.S_ISREG(os.stat(real_path(path)).st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
    with open(path, "rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit // MEBIBYTE} MiB", os.fspath(path))
    return content


def real_path(path: str | os.PathLike[str]) -> str:
    """Follow the links in a path.

    Raises:
        OSError: it cannot be a path, since it has a null byte or a lone surrogate.
    """
    try:
        return os.path.realpath(path)
    except ValueError as error:
        raise OSError(errno.EINVAL, "this cannot be the name of a file", os.fspath(path)) from error


__all__ = ["MEBIBYTE", "read_file", "real_path"]
