"""What children inherit that adapters fork off a process of ours, by `multiprocessing` or `os.fork`."""

from __future__ import annotations

import os
import signal
import socket
import threading
import weakref
from collections.abc import Iterable

_given_back: set[signal.Signals] = set()


class _Held(threading.local):
    """The signals that this thread did not take before it began to fork."""

    mask: Iterable[int] = ()


_held = _Held()


def give_back_in_forks(*numbers: signal.Signals) -> None:
    """Have signals do in forked children what they do in any Python process, and reach nobody but the child.

    A child inherits our handlers and the descriptor by which they wake our event loop: a SIGTERM for it, as
    `Process.terminate` and `Pool` send, would stop us. Signals are held up while a child is made, so that none comes
    before it has let go of these.

    Args:
        numbers: Signals that this process handles.
    """
    if not _given_back:
        os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_let_go)
    _given_back.update(numbers)


_kept: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def keep_from_forks(connection: socket.socket) -> socket.socket:
    """Have a socket closed in forked children, which may outlive this process.

    Its other end learns of the end of this process at once then, and a port on which it listens is free again.

    Returns:
        The socket.
    """
    _kept.add(connection)
    return connection


def _close_kept() -> None:
    for connection in list(_kept):
        connection.close()


os.register_at_fork(after_in_child=_close_kept)


def _hold() -> None:
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _given_back)


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _let_go() -> None:
    signal.set_wakeup_fd(-1)
    for number in _given_back:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    _release()
