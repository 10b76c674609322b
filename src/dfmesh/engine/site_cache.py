"""The cache of a site: values by key, on any storage that fsspec knows, computed once however many ask."""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
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

_log = logging.getLogger("dfmesh.cache")

Found = Callable[[Any], None]
Missed = Callable[[], None]


class Cache(Protocol):
    """What jobs need of a cache; all calls are made, and answered, on the event loop.

    Every `missed` must be followed by one `store` or `release` of the same key.
    """

    def look_up(self, key: bytes, ttl: float | None, *, wait: bool, found: Found, missed: Missed) -> bool:
        """Look a key up; call `found` or `missed`, now or later.

        Args:
            key: The key, encoded.
            ttl: Age in seconds beyond which an entry does not count.
            wait: Whether to wait while somebody else computes the value of an equal key.
            found: Gets the value.
            missed: The caller is to compute it.

        Returns:
            Whether the answer waits for somebody else who computes the value.
        """
        ...

    def store(self, key: bytes, value: Any) -> None:
        """Keep a value and give it to those who wait for it."""
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
        self._computing: dict[bytes, deque[tuple[Found, Missed]]] = {}

    def look_up(self, key: bytes, ttl: float | None, *, wait: bool, found: Found, missed: Missed) -> bool:
        """As `Cache.look_up`."""
        waiting = self._computing.get(key)
        if waiting is not None:
            if wait:
                waiting.append((found, missed))
            else:
                missed()
            return wait
        self._computing[key] = deque()

        def read(value: Any, error: BaseException | None, _seconds: float) -> None:
            if error is not None:
                _log.warning("site %s: the cache cannot be read: %s", self._adapters.site_name, error)
            if error is not None or value is None:
                missed()
            else:
                self._resolve(key, value[0])
                found(value[0])

        self._threads.submit(lambda: self._read(key, ttl), read)
        return False

    def store(self, key: bytes, value: Any) -> None:
        """As `Cache.store`."""

        def written(_value: Any, error: BaseException | None, _seconds: float) -> None:
            if error is not None:
                _log.warning("site %s: the cache cannot be written: %s", self._adapters.site_name, error)

        self._resolve(key, value)
        self._threads.submit(lambda: self._write(key, value), written)

    def release(self, key: bytes) -> None:
        """As `Cache.release`."""
        waiting = self._computing.get(key)
        if waiting:
            _, missed = waiting.popleft()
            missed()
        else:
            self._computing.pop(key, None)

    def _resolve(self, key: bytes, value: Any) -> None:
        for found, _ in self._computing.pop(key, ()):
            found(value)

    # Storage, on worker threads

    def _entry(self, key: bytes) -> Path | StoragePath:
        name = hashlib.sha256(key).hexdigest()
        return self._adapters.site.cache_storage("values") / f"{name}.dfmesh"

    def _read(self, key: bytes, ttl: float | None) -> tuple[Any] | None:
        entry = self._entry(key)
        if not entry.exists():
            return None
        try:
            data = entry.read_bytes()
        except FileNotFoundError:
            return None  # Somebody has just put another one in its place.
        stored_key, created, value = values.from_bytes(data)
        if stored_key != key or (ttl is not None and self._clock() - created > ttl):
            return None
        return (value,)

    def _write(self, key: bytes, value: Any) -> None:
        entry = self._entry(key)
        data = values.to_bytes((key, self._clock(), value))
        if isinstance(entry, Path):
            write_whole(entry, data)
            return
        draft = entry.parent / f"{entry.name}.{secrets.token_hex(6)}.draft"
        try:
            draft.write_bytes(data)
            draft.filesystem.mv(draft.path, entry.path)
        except Exception:
            with suppress(OSError):
                draft.unlink()
            raise


class MemoryCache:
    """A cache that forgets with its process, for the simulator.

    Attributes:
        fails: Whether reading and writing fail.
    """

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self._entries: dict[bytes, bytes] = {}
        self._computing: dict[bytes, deque[tuple[Found, Missed]]] = {}

    def look_up(self, key: bytes, ttl: float | None, *, wait: bool, found: Found, missed: Missed) -> bool:
        """As `Cache.look_up`; nothing ages."""
        waiting = self._computing.get(key)
        if waiting is not None and wait:
            waiting.append((found, missed))
            return True
        if key in self._entries and not self.fails:
            found(values.from_bytes(self._entries[key]))
        else:
            self._computing.setdefault(key, deque())
            missed()
        return False

    def store(self, key: bytes, value: Any) -> None:
        """As `Cache.store`."""
        try:
            self._entries[key] = values.to_bytes(value)
        except DfmeshError as error:
            _log.warning("the value cannot be cached: %s", error)
        for found, _ in self._computing.pop(key, ()):
            found(value)

    def release(self, key: bytes) -> None:
        """As `Cache.release`."""
        waiting = self._computing.get(key)
        if waiting:
            waiting.popleft()[1]()
        else:
            self._computing.pop(key, None)
