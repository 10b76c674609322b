"""Results in order of arrival: in memory up to a limit, beyond it in a file that has no name."""

from __future__ import annotations

import os
import tempfile
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import IO

from dfmesh import values
from dfmesh.engine.frame_run import FrameRun
from dfmesh.session.result_run import ResultRun
from dfmesh.session.results import ResultItem

MEMORY_LIMIT = 64 * 2**20
"""Bytes of results that a job keeps in memory; later ones wait on disk until they are read."""

ITEM_OVERHEAD = 400
"""Bytes that a result which came alone costs in memory besides its value."""

RUN_ITEM_OVERHEAD = 48
"""Bytes that one of several results which came together costs besides its value, if their frames follow one another."""

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
        # Results that came together, in memory first and then on disk; None where all of them were forgotten.
        self._memory: list[ResultRun | None] = []
        self._sizes = array("Q")
        self._bytes = 0
        self._offsets = array("Q", [0])
        self._file: IO[bytes] | None = None
        # Position of the first result of each, in memory or on disk, from the first that is still kept on.
        self._starts = array("Q")
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, items: Sequence[ResultItem]) -> None:
        """Add results that have nothing to do with one another, as `add` does."""
        for item in items:
            self.add(ResultRun.of_one(item))

    def add(self, run: ResultRun) -> None:
        """Add results that came together.

        Raises:
            ValueEncodingError: one cannot be written to disk; none of them is added.
            OSError: the disk is full.
        """
        if self._file is None:
            size = _size_of(run)
            if self._bytes + size <= self._limit:
                self._memory.append(run)
                self._sizes.append(size)
                self._bytes += size
                self._count(run)
                return
            # Without a buffer: what is in one could not be written later either, nor what is before it be read.
            self._file = tempfile.TemporaryFile(prefix="dfmesh-results-", buffering=0)  # noqa: SIM115 - as long as the job
        self._spill(self._file, run)
        self._count(run)

    def _count(self, run: ResultRun) -> None:
        self._starts.append(self._length)
        self._length += len(run)

    def _spill(self, file: IO[bytes], run: ResultRun) -> None:
        data = values.to_bytes(run.record())
        position, left = self._offsets[-1], memoryview(data)
        while left:
            written = os.pwrite(file.fileno(), left, position)
            position, left = position + written, left[written:]
        self._offsets.append(position)

    def slice(self, start: int, stop: int) -> list[ResultItem]:
        """Give the results from one position to another. Those that were forgotten are left out."""
        items: list[ResultItem] = []
        for run in self.runs(start, stop):
            items += run.items()
        return items

    def runs(self, start: int, stop: int) -> list[ResultRun]:
        """Give the results from one position to another as they came. Those that were forgotten are left out."""
        found: list[ResultRun] = []
        starts, memory = self._starts, self._memory
        for index in range(max(bisect_right(starts, start) - 1, 0), bisect_left(starts, stop)):
            run = memory[index] if index < len(memory) else self._load(index - len(memory))
            if run is not None:
                begin = starts[index]
                part = run.part(start - begin, stop - begin)
                if len(part):
                    found.append(part)
        return found

    def boundary(self, position: int) -> int:
        """Give the first position, from this one on, behind results that came together."""
        index = bisect_left(self._starts, position)
        return self._starts[index] if index < len(self._starts) else self._length

    def _load(self, index: int) -> ResultRun:
        if self._file is None:
            raise IndexError(index)
        begin, end = self._offsets[index], self._offsets[index + 1]
        data = b""
        while len(data) < end - begin:  # A system may give less at once than was asked for.
            part = os.pread(self._file.fileno(), end - begin - len(data), begin + len(data))
            if not part:
                raise OSError(f"a result that waited on disk is gone: {self._file.name!r} was cut")
            data += part
        return ResultRun.from_record(values.from_bytes(data))

    def forget(self, start: int, stop: int, place: str | None = None) -> None:
        """Free the memory of results that came together, all of which are between two positions.

        They are not given again.

        Args:
            start: Position of the first.
            stop: Position behind the last, a `boundary`.
            place: Only those of this place; None for all.
        """
        memory, sizes, starts = self._memory, self._sizes, self._starts
        for index in range(bisect_left(starts, start), min(bisect_left(starts, stop), len(memory))):
            run = memory[index]
            if run is not None and place in (None, run.place):
                memory[index] = None
                self._bytes -= sizes[index]
        self._drop_forgotten()

    def _drop_forgotten(self) -> None:
        """Drop what stands for forgotten results at the beginning, if it is much."""
        memory = self._memory
        count = next((index for index, run in enumerate(memory) if run is not None), len(memory))
        if 2 * count >= len(memory):
            del memory[:count], self._sizes[:count], self._starts[:count]

    def close(self) -> None:
        """Give the disk back."""
        if self._file is not None:
            self._file.close()


def _size_of(run: ResultRun) -> int:
    """Estimate the bytes that results cost in memory."""
    given = run.values
    size = _SMALL * len(given) if _SMALL_TYPES.issuperset(map(type, given)) else sum(map(values.size_of, given))
    if type(run.frames) is FrameRun:
        return size + ITEM_OVERHEAD + RUN_ITEM_OVERHEAD * len(given)
    return size + ITEM_OVERHEAD * len(given)
