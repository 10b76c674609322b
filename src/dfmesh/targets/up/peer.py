"""Who is at the other end of a Unix socket; the system says so, not the peer."""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("3i")  # process, user, group


def peer_of_this_user(descriptor: int) -> int | None:
    """Give the process id of a peer, if it is one of this user; None if it is not.

    Where the system does not say who it is, the id is 0: only this user can enter the directory of the socket.

    Args:
        descriptor: Of the connection.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        pid, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return pid if user == os.geteuid() else None
