"""The client's event loop: one per process, on a thread of its own, so that the blocking interface works anywhere."""

from __future__ import annotations

import asyncio
import atexit
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

END_SECONDS = 2.0
"""How long the interpreter's exit waits for the thread."""


class LoopThread:
    """An event loop that runs for ever on a daemon thread."""

    def __init__(self) -> None:
        self.loop = _new_loop()
        self.process = os.getpid()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="dfmesh-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._ended:
            try:
                self.loop.run_forever()
            except BaseException:  # Of a callback, such as SystemExit; all sessions share this loop.
                _log.exception("something raised on the client's event loop, which goes on")

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; after `end` on the caller's thread, to its end."""
        if self._ended:
            return self._run_here(coroutine)
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def _run_here(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(self.loop.run_until_complete(coroutine))
        except BaseException as error:
            future.set_exception(error)
        return future

    def end(self) -> None:
        """Let the thread end: one that runs C code while the interpreter is being taken down can crash it."""
        self._ended = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(END_SECONDS)

    def is_current(self) -> bool:
        """Whether the caller is on the loop's own thread, where waiting would wait for itself."""
        return threading.get_ident() == self._thread.ident


def client_loop() -> LoopThread:
    """Give the process's client loop, started at the first call (again after a fork)."""
    global _shared
    with _lock:
        if _shared is None or _shared.process != os.getpid():
            _shared = LoopThread()
        return _shared


def _end_at_exit() -> None:
    if _shared is not None and _shared.process == os.getpid():
        _shared.end()


# Registered before any session is made, so that it comes after whatever users do with theirs at exit.
atexit.register(_end_at_exit)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
