"""The client's event loop: one per process, on a thread of its own, so that the blocking interface works anywhere."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger("dfmesh.session")

_lock = threading.Lock()
_shared: LoopThread | None = None


class LoopThread:
    """An event loop that runs for ever on a daemon thread."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="dfmesh-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except BaseException:  # Of a callback, such as SystemExit; all sessions share this loop.
                _log.exception("something raised on the client's event loop, which goes on")

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def is_current(self) -> bool:
        """Whether the caller is on the loop's own thread, where waiting would wait for itself."""
        return threading.current_thread() is self._thread


def client_loop() -> LoopThread:
    """Give the process's client loop, started at the first call (again after a fork)."""
    global _shared
    with _lock:
        if _shared is None or _shared.process != os.getpid():
            _shared = LoopThread()
        return _shared


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
