"""The calls that go on in a site, in memory that outlives it: the supervisor reads it after a SIGKILL.

Behind them stands how often the site's event loop has said that it turns.
"""

from __future__ import annotations

import mmap
import os
from struct import Struct

from dfmesh.engine.call_log import RUN
from dfmesh.engine.frame_run import FrameRun

Frame = tuple[int, ...]

_LONGEST_JOB = 72
_LONGEST_FRAME = 12
_SLOTS = 1024
_HEAD = Struct("<xBHI")  # frame length, job length, transition; the state is in the first byte
_RUN_AT = _HEAD.size + _LONGEST_JOB + 8 * _LONGEST_FRAME
_RUN_SIZE = RUN // 8
_SLOT_SIZE = _RUN_AT + _RUN_SIZE
_ALONE = (1).to_bytes(_RUN_SIZE, "little")
_ENTRIES = [Struct(f"<BHI{_LONGEST_JOB}s{length}q") for length in range(_LONGEST_FRAME + 1)]
_FREE, _RUNNING = 0, 1
_NO_SLOT = -1
_BEATS = Struct("<Q")
_BEATS_AT = -(_SLOTS * _SLOT_SIZE // -_BEATS.size) * _BEATS.size
TABLE_SIZE = _BEATS_AT + _BEATS.size


def make_table() -> int:
    """Make an empty table and return its descriptor. It has no name in any file system."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("dfmesh-calls", os.MFD_CLOEXEC)
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, TABLE_SIZE)
    return descriptor


class CallLog:
    """The writing side, in the site. Not thread-safe: it belongs to the event loop."""

    def __init__(self, descriptor: int) -> None:
        """Write to the table behind a descriptor, which is not needed afterwards."""
        self._table = mmap.mmap(descriptor, TABLE_SIZE)
        self._free = list(range((_SLOTS - 1) * _SLOT_SIZE, -1, -_SLOT_SIZE))
        self._beats = 0

    def started(self, job: str, transition: int, frame: Frame) -> int:
        """Note the start of a call and return its slot.

        A call for which there is no slot, or whose job or frame is longer than any that dfmesh makes, is not noted
        in full: it would be missing from the report of a crash, nothing else.
        """
        if not self._free:
            return _NO_SLOT
        slot = self._free.pop()
        self._write(slot, job, transition, frame, _ALONE)
        return slot

    def _write(self, slot: int, job: str, transition: int, frame: Frame, run: bytes) -> None:
        name = job.encode()[:_LONGEST_JOB]
        kept = frame[:_LONGEST_FRAME]
        _ENTRIES[len(kept)].pack_into(self._table, slot + 1, len(kept), len(name), transition, name, *kept)
        self._table[slot + _RUN_AT : slot + _SLOT_SIZE] = run
        self._table[slot] = _RUNNING  # last, so that a kill in between leaves no half entry

    def run_started(self, job: str, transition: int, frames: FrameRun) -> int:
        """Note the start of at most `RUN` calls, for frames that follow one another, and return their slot."""
        if not self._free:
            return _NO_SLOT
        slot = self._free.pop()
        self._write(slot, job, transition, frames[0], ((1 << len(frames)) - 1).to_bytes(_RUN_SIZE, "little"))
        return slot

    def run_left(self, slot: int, left: int) -> None:
        """Note which of the calls in a slot still go on, as bits from the lowest on."""
        if slot != _NO_SLOT:
            self._table[slot + _RUN_AT : slot + _SLOT_SIZE] = left.to_bytes(_RUN_SIZE, "little")

    def ended(self, slot: int) -> None:
        """Note the end of what is in a slot."""
        if slot != _NO_SLOT:
            self._table[slot] = _FREE
            self._free.append(slot)

    def beat(self) -> None:
        """Say that the event loop turns."""
        self._beats += 1
        _BEATS.pack_into(self._table, _BEATS_AT, self._beats)


def read_beats(descriptor: int) -> int:
    """Give how often a site has said that its event loop turns."""
    data = os.pread(descriptor, _BEATS.size, _BEATS_AT)
    return int(_BEATS.unpack(data)[0]) if len(data) == _BEATS.size else 0


def read_table(descriptor: int) -> tuple[tuple[str, int, Frame], ...]:
    """List job, transition and frame of the calls in a table, whatever the site that wrote it did to it."""
    with mmap.mmap(descriptor, TABLE_SIZE, access=mmap.ACCESS_READ) as table:
        slots = [slot for slot in range(0, _SLOTS * _SLOT_SIZE, _SLOT_SIZE) if table[slot] == _RUNNING]
        return tuple(call for slot in slots for call in _read_slot(table, slot))


def clear_table(descriptor: int) -> None:
    """Empty a table for the next life of the site."""
    os.ftruncate(descriptor, 0)
    os.ftruncate(descriptor, TABLE_SIZE)


def _read_slot(table: mmap.mmap, slot: int) -> list[tuple[str, int, Frame]]:
    length = min(table[slot + 1], _LONGEST_FRAME)
    _, name_length, transition, name, *frame = _ENTRIES[length].unpack_from(table, slot + 1)
    job = name[:name_length].decode(errors="replace")
    left = int.from_bytes(table[slot + _RUN_AT : slot + _SLOT_SIZE], "little")
    if not frame:
        return [(job, transition, ())] if left else []
    *around, first = frame
    return [(job, transition, (*around, first + number)) for number in range(RUN) if left >> number & 1]
