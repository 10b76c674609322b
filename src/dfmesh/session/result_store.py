"""Results in order of arrival: in memory up to a limit, beyond it in a file that has no name."""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Sequence
from typing import IO, Any

from dfmesh import values
from dfmesh.session.results import ResultItem

MEMORY_LIMIT = 64 * 2**20
"""Bytes of results that a job keeps in memory; later ones wait on disk until they are read."""

ITEM_OVERHEAD = 400
"""Bytes that an item costs in memory besides its value."""

_SMALL_TYPES = frozenset({type(None), bool, int, float})
_SMALL = 9


class ResultStore:
    """An append-only list of results. Not thread-safe; the log that owns it has the lock."""

    def __init__(self, memory_limit: int = MEMORY_LIMIT) -> None:
        """Start empty.

        Args:
            memory_limit: Bytes of results to keep in memory.
        """
        self._limit = memory_limit
        # Those in memory, from position `_first` on; None where one was forgotten.
        self._memory: list[ResultItem | None] = []
        self._sizes = array("Q")
        self._first = 0
        self._bytes = 0
        self._offsets = array("Q", [0])
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return self._first + len(self._memory) + len(self._offsets) - 1

    def extend(self, items: Sequence[ResultItem]) -> None:
        """Add results.

        Raises:
            ValueEncodingError: one cannot be written to disk; those behind it are not added either.
            OSError: the disk is full.
        """
        position = 0
        if self._file is None:
            position = self._keep(items)
            if position == len(items):
                return
            # Without a buffer: what is in one could not be written later either, nor what is before it be read.
            self._file = tempfile.TemporaryFile(prefix="dfmesh-results-", buffering=0)  # noqa: SIM115 - as long as the job
        for item in items[position:]:
            self._spill(self._file, item)

    def _keep(self, items: Sequence[ResultItem]) -> int:
        """Keep results in memory up to the limit; give how many."""
        sizes = [ITEM_OVERHEAD + _size(item.value) for item in items]
        total = sum(sizes)
        while self._bytes + total > self._limit:
            total -= sizes.pop()
        self._memory += items[: len(sizes)]
        self._sizes.extend(sizes)
        self._bytes += total
        return len(sizes)

    def _spill(self, file: IO[bytes], item: ResultItem) -> None:
        data = values.to_bytes((item.place, item.frame, item.value, item.site, item.node))
        position, left = self._offsets[-1], memoryview(data)
        while left:
            written = os.pwrite(file.fileno(), left, position)
            position, left = position + written, left[written:]
        self._offsets.append(position)

    def slice(self, start: int, stop: int) -> list[ResultItem]:
        """Give the results from one position to another. Those that were forgotten are left out."""
        first = self._first
        kept = self._memory[max(start - first, 0) : max(stop - first, 0)]
        in_memory = [item for item in kept if item is not None]
        on_disk = first + len(self._memory)
        return in_memory + [self._load(position - on_disk) for position in range(max(start, on_disk), stop)]

    def _load(self, position: int) -> ResultItem:
        if self._file is None:
            raise IndexError(position)
        begin, end = self._offsets[position], self._offsets[position + 1]
        data = b""
        while len(data) < end - begin:  # A system may give less at once than was asked for.
            part = os.pread(self._file.fileno(), end - begin - len(data), begin + len(data))
            if not part:
                raise OSError(f"a result that waited on disk is gone: {self._file.name!r} was cut")
            data += part
        place, frame, value, site, node = values.from_bytes(data)
        return ResultItem(place, frame, value, site, node)

    def forget(self, start: int, stop: int, place: str | None = None) -> None:
        """Free the memory of the results between two positions; they are not given again.

        Args:
            start: Position of the first.
            stop: Position behind the last.
            place: Only those of this place; None for all.
        """
        memory, sizes = self._memory, self._sizes
        for index in range(max(start - self._first, 0), min(stop - self._first, len(memory))):
            item = memory[index]
            if item is not None and place in (None, item.place):
                memory[index] = None
                self._bytes -= sizes[index]
        self._drop_forgotten()

    def _drop_forgotten(self) -> None:
        """Drop what stands for forgotten results at the beginning, if it is much."""
        memory = self._memory
        count = next((index for index, item in enumerate(memory) if item is not None), len(memory))
        if 2 * count >= len(memory):
            del memory[:count], self._sizes[:count]
            self._first += count

    def close(self) -> None:
        """Give the disk back."""
        if self._file is not None:
            self._file.close()


def _size(value: Any) -> int:
    return _SMALL if type(value) in _SMALL_TYPES else values.size_of(value)
