"""Taking over what an adapter gives: its large arrays are copied only if somebody else could still change them.

An adapter may step an array in place and return it each time, or yield the same buffer again and again. So a value is
taken over at once, in the thread that made it, before that can go on. What can be changed and is held by somebody
besides the value itself is copied; what nobody else holds is not, and becomes read-only.

Who holds something is told by the count of its references once the value itself has been let go.
"""

from __future__ import annotations

import array
import gc
import mmap
import sys
from collections.abc import Sequence
from typing import Any

from dfmesh.errors import ValueEncodingError
from dfmesh.values.codec import Buffer, from_bytes, pack, to_bytes, unpack
from dfmesh.values.copying import UNCHANGING, Private
from dfmesh.values.large_arrays import is_large_array, read_only_view
from dfmesh.values.new_arrays import copy_to_send, empty_array, is_made_for_sending
from dfmesh.values.plain import is_plain

_CHANGEABLE = (bytearray, array.array, mmap.mmap)


def take_over(cell: list[Any], leaves: bool = False) -> Any:
    """Make a value our own.

    Args:
        cell: A list with the value, to which nobody else may hold a reference but those who could change it later;
            it is emptied.
        leaves: Whether it is about to be sent to other sites: what is worth it is copied here to where that is done
            from, and not later on the event loop.

    Returns:
        The value in a `Private`, or as it is if it never changes, or cannot be sent: `private_copy` says why then.
    """
    value = cell.pop()
    kind = type(value)
    if kind in UNCHANGING or kind is object or hasattr(kind, "__next__") or hasattr(kind, "__anext__"):
        return value
    if is_large_array(value):
        references = _references(value)  # Before another one is on its way to the next function.
        ours = _large_array_of_ours(value, references, leaves)
        if ours is not None:
            return Private(ours)
    try:
        if is_plain(value):
            return Private(from_bytes(to_bytes(value)))
        head, buffers = pack(value)
    except ValueEncodingError:
        return value
    del value
    return Private(unpack(head, _secured(buffers, leaves) if buffers else buffers))


def _large_array_of_ours(array: Any, references: int, leaves: bool) -> Any | None:
    """Give a large array, or a copy, that nobody else can change; None if only the general way can tell.

    Args:
        array: The array.
        references: How many there are to it, as counted by `take_over`.
        leaves: As for `take_over`.
    """
    if is_made_for_sending(array):
        array.flags.writeable = False  # As was said to who made it, and may hold it.
        return read_only_view(array)
    if array.base is not None:
        return None
    if array.flags.writeable:
        if references > _ONLY_OURS:
            return _copy_of(array)
        array.flags.writeable = False
    return read_only_view(copy_to_send(array) if leaves else array)


def _copy_of(array: Any) -> Any:
    copy = empty_array(array.shape, array.dtype)  # From where it is sent it is not copied once more.
    copy[...] = array  # It lets other threads run meanwhile.
    copy.flags.writeable = False
    return copy


def _secured(buffers: Sequence[Buffer], leaves: bool) -> list[Buffer]:
    """Copy the buffers that others could change, or that are better copied now, and make the others read-only."""
    traces = _Traces()
    traced = [traces.follow(buffer) for buffer in buffers]
    secured: list[Buffer] = []
    for buffer, trace in zip(buffers, traced, strict=True):
        if traces.could_change(trace):
            secured.append(_copied(buffer))
        else:
            secured.append(_copied_to_send(buffer) if leaves and not trace.made_for_sending else buffer)
    return secured


def _copied_to_send(buffer: Buffer) -> Buffer:
    import numpy as np

    if isinstance(buffer, bytes) or not _is_array(buffer.obj):
        return buffer  # What is rebuilt of other buffers may not be a view of them.
    array = np.frombuffer(buffer, np.uint8)
    copy = copy_to_send(array)
    return buffer if copy is array else memoryview(copy)


def _copied(buffer: Buffer) -> memoryview:
    import numpy as np

    return memoryview(_copy_of(np.frombuffer(buffer, np.uint8)))


class _Trace:
    """What one buffer is a view of, link by link.

    Attributes:
        links: Positions of the links.
        changeable: Whether one of them can be changed by who holds it.
        unknown: It ends in memory of which nobody knows who else has it.
        made_for_sending: It ends in memory from where it is sent without a copy.
    """

    __slots__ = ("changeable", "links", "made_for_sending", "unknown")

    def __init__(self) -> None:
        self.links: list[int] = []
        self.changeable = False
        self.unknown = False
        self.made_for_sending = False


class _Traces:
    """The objects behind some buffers, and which of them refer to which."""

    def __init__(self) -> None:
        self._links: list[Any] = []
        self._positions: dict[int, int] = {}
        self._referrers: list[set[int]] = []

    def follow(self, buffer: Buffer) -> _Trace:
        """Find out what a buffer is a view of."""
        trace = _Trace()
        referrer = id(buffer)
        link = _exporter_of(buffer) if type(buffer) is memoryview else None  # Bytes never change.
        while link is not None:
            position = self._positions.setdefault(id(link), len(self._links))
            if position == len(self._links):
                self._links.append(link)
                self._referrers.append(set())
            self._referrers[position].add(referrer)
            trace.links.append(position)
            referrer = id(link)
            link = _look(link, trace)
        return trace

    def could_change(self, trace: _Trace) -> bool:
        """Say whether somebody else could change what a trace led to; if not, it becomes read-only."""
        if trace.unknown:
            return True
        if not trace.changeable:
            return False
        links, referrers = self._links, self._referrers
        if any(_count(links, position) - _ONE > len(referrers[position]) for position in trace.links):
            return True
        for position in trace.links:
            if _is_array(links[position]):
                links[position].flags.writeable = False
        return False


def _look(link: Any, trace: _Trace) -> Any:
    """Note in a trace what a link is like, and give the next one; None at the end."""
    kind = type(link)
    if _is_array(link):
        if is_made_for_sending(link):
            link.flags.writeable = False  # As was said to who made it, and may hold it.
            trace.changeable = False
            trace.made_for_sending = True
            return None
        return _behind_array(link, trace)
    if kind is memoryview:
        trace.changeable |= not link.readonly
        return _exporter_of(link)
    if kind.__name__ == "managedbuffer":  # What all memoryviews share that were made of one another.
        found = gc.get_referents(link)
        return found[0] if found else None
    if kind is bytes:
        return None
    if kind.__module__ == "pyarrow.lib":
        # Whether it belongs to an array of numpy that somebody changes, it does not tell.
        trace.unknown |= link.is_mutable
    elif kind in _CHANGEABLE:
        trace.changeable = True
    else:
        trace.unknown = True
    return None


def _behind_array(link: Any, trace: _Trace) -> Any:
    writable, base = bool(link.flags.writeable), link.base
    trace.changeable |= writable
    if base is None or type(base) is bytes:
        return None
    if writable or _is_array(base):
        return base
    # A read-only array on what is no array: one that was received, or of a library that knows what it does.
    return None


def _exporter_of(view: memoryview) -> Any:
    found = gc.get_referents(view)
    return found[0] if found else None


def _is_array(link: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(link, numpy.ndarray)


def _count(links: list[Any], position: int) -> int:
    return sys.getrefcount(links[position])


def _references(value: Any) -> int:
    return sys.getrefcount(value)


def _references_when_taken(cell: list[Any]) -> int:
    value = cell.pop()
    return _references(value)


_ONE = _count([object()], 0)
"""What is counted for an object to which nobody refers but the list: it depends on the interpreter."""

_ONLY_OURS = _references_when_taken([object()])
"""What `take_over` counts for an object to which nobody else refers."""
