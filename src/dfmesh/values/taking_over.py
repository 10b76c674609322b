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
from dfmesh.values.new_arrays import empty_array, is_made_for_sending
from dfmesh.values.plain import is_plain

_CHANGEABLE = (bytearray, array.array, mmap.mmap)


def take_over(cell: list[Any]) -> Any:
    """Make a value our own.

    Args:
        cell: A list with the value, to which nobody else may hold a reference but those who could change it later;
            it is emptied.

    Returns:
        The value in a `Private`, or as it is if it never changes, or cannot be sent: `private_copy` says why then.
    """
    value = cell.pop()
    kind = type(value)
    if kind in UNCHANGING or kind is object or hasattr(kind, "__next__") or hasattr(kind, "__anext__"):
        return value
    try:
        if is_plain(value):
            return Private(from_bytes(to_bytes(value)))
        head, buffers = pack(value)
    except ValueEncodingError:
        return value
    del value
    return Private(unpack(head, _secured(buffers) if buffers else buffers))


def _secured(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Copy the buffers that others could change, and make the others read-only."""
    traces = _Traces()
    traced = [traces.follow(buffer) for buffer in buffers]
    return [
        _copied(buffer) if traces.could_change(trace) else buffer for buffer, trace in zip(buffers, traced, strict=True)
    ]


def _copied(buffer: Buffer) -> memoryview:
    import numpy as np

    copy = empty_array(len(buffer), np.uint8)  # From where it is sent it is not copied once more.
    copy[:] = np.frombuffer(buffer, np.uint8)  # Unlike `bytes`, it lets other threads run meanwhile.
    copy.flags.writeable = False
    return memoryview(copy)  # type: ignore[arg-type]


class _Trace:
    """What one buffer is a view of, link by link.

    Attributes:
        links: Positions of the links.
        changeable: Whether one of them can be changed by who holds it.
        unknown: It ends in memory of which nobody knows who else has it.
    """

    __slots__ = ("changeable", "links", "unknown")

    def __init__(self) -> None:
        self.links: list[int] = []
        self.changeable = False
        self.unknown = False


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


_ONE = _count([object()], 0)
"""What is counted for an object to which nobody refers but the list: it depends on the interpreter."""
