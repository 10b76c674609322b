"""Site b of the floor: `python -m floor.peer SOCKET`. Serves until its parent ends."""

from __future__ import annotations

import ctypes
import signal
import socket
import sys
import threading

import numpy as np
from arrays import probe

from floor.wire import Message, batches, receive_exactly, receive_one, send

PR_SET_PDEATHSIG = 1


def echo(value: object) -> object:
    """The operation that the jobs and the loop bodies run."""
    return value


def serve_calls(connection: socket.socket) -> None:
    for messages in batches(connection):
        for message in messages:
            send(connection, Message(message.number, echo(message.value)))


def serve_arrays(connection: socket.socket) -> None:
    """Take arrays into memory that was faulted in before, as a pool would, and answer with the probe."""
    pool = np.ones(0)
    while (message := receive_one(connection)) is not None:
        if pool.nbytes != message.value:
            pool = np.ones(message.value // 8)
        receive_exactly(connection, pool.data.cast("B"))
        send(connection, Message(message.number, probe(pool)))


def serve(connection: socket.socket) -> None:
    hello = receive_one(connection)
    if hello is not None:
        serve_arrays(connection) if hello.value == "arrays" else serve_calls(connection)


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(sys.argv[1])
        listener.listen(64)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main()
