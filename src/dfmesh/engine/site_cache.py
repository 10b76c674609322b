"""The cache of a site: values by key, on any storage that fsspec knows, computed once however many ask."""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import time
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from dfmesh import values
from dfmesh.engine.adapters import SiteAdapters, StoragePath
from dfmesh.engine.whole_file import write_whole
from dfmesh.engine.worker_threads import WorkerThreads
from dfmesh.errors import DfmeshError
from dfmesh.netir import Sites

_log = logging.getLogger("dfmesh.cache")

_MAGIC = b"dfmesh 2"
_SEAL = struct.Struct("<8sQI")
"""What ends an entry: the form of what is before, its length and its CRC-32, which tells damage but no intent."""

Found = Callable[[Any], None]
Missed = Callable[[], None]


class Cache(Protocol):
    """What jobs need of a cache; all calls are made, and answered, on the event loop.

    Every `missed` must be followed by one `store` or `release` of the same key.
    """

    def look_up(
        self, key: bytes, ttl: float | None, *, wait: bool, found: Found, missed: Missed, within: Sites | None = None
    ) -> bool:
        """Look a key up; call `found` or `missed`, now or later.

        Args:
            key: The key, encoded.
            ttl: Age in seconds beyond which an entry does not count.
            wait: Whether to wait while somebody else computes the value of an equal key.
            found: Gets the value.
            missed: The caller is to compute it.
            within: To which sites, at most, the caller passes the value on; None if to any. One that may not be at all
                of them does not count as found.

        Returns:
            Whether the answer waits for somebody else who computes the value.
        """
        ...

    def store(self, key: bytes, value: Any, sites: Sites | None = None) -> None:
        """Keep a value and give it to those who wait for it.

        Args:
            key: The key, encoded.
            value: The value.
            sites: Where it may be; None for anywhere.
        """
        ...

    def release(self, key: bytes) -> None:
        """Say that no value will come; the next one who waits computes it."""
        ...


class SiteCache:
    """A cache in the storage that the site's configuration names.

    An entry is one file. It gets its place when it is all written, so that a reader sees all of it or nothing.
    A storage that fails counts as one that has nothing: it is logged, and the value is computed.
    """

    def __init__(self, adapters: SiteAdapters, threads: WorkerThreads, clock: Callable[[], float] = time.time) -> None:
        """Make the cache of a site.

        Args:
            adapters: The site's; they know its storage.
            threads: On which the storage is read and written.
            clock: Gives seconds since some moment that is the same for all processes that share the storage.
        """
        self._adapters = adapters
        self._threads = threads
        self._clock = clock
        self._computing = _Computing()

    def look_up(
        self, key: bytes, ttl: float | None, *, wait: bool, found: Found, missed: Missed, within: Sites | None = None
    ) -> bool:
        """As `Cache.look_up`."""
        if key in self._computing:
            if wait:
                self._computing.wait(key, found, missed, within)
            else:
                missed()
            return wait
        self._computing.begin(key)

        def read(entry: Any, error: BaseException | None, _seconds: float) -> None:
            if error is not None:
                _log.warning("site %s: the cache cannot be read: %s", self._adapters.site_name, error)
            if error is not None or entry is None or not _may_pass(within, entry[1]):
                missed()
            else:
                self._computing.computed(key, *entry)
                found(entry[0])

        self._threads.submit(lambda: self._read(key, ttl), read)
        return False

    def store(self, key: bytes, value: Any, sites: Sites | None = None) -> None:
        """As `Cache.store`."""

        def written(_value: Any, error: BaseException | None, _seconds: float) -> None:
            if error is not None:
                _log.warning("site %s: the cache cannot be written: %s", self._adapters.site_name, error)

        self._computing.computed(key, value, sites)
        self._threads.submit(lambda: self._write(key, value, sites), written)

    def release(self, key: bytes) -> None:
        """As `Cache.release`."""
        self._computing.given_up(key)

    # Storage, on worker threads

    def _entry(self, key: bytes) -> Path | StoragePath:
        name = hashlib.sha256(key).hexdigest()
        return self._adapters.site.cache_storage("values") / f"{name}.dfmesh"

    def _read(self, key: bytes, ttl: float | None) -> tuple[Any, Sites | None] | None:
        entry = self._entry(key)
        if not entry.exists():
            return None
        try:
            data = entry.read_bytes()
        except FileNotFoundError:
            return None  # Somebody has just put another one in its place.
        content = _unsealed(data)
        if content is None:
            _log.warning("site %s: %s in the cache is damaged, or of an older dfmesh", self._adapters.site_name, entry)
            return None
        stored_key, created, value, sites = values.from_bytes(content)
        if stored_key != key or (ttl is not None and self._clock() - created > ttl):
            return None
        return value, None if sites is None else frozenset(sites)

    def _write(self, key: bytes, value: Any, sites: Sites | None) -> None:
        entry = self._entry(key)
        content = values.to_bytes((key, self._clock(), value, None if sites is None else sorted(sites)))
        seal = _SEAL.pack(_MAGIC, len(content), zlib.crc32(content))
        if isinstance(entry, Path):
            write_whole(entry, content, seal)
            return
        draft = entry.parent / f"{entry.name}.{os.urandom(6).hex()}.draft"
        try:
            draft.write_bytes(content + seal)
            draft.filesystem.mv(draft.path, entry.path)
        except Exception:
            with suppress(OSError):
                draft.unlink()
            raise


def _unsealed(data: bytes) -> memoryview | None:
    """Give what was written of an entry; None if it is not all there, or not as it was."""
    if len(data) < _SEAL.size:
        return None
    content = memoryview(data)[: -_SEAL.size]
    magic, size, checksum = _SEAL.unpack_from(data, len(content))
    return content if (magic, size, checksum) == (_MAGIC, len(content), zlib.crc32(content)) else None


def _may_pass(within: Sites | None, sites: Sites | None) -> bool:
    """Tell whether somebody who passes a value on to some sites may have one that may be at others."""
    return sites is None or (within is not None and within <= sites)


class _Computing:
    """The keys whose values somebody computes, and who waits for them."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[tuple[Found, Missed, Sites | None]]] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._waiting

    def begin(self, key: bytes) -> None:
        """Somebody looks for the value of a key, and computes it if nothing is found."""
        self._waiting.setdefault(key, deque())

    def wait(self, key: bytes, found: Found, missed: Missed, within: Sites | None) -> None:
        """Somebody else waits for it; as `Cache.look_up`."""
        self._waiting[key].append((found, missed, within))

    def computed(self, key: bytes, value: Any, sites: Sites | None) -> None:
        """Give the value to those who wait; the first of those who may not have it computes one for them."""
        left = []
        for found, missed, within in self._waiting.pop(key, ()):
            if _may_pass(within, sites):
                found(value)
            else:
                left.append((found, missed, within))
        if left:
            self._waiting[key] = deque(left[1:])
            left[0][1]()

    def given_up(self, key: bytes) -> None:
        """No value will come; the next one who waits computes it."""
        waiting = self._waiting.get(key)
        if waiting:
            waiting.popleft()[1]()
        else:
            self._waiting.pop(key, None)


class MemoryCache:
    """A cache that forgets with its process, for the simulator.

    Attributes:
        fails: Whether reading and writing fail.
    """

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self._entries: dict[bytes, tuple[bytes, Sites | None]] = {}
        self._computing = _Computing()

    def look_up(
        self, key: bytes, ttl: float | None, *, wait: bool, found: Found, missed: Missed, within: Sites | None = None
    ) -> bool:
        """As `Cache.look_up`; nothing ages."""
        if key in self._computing and wait:
            self._computing.wait(key, found, missed, within)
            return True
        data, sites = self._entries.get(key, (b"", None))
        if data and not self.fails and _may_pass(within, sites):
            found(values.from_bytes(data))
        else:
            self._computing.begin(key)
            missed()
        return False

    def store(self, key: bytes, value: Any, sites: Sites | None = None) -> None:
        """As `Cache.store`."""
        try:
            self._entries[key] = values.to_bytes(value), sites
        except DfmeshError as error:
            _log.warning("the value cannot be cached: %s", error)
        self._computing.computed(key, value, sites)

    def release(self, key: bytes) -> None:
        """As `Cache.release`."""
        self._computing.given_up(key)
