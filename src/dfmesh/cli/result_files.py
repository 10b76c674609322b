"""Writing results to files: each in the format that people expect for its type, and an index of all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfmesh import values
from dfmesh.api import is_unicode
from dfmesh.cli.failures import CommandError, UsageError

if TYPE_CHECKING:
    from dfmesh.session import ResultItem

INDEX = "index.json"
DRAFT = ".part"
"""Directory in that of a place where a file is until it is whole, so that nobody takes a part of a result for it."""

LONGEST_NAME = 100
"""Bytes of a part of a file name; file systems take 255 for all of it, some of them 143."""

NO_NETCDF = "as JSON, since NetCDF cannot be written here; pip install h5netcdf may help"

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpg"),
    (b"GIF8", "gif"),
    (b"%PDF-", "pdf"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\x89HDF\r\n\x1a\n", "h5"),
    (b"CDF\x01", "nc"),
    (b"CDF\x02", "nc"),
    (b"CDF\x05", "nc"),
    (b"GRIB", "grib"),
    (b"II*\x00", "tif"),
    (b"MM\x00*", "tif"),
    (b"\x1f\x8b", "gz"),
    (b"PK\x03\x04", "zip"),
)


def check_directory(directory: Path, files: Iterable[str] = ()) -> None:
    """Check, before a job runs, that results can be written to a directory, which need not be there yet.

    Args:
        directory: The directory.
        files: Names of files that will be written there, or replaced.

    Raises:
        UsageError: they cannot.
    """
    try:
        there = next(path for path in (directory, *directory.absolute().parents) if path.exists() or path.is_symlink())
    except OSError as error:
        raise UsageError(f"--out {directory}: {error.strerror}") from error
    if not there.is_dir():
        raise UsageError(f"--out {directory}: {there} is no directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"--out {directory}: {there} may not be written to")
    try:
        tempfile.TemporaryFile(dir=there).close()  # Rights do not tell of file systems that take no files.
    except OSError as error:
        raise UsageError(f"--out {directory}: {there} takes no files: {error.strerror}") from error
    for path in (directory / name for name in files):
        if path.exists() and not path.is_file():
            raise UsageError(f"--out {directory}: {path} is in the way of a file of that name")
        if path.exists() and not os.access(path, os.W_OK):
            raise UsageError(f"--out {directory}: {path} may not be written to")


class ResultFiles:
    """The directory into which the results of one job go: `place/frame.ext`.

    Attributes:
        directory: The directory.
        entries: What has been written, as it stands in the index.
    """

    def __init__(self, directory: Path, several: frozenset[str] = frozenset()) -> None:
        """Use a directory; it is made with the first file.

        Args:
            directory: The directory.
            several: Places to which more than one Yield sends, so that the frame alone does not tell results apart.
        """
        self.directory = directory
        self.entries: list[dict[str, Any]] = []
        self._several = several
        self._folders: dict[str, str] = {}

    def write(self, item: ResultItem) -> dict[str, Any]:
        """Write one result.

        Returns:
            Its entry in the index: place, frame, site, node, file (relative to the directory), type, bytes, and a
            note where the file is of another format than one expects.

        Raises:
            CommandError: the file cannot be written.
        """
        suffix = f"-{safe_name(item.node)}" if item.place in self._several else ""
        stem = "-".join(f"{part:04d}" for part in item.frame) + suffix
        folder = self.directory / self._folder(item.place)
        draft = folder / DRAFT
        try:
            draft.mkdir(parents=True, exist_ok=True)
            written = write_value(item.value, draft / stem)
            path = folder / written.name
            os.replace(written, path)
        except Exception as error:  # The libraries that write tables and grids raise what they like.
            shutil.rmtree(draft, ignore_errors=True)
            raise CommandError(f"cannot write a result of {item.place!r} to {folder}: {error}") from error
        entry = {
            "place": item.place,
            "frame": list(item.frame),
            "site": item.site,
            "node": item.node,
            "file": path.relative_to(self.directory).as_posix(),
            "type": type(item.value).__name__,
            "bytes": path.stat().st_size,
        }
        if path.suffix == ".json" and type(item.value).__module__.partition(".")[0] == "xarray":
            entry["note"] = NO_NETCDF
        self.entries.append(entry)
        return entry

    def _folder(self, place: str) -> str:
        """Give the folder of a place: its name, made safe; two places never share one."""
        if place not in self._folders:
            wanted = safe_name(place)
            taken = {folder.lower() for folder in self._folders.values()} | {INDEX}
            names = (wanted if number == 0 else f"{wanted}-{number}" for number in count())
            name = next(name for name in names if name.lower() not in taken)
            self._folders[place] = name
        return self._folders[place]

    def write_index(self, more: dict[str, Any]) -> Path:
        """Write the index, all at once, so that nobody reads half of it.

        Args:
            more: What to say of the job, besides the results.

        Raises:
            CommandError: it cannot be written.
        """
        path = self.directory / INDEX
        results = sorted(self.entries, key=lambda entry: (entry["place"], entry["frame"], entry["node"]))
        draft = path.with_suffix(".json.part")
        for folder in self._folders.values():
            shutil.rmtree(self.directory / folder / DRAFT, ignore_errors=True)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps({**more, "results": results}, indent=2) + "\n", "utf-8")
            os.replace(draft, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise CommandError(f"cannot write {path}: {error}") from error
        return path


def safe_name(name: str) -> str:
    """Make any text a file name of one level that no shell or system takes amiss.

    A long one is cut, and has a digest of all of it at its end, so that it is the same in every run.
    """
    safe = re.sub(r"[^\w.-]+", "_", name).strip("._-") or "_"
    if len(os.fsencode(safe)) <= LONGEST_NAME:
        return safe
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{os.fsencode(safe)[: LONGEST_NAME - 9].decode(errors='ignore')}-{digest}"


def write_value(value: Any, stem: Path) -> Path:
    """Write a value in the format for its type.

    Args:
        value: Bytes (the extension is found from their beginning), text, an Arrow table (Parquet), a numpy array, or
            an xarray array or data set (NetCDF if a library for it is installed), or anything else that dfmesh can
            send, as JSON.
        stem: Path without extension.

    Returns:
        The path with extension.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return _write(stem, sniff(bytes(value[:16])), bytes(value))
    if isinstance(value, str) and is_unicode(value):
        return _write(stem, "txt", value.encode("utf-8"))
    libraries = {cls.__module__.partition(".")[0] for cls in type(value).__mro__}
    if "pyarrow" in libraries and type(value).__name__ in ("Table", "RecordBatch"):
        return _write_table(value, stem)
    if "xarray" in libraries and (path := _write_grid(value, stem)) is not None:
        return path
    if "numpy" in libraries and (path := _write_array(value, stem)) is not None:
        return path
    document = values.to_json(value)
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if not is_unicode(text):  # It has lone surrogates, which JSON can write escaped only.
        text = json.dumps(document, indent=2)
    return _write(stem, "json", f"{text}\n".encode())


def _write_array(value: Any, stem: Path) -> Path | None:
    """Write a numpy array; None if it is none, is masked, or is of a data type that cannot be saved without pickle."""
    import numpy as np

    if type(value) is not np.ndarray or value.dtype.hasobject:
        return None
    path = _with_extension(stem, "npy")
    try:
        with path.open("wb") as file:
            np.save(file, value, allow_pickle=False)
    except ValueError:  # Fields that overlap.
        path.unlink()
        return None
    return path


def _write_grid(value: Any, stem: Path) -> Path | None:
    """Write an xarray array or data set as NetCDF; None if there is no library for it, or NetCDF cannot hold it."""
    path = _with_extension(stem, "nc")
    try:
        value.to_netcdf(path)
    except (ImportError, ValueError, TypeError, NotImplementedError):
        path.unlink(missing_ok=True)
        return None
    return path


def _write_table(value: Any, stem: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_batches([value]) if isinstance(value, pa.RecordBatch) else value
    try:
        path = _with_extension(stem, "parquet")
        pq.write_table(table, path)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # Parquet has no unions and the like; Arrow's own format has
        path.unlink(missing_ok=True)
        path = _with_extension(stem, "arrow")
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return path


def _write(stem: Path, extension: str, data: bytes) -> Path:
    path = _with_extension(stem, extension)
    path.write_bytes(data)
    return path


def _with_extension(stem: Path, extension: str) -> Path:
    return stem.parent / f"{stem.name}.{extension}"


def sniff(beginning: bytes) -> str:
    """Find the usual extension for data that begin like this; `bin` if they are of no known kind."""
    for signature, extension in _SIGNATURES:
        if beginning.startswith(signature):
            return extension
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP":
        return "webp"
    return "bin"
