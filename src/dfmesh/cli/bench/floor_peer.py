"""The other process of the floor: `python -m dfmesh.cli.bench.floor_peer SOCKET WAY`. It ends with its parent."""

from __future__ import annotations

import os
import socket
import sys
import threading

from dfmesh.cli.bench.floor_messages import RECEIVES, SENDS, Message
from dfmesh.cli.bench.operations import echo

READY = "ready"


def operated(message: Message) -> Message:
    """Run the operation on a message, and give its answer."""
    return Message(message.number, echo(message.value), message.hops - 1)


def serve(connection: socket.socket, way: str) -> None:
    """Answer all messages of a connection until the other side closes it."""
    send = SENDS[way]
    with connection:
        for messages in RECEIVES[way](connection):
            send(connection, map(operated, messages))


def end_with_parent() -> None:
    """End this process when its standard input, which the parent holds, comes to an end."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve every connection on a thread of its own."""
    path, way = sys.argv[1:]
    threading.Thread(target=end_with_parent, daemon=True).start()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen(64)
        print(READY, flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, way), daemon=True).start()


if __name__ == "__main__":
    main()
