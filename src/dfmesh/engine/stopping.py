"""Stopping a thread in the middle of an adapter's code.

CPython raises an exception in another thread when that thread next runs Python code (`PyThreadState_SetAsyncExc`). A
thread that waits in C runs none, and no signal changes that: interrupted calls are taken up again (PEP 475), in 3.11
to 3.13 alike. So what the commonest waits are for is ended as well, where Python code shows what that is.
"""

from __future__ import annotations

import ctypes
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, SupportsIndex

from dfmesh.engine.adapters.present_call import CallStopped, running_call

_set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_exception.argtypes = [ctypes.c_ulong, ctypes.py_object]
_set_exception.restype = ctypes.c_int

_ENOUGH = 1_000
"""Turns of a loop by which an exception that was asked for has been raised; it takes one or two."""


def raise_in(thread: int) -> None:
    """Raise `CallStopped` in a thread as soon as it runs Python code.

    Args:
        thread: Its identifier. The caller sees to it that it is in code which may be stopped.
    """
    _set_exception(thread, CallStopped)


def forget_own() -> None:
    """Take back what `raise_in` has not raised yet in this thread.

    It is raised here: an exception that is only taken back leaves a mark in the interpreter (seen in CPython 3.11),
    with which every Python function under `sys.setprofile` or `sys.settrace` runs for ever.
    """
    try:
        raise_in(threading.get_ident())
        for _ in range(_ENOUGH):
            pass
    except CallStopped:
        pass


def is_cleaning_up(thread: int) -> bool:
    """Tell whether a thread runs what `CallStopped` leads to: `finally`, `except`, the end of a `with`."""
    handled: Any = sys._current_exceptions().get(thread)
    if isinstance(handled, tuple):  # Python 3.11 gives its type, the exception and the traceback.
        handled = handled[1]
    for _ in range(_DEEPEST_CONTEXT):
        if handled is None or isinstance(handled, CallStopped):
            break
        handled = handled.__context__
    return isinstance(handled, CallStopped)


_DEEPEST_CONTEXT = 20
"""Exceptions, each raised while the one before was handled, that are looked at."""


def end_wait(thread: int) -> None:
    """End what a thread waits for, if that is known.

    That is a condition (also of events, queues, futures), a connection that is read through a file or by TLS, a
    command that `subprocess.run` runs.

    Args:
        thread: Its identifier; `raise_in` has been called for it, so that it does not go on as if that had come.
    """
    frame = sys._current_frames().get(thread)
    with suppress(Exception):  # Whatever the thread does meanwhile: there is nothing to be ended then.
        if frame is not None:
            _end_wait_of(frame)


def _end_wait_of(frame: FrameType) -> None:
    if frame.f_code is threading.Condition.wait.__code__:
        frame.f_locals["waiter"].release()
        return
    connection = frame.f_locals.get("self") if frame.f_code in _connection_waits() else None
    if isinstance(connection, socket.SocketIO):
        connection = connection._sock  # type: ignore[attr-defined]
    if isinstance(connection, socket.socket):
        connection.shutdown(socket.SHUT_RDWR)
        return
    above: FrameType | None = frame
    for _ in range(_DEEPEST_WAIT):
        if above is None:
            return
        if above.f_code is subprocess.run.__code__:
            above.f_locals["process"].kill()  # As `run` itself does when anything is raised in it.
            return
        above = above.f_back


_DEEPEST_WAIT = 8


def _connection_waits() -> set[CodeType]:
    waits: list[Any] = [socket.SocketIO.readinto, socket.SocketIO.write]
    ssl = sys.modules.get("ssl")
    if ssl is not None:
        names = ("read", "write", "recv", "recv_into", "send", "sendall", "do_handshake")
        waits += [getattr(ssl.SSLSocket, name) for name in names]
    return {function.__code__ for function in waits}


def hush_late_stops() -> None:
    """Do not print a `CallStopped` that was raised in a finaliser, where Python drops it: it is raised again.

    For processes that are dfmesh's own.
    """
    print_unraisable = sys.unraisablehook

    def print_others(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, CallStopped):
            print_unraisable(unraisable)

    sys.unraisablehook = print_others


def let_sleep_be_stopped() -> None:
    """Make `time.sleep` end when the call in which an adapter sleeps is cancelled.

    For processes that are dfmesh's own; in a user's process `time.sleep` stays what it is.
    """
    if getattr(time.sleep, "__module__", "") == __name__:
        return
    sleep_to_the_end = time.sleep

    def sleep(seconds: float | SupportsIndex, /) -> None:
        """Delay execution for a given number of seconds, or until the call of the adapter is cancelled."""
        call = running_call()
        if call is None or not isinstance(seconds, int | float) or not 0 < seconds < threading.TIMEOUT_MAX:
            sleep_to_the_end(seconds)
        else:
            call.sleep(seconds)

    time.sleep = sleep
