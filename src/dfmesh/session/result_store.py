"""Results in order of arrival: in memory up to a limit, beyond it in a file that has no name."""

from __future__ import annotations

import tempfile
from array import array
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import IO

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
        self._memory: deque[tuple[ResultItem, int]] = deque()
        self._forgotten = 0
        self._bytes = 0
        self._offsets = array("Q", [0])
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return self._forgotten + len(self._memory) + len(self._offsets) - 1

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
            self._file = tempfile.TemporaryFile(prefix="dfmesh-results-")  # noqa: SIM115 - lives as long as the job
        for item in items[position:]:
            self._spill(self._file, item)

    def _keep(self, items: Sequence[ResultItem]) -> int:
        """Keep results in memory up to the limit; give how many."""
        memory, used, limit = self._memory, self._bytes, self._limit
        for position, item in enumerate(items):
            value = item.value
            size = ITEM_OVERHEAD + (_SMALL if type(value) in _SMALL_TYPES else values.size_of(value))
            if used + size > limit:
                self._bytes = used
                return position
            memory.append((item, size))
            used += size
        self._bytes = used
        return len(items)

    def _spill(self, file: IO[bytes], item: ResultItem) -> None:
        data = values.to_bytes((item.place, item.frame, item.value, item.site, item.node))
        file.seek(self._offsets[-1])
        file.write(data)
        self._offsets.append(self._offsets[-1] + len(data))

    def slice(self, start: int, stop: int) -> list[ResultItem]:
        """Give the results from one position to another. Those that were forgotten are left out."""
        begin = max(start - self._forgotten, 0)
        in_memory = [item for item, _ in islice(self._memory, begin, max(stop - self._forgotten, begin))]
        on_disk = self._forgotten + len(self._memory)
        return in_memory + [self._load(position - on_disk) for position in range(max(start, on_disk), stop)]

    def _load(self, position: int) -> ResultItem:
        if self._file is None:
            raise IndexError(position)
        begin, end = self._offsets[position], self._offsets[position + 1]
        self._file.flush()
        self._file.seek(begin)
        place, frame, value, site, node = values.from_bytes(self._file.read(end - begin))
        return ResultItem(place, frame, value, site, node)

    def forget(self, stop: int) -> None:
        """Free the memory of the results before a position; they are not given again."""
        while self._memory and self._forgotten < stop:
            self._bytes -= self._memory.popleft()[1]
            self._forgotten += 1

    def close(self) -> None:
        """Give the disk back."""
        if self._file is not None:
            self._file.close()
