"""What an adapter can find out about the call that it carries out: above all, whether it still has to."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

Tell = Callable[[str, str, str], None]
"""Takes, on any thread, a source (`stdout`, `stderr` or the level of a record), the name of a logger, and text."""


class CallStopped(BaseException):
    """Raised in an adapter whose call is to stop: its job has ended, or it took longer than its `timeout`.

    No `Exception`, so that `except Exception` in an adapter lets it pass. Clean up and let it go on.
    """


class ThisCall:
    """One attempt of a call, as its adapter sees it; given by `this_call()`. May be used from any thread.

    Attributes:
        operation: Name of the operation; empty outside of a call.
        tell: Takes what the call prints or logs, for its job; None outside of a call. See `Tell`.
    """

    __slots__ = ("_cancelled", "_listeners", "_lock", "operation", "reason", "tell")

    def __init__(self, operation: str = "", tell: Tell | None = None) -> None:
        self.operation = operation
        self.tell = tell
        self.reason = ""
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._listeners: dict[int, Callable[[], object]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the call any more."""
        return self._cancelled.is_set()

    def check(self) -> None:
        """Do nothing, or leave the call if nobody waits for it any more.

        Raises:
            CallStopped: it is cancelled.
        """
        if self._cancelled.is_set():
            raise CallStopped(self.reason)

    def sleep(self, seconds: float) -> None:
        """Wait; leave the call as soon as nobody waits for it any more.

        Args:
            seconds: How long.

        Raises:
            CallStopped: it is cancelled.
        """
        if self._cancelled.wait(seconds):
            raise CallStopped(self.reason)

    @contextmanager
    def on_cancel(self, listener: Callable[[], object]) -> Iterator[None]:
        """Have a function called, on another thread, if the call is cancelled within a `with` block.

        For what no exception can interrupt: `with this_call().on_cancel(connection.close): connection.receive()`.

        Args:
            listener: Ends what the block waits for. What it raises is ignored.
        """
        key = id(listener)
        with self._lock:
            self._listeners[key] = listener
            late = self._cancelled.is_set()
        try:
            if late:
                self.check()
            yield
        finally:
            with self._lock:
                self._listeners.pop(key, None)

    def cancel(self, reason: str, start: Callable[[Callable[[], None]], Any]) -> None:
        """Say that nobody waits for the call any more; dfmesh does that.

        Args:
            reason: Why.
            start: Runs a function on some other thread.
        """
        self.reason = self.reason or reason
        with self._lock:
            first = not self._cancelled.is_set()
            self._cancelled.set()
            listeners = list(self._listeners.values()) if first else []
        for listener in listeners:
            start(lambda listener=listener: _heard(listener))  # type: ignore[misc]


def _heard(listener: Callable[[], object]) -> None:
    with suppress(Exception):
        listener()


class ThreadCall(threading.local):
    """Gives the call that the present thread is carrying out; None between calls, and on other threads.

    Attributes:
        find: Gives what the adapter sees of it.
        find_tell: Gives what takes what it prints.
    """

    find: Callable[[], ThisCall | None] | None = None
    find_tell: Callable[[], Tell | None] | None = None


on_this_thread = ThreadCall()
"""Set by the threads that run adapters."""

in_this_task: ContextVar[ThisCall | None] = ContextVar("dfmesh call", default=None)
"""Set by the tasks that run adapters; by threads too, for others that run in a copy of their context.

A thread that runs a plain function sets it when the adapter first asks for its call: that costs too much to be done for
each.
"""


def _leave_call() -> None:
    """Take note that a forked child carries out no call: nobody hears there what it prints, and nobody stops it."""
    on_this_thread.find = on_this_thread.find_tell = None
    in_this_task.set(None)


os.register_at_fork(after_in_child=_leave_call)


def running_call() -> ThisCall | None:
    """Give the call that runs here; None outside of one."""
    find = on_this_thread.find
    if find is not None:
        return find()
    return in_this_task.get()


def running_tell() -> Tell | None:
    """Give what takes what is printed here; None outside of a call."""
    find = on_this_thread.find_tell
    if find is not None:
        return find()
    call = in_this_task.get()
    return None if call is None else call.tell


def this_call() -> ThisCall:
    """Give the call that the adapter is carrying out, to ask it whether it is `cancelled`.

    Outside of a call, as in a test of the adapter, it gives one that is never cancelled.
    """
    return running_call() or ThisCall()
