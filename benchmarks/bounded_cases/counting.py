"""A number in a file, which one process counts up and another reads."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Self

_NUMBER = struct.Struct("<q")


class Counter:
    """Counts up a number in a file; one process at a time may do so."""

    def __init__(self, path: str) -> None:
        self._path = path

    @classmethod
    def make(cls, path: Path) -> str:
        """Make the file with 0 in it, and give its path."""
        path.write_bytes(_NUMBER.pack(0))
        return str(path)

    def __enter__(self) -> Self:
        with open(self._path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), _NUMBER.size)
        return self

    def __exit__(self, *_: object) -> None:
        self._map.close()

    def add(self) -> None:
        _NUMBER.pack_into(self._map, 0, _NUMBER.unpack_from(self._map)[0] + 1)

    @staticmethod
    def read(path: str) -> int:
        return int(_NUMBER.unpack(Path(path).read_bytes())[0])
