"""Memory files in the memory of this process, with huge pages where the system has them.

`mmap` of the standard library holds the lock of the interpreter while pages are provided or let go, and cannot choose
the address, on which huge pages depend. So this calls the C library.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import weakref
from functools import cache

HUGE_PAGE = 2 * 2**20
"""Bytes of a huge page. On a system where they are larger, pages stay small."""

_PRIVATE_RESERVATION = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # Linux, mman.h: MAP_NORESERVE
_SHARED_AT = mmap.MAP_SHARED | 0x10  # MAP_FIXED
_NO_ACCESS = 0
_FEW = 32 * 2**20
_FAILED = ctypes.c_void_p(-1).value

# Linux, mman-common.h. What a kernel does not know, it refuses.
_DONTNEED = 4
_POPULATE_WRITE = 23
_COLLAPSE = 25

_library = ctypes.CDLL(None, use_errno=True)
_mmap = _library.mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
_munmap = _library.munmap
_munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_madvise = _library.madvise
_madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Mapping:
    """A memory file, mapped from its start. It is unmapped when this and the last view of the memory are gone.

    Attributes:
        size: Bytes.
        view: The bytes. Every view of it keeps them.
    """

    def __init__(self, descriptor: int, size: int, *, writable: bool) -> None:
        """Map a file.

        Args:
            descriptor: Of the file; it may be closed afterwards.
            size: Bytes, of which the file must have as many.
            writable: Whether to write to it.

        Raises:
            OSError: the system refuses.
        """
        self.size = size
        self._huge = True
        self._address = _map(descriptor, size, mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
        memory = (ctypes.c_ubyte * size).from_address(self._address)
        weakref.finalize(memory, _munmap, self._address, size).atexit = False
        view = memoryview(memory).cast("B")
        self.view = view if writable else view.toreadonly()

    def provide(self, start: int, stop: int) -> None:
        """Have the system provide the pages of a range that is about to be written, huge ones if it has any for us.

        That is faster than one page at each first write. A huge page is mapped 512 times as fast as as many bytes in
        small ones, in all processes that use it, and later again.

        Args:
            start: First byte, a multiple of `HUGE_PAGE`.
            stop: Byte behind the last one, a multiple of `HUGE_PAGE`. What was in the range is lost.

        Raises:
            MemoryError: there is no memory for them. Writing to them would end the process.
        """
        if self._huge and has_huge_pages():
            for first in range(start, stop, HUGE_PAGE):
                self.view[first] = 0  # A huge page is made from at least one small one.
            if _madvise(self._address + start, stop - start, _COLLAPSE) == 0:
                return
            self._huge = False  # Memory is in too many pieces: asking again and again costs much.
        if _madvise(self._address + start, stop - start, _POPULATE_WRITE) and ctypes.get_errno() == errno.ENOMEM:
            raise MemoryError("no memory for a large buffer")

    def lets_go(self, size: int) -> bool:
        """Say whether to let a buffer of so many bytes go after use: to map few bytes in small pages takes too long."""
        return size > _FEW or (self._huge and has_huge_pages())

    def let_go(self, start: int, stop: int) -> None:
        """Take a range out of the memory of this process. The file keeps what is in it, and it comes back when used."""
        _madvise(self._address + start, stop - start, _DONTNEED)


@cache
def has_huge_pages() -> bool:
    """Find out whether this system, since Linux 6.1, gives shared memory huge pages when asked to."""
    descriptor = os.memfd_create("dfmesh-probe", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, HUGE_PAGE)
        address = _map(descriptor, HUGE_PAGE, mmap.PROT_READ | mmap.PROT_WRITE)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    ctypes.memset(address, 0, 1)
    given: bool = _madvise(address, HUGE_PAGE, _COLLAPSE) == 0
    _munmap(address, HUGE_PAGE)
    return given


def _map(descriptor: int, size: int, access: int) -> int:
    """Map a file at a multiple of `HUGE_PAGE`; gives the address."""
    reserved = size + HUGE_PAGE
    begin = _mapped(None, reserved, _NO_ACCESS, _PRIVATE_RESERVATION, -1)
    address = -(-begin // HUGE_PAGE) * HUGE_PAGE
    try:
        _mapped(address, size, access, _SHARED_AT, descriptor)
    except OSError:
        _munmap(begin, reserved)
        raise
    if address > begin:
        _munmap(begin, address - begin)
    end = -(-(address + size) // mmap.PAGESIZE) * mmap.PAGESIZE
    if begin + reserved > end:
        _munmap(end, begin + reserved - end)
    return address


def _mapped(address: int | None, size: int, access: int, flags: int, descriptor: int) -> int:
    found: int | None = _mmap(address, size, access, flags, descriptor, 0)
    if found is None or found == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found
