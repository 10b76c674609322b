"""Shared memory without names: sealed memory files whose descriptors travel over the connection.

The sender owns a pool of segments. It copies a buffer into a free block once, however many receive it, and gets the
block back when the last of them dropped its last view. No file system knows of a segment, so the memory is freed by
the kernel when the processes that use it are gone, however they end.
"""

from __future__ import annotations

import fcntl
import itertools
import mmap
import os
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from dfmesh.targets.wire import Spot, WireError

SHARE_FROM = 256 * 1024
"""Smaller buffers cost less in the byte stream."""

_ARENA = 32 * 2**20
_SMALLEST_BLOCK = 512 * 1024
_LARGEST_SMALL_BLOCK = 8 * 2**20
_GRAIN = 2**20
_MOST_SEGMENTS = 64
_segment_numbers = itertools.count(1)


def available() -> bool:
    """Whether this system has memory files that can be sealed and mapped."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS")


class Segment:
    """A piece of shared memory, mapped here.

    Attributes:
        number: Its number in what this process sends, unique in this process.
        descriptor: Of its memory file; closed with the segment.
        size: Bytes.
        memory: The mapping; read-only where the segment came from another process.
    """

    def __init__(self, descriptor: int, size: int, writable: bool) -> None:
        self.number = next(_segment_numbers)
        self.descriptor = descriptor
        self.size = size
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        try:
            self.memory = mmap.mmap(descriptor, size, mmap.MAP_SHARED, access)
        except BaseException:
            os.close(descriptor)
            raise
        weakref.finalize(self, os.close, descriptor).atexit = False


class Place:
    """Where an attachment is: a segment, an offset, and what keeps the bytes there until all are done with them."""

    __slots__ = ("_owner", "offset", "segment")

    def __init__(self, segment: Segment, offset: int, owner: Any) -> None:
        self.segment = segment
        self.offset = offset
        self._owner = owner


class _Block:
    """A block in use. It goes back to the pool with its last reference, in whatever thread that is."""

    __slots__ = ("_give_back", "_segment", "offset")

    def __init__(self, segment: _PoolSegment, offset: int, give_back: Callable[[_PoolSegment, int], None]) -> None:
        self._segment = segment
        self.offset = offset
        self._give_back = give_back

    def __del__(self) -> None:
        self._give_back(self._segment, self.offset)


class _PoolSegment(Segment):
    """A segment of our own, cut into blocks of one size."""

    def __init__(self, size: int, block_size: int) -> None:
        descriptor = os.memfd_create("dfmesh", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        except BaseException:
            os.close(descriptor)
            raise
        super().__init__(descriptor, size, writable=True)
        self.block_size = block_size
        self.view = memoryview(self.memory)
        self.free = list(range(size - block_size, -1, -block_size))
        self.blocks = len(self.free)


class SegmentPool:
    """The segments that this process copies its large buffers into.

    Blocks are used again, the last one first: memory that was written before is several times faster.

    Attributes:
        placed: How many buffers were copied into it so far.
    """

    def __init__(
        self,
        on_retired: Callable[[Segment], None],
        on_grown: Callable[[], None] = lambda: None,
        limit: int | None = None,
    ) -> None:
        """Make an empty pool.

        Args:
            on_retired: Gets each segment that the pool gives up: whoever mapped it is to be told.
            on_grown: Called when a segment was added.
            limit: Most bytes of all segments together; a quarter of the machine's memory if None.
        """
        self.placed = 0
        self._on_retired = on_retired
        self._on_grown = on_grown
        self._limit = _quarter_of_memory() if limit is None else limit
        self._segments: list[_PoolSegment] = []
        self._returned: deque[tuple[_PoolSegment, int]] = deque()

    @property
    def size(self) -> int:
        """Bytes of all segments, in use or not."""
        return sum(segment.size for segment in self._segments)

    @property
    def in_use(self) -> int:
        """Bytes of the blocks that hold something."""
        self._collect()
        return sum((segment.blocks - len(segment.free)) * segment.block_size for segment in self._segments)

    def place(self, view: memoryview) -> Place | None:
        """Copy a buffer into the pool; None if there is no room, and it has to travel another way."""
        segment = self._segment_for(len(view))
        if segment is None:
            return None
        self.placed += 1
        offset = segment.free.pop()
        segment.view[offset : offset + len(view)] = view
        # append is atomic and takes no lock, so it may be called from any thread, from within the garbage collector
        block = _Block(segment, offset, lambda segment, offset: self._returned.append((segment, offset)))
        return Place(segment, offset, block)

    def trim(self) -> None:
        """Give up the segments that hold nothing."""
        self._collect()
        idle = [segment for segment in self._segments if len(segment.free) == segment.blocks]
        self._segments = [segment for segment in self._segments if len(segment.free) < segment.blocks]
        for segment in idle:
            self._on_retired(segment)

    def _collect(self) -> None:
        while self._returned:
            segment, offset = self._returned.popleft()
            segment.free.append(offset)

    def _segment_for(self, size: int) -> _PoolSegment | None:
        self._collect()
        block_size = _block_size(size)
        fitting = [s for s in self._segments if s.free and block_size <= s.block_size <= 2 * block_size]
        if fitting:
            return min(fitting, key=lambda segment: segment.block_size)
        total = _ARENA if block_size <= _LARGEST_SMALL_BLOCK else block_size
        if not self._has_room(total):
            self.trim()
        if not self._has_room(total):
            return None
        try:
            segment = _PoolSegment(total, block_size)
        except OSError:
            return None  # out of descriptors or memory: the byte stream still works
        self._segments.append(segment)
        self._on_grown()
        return segment

    def _has_room(self, wanted: int) -> bool:
        return len(self._segments) < _MOST_SEGMENTS and self.size + wanted <= self._limit


def _block_size(size: int) -> int:
    if size > _LARGEST_SMALL_BLOCK:
        return -(-size // _GRAIN) * _GRAIN
    block = _SMALLEST_BLOCK
    while block < size:
        block *= 2
    return block


def _quarter_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


class MappedSegments:
    """The segments that one peer announced to us, by the numbers that it gave them."""

    def __init__(self, on_dropped: Callable[[int, int], None]) -> None:
        """Begin with none.

        Args:
            on_dropped: Gets segment and offset when the last view of a buffer is gone, in any thread.
        """
        self._segments: dict[int, Segment] = {}
        self._on_dropped = on_dropped
        self._alive: dict[int, weakref.ref[Any]] = {}

    def add(self, number: int, size: int, descriptor: int) -> None:
        """Map an announced segment; takes over the descriptor.

        Raises:
            WireError: it is not a sealed memory file of that size, or there are too many.
        """
        try:
            sealed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
            honest = bool(sealed) and size > 0 and os.fstat(descriptor).st_size == size
        except OSError:
            honest = False
        if not honest or number in self._segments or len(self._segments) > 4 * _MOST_SEGMENTS:
            # memory that can shrink under us would be our death by SIGBUS
            os.close(descriptor)
            raise WireError("a segment of shared memory that cannot be trusted")
        try:
            self._segments[number] = Segment(descriptor, size, writable=False)
        except (OSError, ValueError) as error:
            raise WireError(f"a segment of shared memory that cannot be mapped: {error}") from error

    def drop(self, number: int) -> Segment | None:
        """Forget a segment; views of it stay valid."""
        return self._segments.pop(number, None)

    def find(self, spot: Spot) -> tuple[memoryview, Place]:
        """Give a buffer in a segment.

        Raises:
            WireError: there is no such segment, or it is smaller.
        """
        segment = self._segments.get(spot.segment)
        if segment is None or spot.size == 0 or spot.offset + spot.size > segment.size:
            raise WireError("a buffer outside of shared memory")
        import numpy as np

        # Every view of a numpy array keeps that very array alive, which neither a memoryview nor a slice of one does:
        # so the array's end is the end of the last view.
        owner: Any = np.frombuffer(segment.memory, dtype=np.uint8, count=spot.size, offset=spot.offset)
        alive, on_dropped, number, offset = self._alive, self._on_dropped, spot.segment, spot.offset

        def dropped(reference: weakref.ref[Any]) -> None:
            del alive[id(reference)]
            on_dropped(number, offset)

        reference = weakref.ref(owner, dropped)
        alive[id(reference)] = reference
        return memoryview(owner), Place(segment, spot.offset, owner)
