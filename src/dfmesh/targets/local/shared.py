"""Shared memory without names: sealed memory files whose descriptors travel over the connection.

The sender owns a pool of segments. It copies a buffer into a free block once, however many receive it, and gets the
block back when the last of them dropped its last view. No file system knows of a segment, so the memory is freed by
the kernel when the processes that use it are gone, however they end.

Memory that was written before is several times faster, so the pool keeps it for a while. Small blocks stay mapped.
Large ones are mapped at the sender only while they are written, and at a receiver while something there views them.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import math
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dfmesh.targets.local.copying import Copier, Copying, Target
from dfmesh.targets.local.given_arrays import GivenArrays
from dfmesh.targets.local.mapping import HUGE_PAGE, Mapping
from dfmesh.targets.wire import Spot, WireError

if TYPE_CHECKING:
    import numpy as np

SHARE_FROM = 128 * 1024
"""Smaller buffers cost less in the byte stream."""

COPIED_AT_ONCE = 4 * 2**20
"""Largest buffer that is copied on the event loop, in a fraction of a millisecond; others are copied beside it."""

COPIED_AHEAD_FROM = 2 * 2**20 + 1
"""Smallest array that is copied on the thread that made it. To pass the interpreter's lock to and fro for a smaller
one, and to hand it over alone, takes longer than the event loop does."""

_ARENA = 32 * 2**20
_SMALLEST_BLOCK = 128 * 1024
_MOST_SEGMENTS = 64
_SEAL_FUTURE_WRITE = 0x10  # Linux, fcntl.h: only mappings that exist may write
_segment_numbers = itertools.count(1)


def available() -> bool:
    """Whether this system has memory files that can be sealed and mapped."""
    return hasattr(os, "memfd_create") and hasattr(fcntl, "F_ADD_SEALS") and sys.maxsize > 2**32


class Segment:
    """A piece of shared memory, mapped here.

    Attributes:
        number: Its number in what this process sends, unique in this process.
        descriptor: Of its memory file; closed with the segment.
        size: Bytes.
        mapping: Where it is; read-only where the segment came from another process.
    """

    def __init__(self, descriptor: int, size: int, writable: bool) -> None:
        self.number = next(_segment_numbers)
        self.descriptor = descriptor
        self.size = size
        try:
            self.mapping = Mapping(descriptor, size, writable=writable)
        except BaseException:
            os.close(descriptor)
            raise
        weakref.finalize(self, os.close, descriptor).atexit = False


class Place:
    """Where an attachment is, and what keeps the bytes there until all are done with them.

    Attributes:
        segment: The segment.
        offset: First byte in it.
        copying: What is still copying the bytes there, or has failed to do so; None if they are there.
    """

    __slots__ = ("_owner", "copying", "offset", "segment")

    def __init__(self, segment: Segment, offset: int, owner: Any, copying: Copying | None = None) -> None:
        self.segment = segment
        self.offset = offset
        self.copying = copying
        self._owner = owner

    @property
    def is_being_copied(self) -> bool:
        """Whether the bytes are not all there yet."""
        return self.copying is not None and not self.copying.over


class _Block:
    """A block in use. It goes back to the pool with its last reference, in whatever thread that is."""

    __slots__ = ("_returned", "_segment", "offset")

    def __init__(self, segment: _PoolSegment, offset: int, returned: deque[tuple[_PoolSegment, int]]) -> None:
        self._segment = segment
        self.offset = offset
        self._returned = returned

    def __del__(self) -> None:
        # It is atomic and takes no lock, so it may happen in any thread, also from within the garbage collector.
        self._returned.append((self._segment, self.offset))


class _PoolSegment(Segment):
    """A segment of our own, cut into blocks of one size."""

    def __init__(self, size: int, block_size: int) -> None:
        descriptor = os.memfd_create("dfmesh", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        except BaseException:
            os.close(descriptor)
            raise
        super().__init__(descriptor, size, writable=True)
        with contextlib.suppress(OSError):  # Before Linux 5.1 those who get it are trusted not to write.
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEAL_FUTURE_WRITE)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)
        self.block_size = block_size
        self.free = list(range(size - block_size, -1, -block_size))
        self.blocks = len(self.free)


class SegmentPool:
    """The segments that this process copies its large buffers into.

    Blocks are used again, the last one first: memory that was written before is several times faster.

    Attributes:
        placed: How many buffers and arrays were given a place in it so far.
        copied: Bytes that were copied on the event loop so far.
    """

    def __init__(
        self,
        on_retired: Callable[[Segment], None],
        on_grown: Callable[[], None] = lambda: None,
        on_ended: Callable[[], None] = lambda: None,
        limit: int | None = None,
    ) -> None:
        """Make an empty pool.

        Args:
            on_retired: Gets each segment that the pool gives up: whoever mapped it is to be told.
            on_grown: Called when a segment was added, on any thread.
            on_ended: Called when `collect` is of use, on any thread, at any moment.
            limit: Most bytes of all segments together; a quarter of the machine's memory if None.
        """
        self.placed = 0
        self.copied = 0
        self._on_retired = on_retired
        self._on_grown = on_grown
        self._limit = _quarter_of_memory() if limit is None else limit
        self._segments: list[_PoolSegment] = []
        self._latest: dict[int, _PoolSegment] = {}
        self._returned: deque[tuple[_PoolSegment, int]] = deque()
        self._copier = Copier()
        self._given = GivenArrays(on_ended, COPIED_AT_ONCE)
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """Bytes of all segments, in use or not."""
        return sum(segment.size for segment in self._segments)

    @property
    def in_use(self) -> int:
        """Bytes of the blocks that hold something."""
        with self._lock:
            self._collect()
            return sum((segment.blocks - len(segment.free)) * segment.block_size for segment in self._segments)

    def place(self, view: memoryview) -> Place | None:
        """Copy a buffer into the pool, on the running event loop or beside it. What is in the pool already stays there.

        Returns:
            Where it is, or will be when `copying` is over. None if there is no room, and it has to travel another way.
        """
        found = self._given.find(view) if self._given else None
        if found is not None:
            array, position = found
            array.freeze()
            return Place(array.segment, position, array.block)
        taken = self._take(len(view), on_loop=True)
        if taken is None:
            return None
        segment, offset, block = taken
        if len(view) > COPIED_AT_ONCE:
            target = Target(segment.mapping, offset, len(view), block)
            return Place(segment, offset, block, self._copier.start(view, target))
        segment.mapping.view[offset : offset + len(view)] = view
        self.copied += len(view)
        return Place(segment, offset, block)

    def new_array(self, shape: tuple[int, ...], described: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
        """Make an array in the pool, on any thread; None if it is too small for that, or there is no room."""
        import numpy as np

        size = math.prod(shape) * described.itemsize
        taken = self._take(size, on_loop=False) if size >= SHARE_FROM else None
        if taken is None:
            return None
        segment, offset, block = taken
        if size > COPIED_AT_ONCE:
            try:
                segment.mapping.provide(offset, offset + _block_size(size))
            except MemoryError:
                return None
        array = np.ndarray(shape, described, buffer=segment.mapping.view[offset : offset + size])
        self._given.add(array, segment, offset, block)
        return array

    def copy_of(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """Copy an array into the pool, read-only, on any thread, so that the event loop has not to do that later.

        Returns:
            None if it is so small that this gains nothing, or so large that it is better copied in slices; or there is
            no room.
        """
        import numpy as np

        size = array.nbytes
        taken = self._take(size, on_loop=False) if COPIED_AHEAD_FROM <= size <= COPIED_AT_ONCE else None
        if taken is None:
            return None
        segment, offset, block = taken
        copy = np.ndarray(array.shape, array.dtype, buffer=segment.mapping.view[offset : offset + size])
        copy[...] = array  # It lets other threads run meanwhile.
        copy.flags.writeable = False
        self._given.add(copy, segment, offset, block)
        return copy

    def close(self) -> None:
        """Copy nothing any more."""
        self._copier.close()

    def collect(self) -> None:
        """Let the memory go of arrays that have ended, which otherwise happens when the pool is used the next time."""
        with self._lock:
            self._collect()

    def trim(self) -> None:
        """Give up the segments that hold nothing."""
        with self._lock:
            self._collect()
            idle = [segment for segment in self._segments if len(segment.free) == segment.blocks]
            self._segments = [segment for segment in self._segments if len(segment.free) < segment.blocks]
            self._latest.clear()
        for segment in idle:
            self._on_retired(segment)

    def _collect(self) -> None:
        while self._given.ended:
            array = self._given.ended.popleft()
            if array.size > COPIED_AT_ONCE and array.segment.mapping.lets_go(array.size):
                array.segment.mapping.let_go(array.offset, array.offset + array.size)
            del array  # and with it the block, unless it is lent
        while self._returned:
            segment, offset = self._returned.popleft()
            segment.free.append(offset)

    def _take(self, size: int, *, on_loop: bool) -> tuple[_PoolSegment, int, _Block] | None:
        """Take a block for so many bytes; None if there is no room."""
        with self._lock:
            segment = self._segment_for(size, on_loop)
            if segment is None:
                return None
            self.placed += 1
            offset = segment.free.pop()
        return segment, offset, _Block(segment, offset, self._returned)

    def _segment_for(self, size: int, on_loop: bool) -> _PoolSegment | None:
        """Give a segment with a free block for so many bytes; None if there is no room."""
        self._collect()
        block_size = _block_size(size)
        latest = self._latest.get(block_size)
        if latest is not None and latest.free:
            return latest
        found = self._found_or_made(block_size, on_loop)
        if found is not None:
            self._latest[block_size] = found
        return found

    def _found_or_made(self, block_size: int, on_loop: bool) -> _PoolSegment | None:
        fitting = [s for s in self._segments if s.free and block_size <= s.block_size <= 2 * block_size]
        if fitting:
            return min(fitting, key=lambda segment: segment.block_size)
        total = max(1, _ARENA // block_size) * block_size
        if on_loop and not self._has_room(total):
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
    if size > COPIED_AT_ONCE:
        return -(-size // HUGE_PAGE) * HUGE_PAGE
    return max(_SMALLEST_BLOCK, 1 << (size - 1).bit_length())


def _quarter_of_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


class MappedSegments:
    """The segments that one peer announced to us, by the numbers that it gave them."""

    def __init__(self, on_dropped: Callable[[Spot], None]) -> None:
        """Begin with none.

        Args:
            on_dropped: Gets what `find` got when the last view of it is gone, in any thread.
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

    def let_go(self, spot: Spot) -> None:
        """Take a large buffer, of which there is no view, out of the memory of this process."""
        segment = self._segments.get(spot.segment)
        if segment is not None and spot.size > COPIED_AT_ONCE and segment.mapping.lets_go(spot.size):
            segment.mapping.let_go(spot.offset, spot.offset + spot.size)

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
        owner: Any = np.frombuffer(segment.mapping.view, dtype=np.uint8, count=spot.size, offset=spot.offset)
        alive, on_dropped = self._alive, self._on_dropped

        def dropped(reference: weakref.ref[Any]) -> None:
            del alive[id(reference)]
            on_dropped(spot)

        reference = weakref.ref(owner, dropped)
        alive[id(reference)] = reference
        return memoryview(owner), Place(segment, spot.offset, owner)
