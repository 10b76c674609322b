"""Arrays that are in shared memory before they are sent, and how their bytes are found again when they are."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any


class GivenArray:
    """An array in a block of the pool.

    Attributes:
        address: Of the array in this process.
        segment: Where the block is.
        offset: First byte of the array in it.
        size: Bytes of the array.
        block: Keeps the block from being used for something else.
    """

    __slots__ = ("_array", "address", "block", "offset", "segment", "size")

    def __init__(self, array: Any, segment: Any, offset: int, block: Any, ended: weakref.ReferenceType[Any]) -> None:
        self.segment = segment
        self.offset = offset
        self.size: int = array.nbytes
        self.block = block
        self.address = _address_of(array)
        self._array = ended

    def position_of(self, address: int, size: int) -> int | None:
        """Give where in the segment bytes of this process are; None if they are elsewhere."""
        start = address - self.address
        return self.offset + start if start >= 0 and start + size <= self.size else None

    def freeze(self) -> None:
        """Make the array read-only. Views of it that exist stay as they are."""
        array = self._array()
        if array is not None:
            array.flags.writeable = False


class GivenArrays:
    """The arrays that live.

    Attributes:
        ended: Those that lived and have not been dealt with.
    """

    def __init__(self, on_ended: Callable[[], None], small: int) -> None:
        """Begin with none.

        Args:
            on_ended: Called when an array has joined `ended`, on any thread, at any moment.
            small: Bytes of an array up to which that is not done: its memory stays until it is used again anyway.
        """
        self._on_ended = on_ended
        self._small = small
        self._alive: dict[int, GivenArray] = {}
        self._starting_at: dict[int, GivenArray] = {}
        self.ended: deque[GivenArray] = deque()

    def __bool__(self) -> bool:
        """Say whether there are any."""
        return bool(self._alive)

    def add(self, array: Any, segment: Any, offset: int, block: Any) -> None:
        """Take note of a new array. Every view of it must keep it alive."""
        alive, starting_at, ended = self._alive, self._starting_at, self.ended
        on_ended = self._on_ended if array.nbytes > self._small else None

        def dropped(reference: weakref.ReferenceType[Any]) -> None:
            given = alive.pop(id(reference))
            del starting_at[given.address]
            ended.append(given)
            if on_ended is not None:
                on_ended()

        reference = weakref.ref(array, dropped)
        given = alive[id(reference)] = GivenArray(array, segment, offset, block, reference)
        starting_at[given.address] = given

    def find(self, view: memoryview) -> tuple[GivenArray, int] | None:
        """Find the array that some bytes are part of, and where in its segment they are."""
        import numpy as np

        address = _address_of(np.frombuffer(view, dtype=np.uint8))
        exactly = self._starting_at.get(address)
        if exactly is not None and len(view) <= exactly.size:
            return exactly, exactly.offset
        for given in list(self._alive.values()):
            position = given.position_of(address, len(view))
            if position is not None:
                return given, position
        return None


def _address_of(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
