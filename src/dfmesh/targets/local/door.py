"""Connections over loopback TCP, where sockets cannot be handed from process to process.

Anybody on the machine can call a port. A connection is a peer's only if it begins with the ticket that the
supervisor gave to that peer and to us.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import socket
from collections.abc import Callable, Coroutine

from dfmesh.processes.forking import keep_from_forks

TICKET_SIZE = 32
_LOOPBACK = "127.0.0.1"
_PATIENCE_SECONDS = 10.0
_STRANGER_SECONDS = 5.0
"""How long somebody may take to show a ticket, and then how long we may not know of it."""
_GRACE_SECONDS = 0.1
_PAUSE_SECONDS = 0.5
_MOST_UNKNOWN = 64
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Door:
    """Where peers call us, and from where we call them.

    Attributes:
        port: The loopback port that we listen on.
    """

    def __init__(
        self, on_connected: Callable[[str, socket.socket, int], None], on_failed: Callable[[str, int, str], None]
    ) -> None:
        """Listen.

        Args:
            on_connected: Gets peer, connection and the peer's generation.
            on_failed: Gets peer, generation and reason when it cannot be called.
        """
        self._on_connected = on_connected
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._expected: list[tuple[bytes, str, int]] = []
        self._unknown: list[tuple[bytes, socket.socket]] = []  # called before we were told of them
        self._tasks: set[asyncio.Task[None]] = set()
        self._calling: dict[str, asyncio.Task[None]] = {}
        self._listener = keep_from_forks(socket.create_server((_LOOPBACK, 0)))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._pause: asyncio.TimerHandle | None = None
        self._listen()

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Listen no longer, and give up what is not connected yet."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        for _, connection in self._unknown:
            connection.close()
        self._unknown.clear()

    def expect(self, peer: str, generation: int, ticket: bytes) -> None:
        """Take the connection that comes, or came, with this ticket for one of this peer."""
        self._expected = [entry for entry in self._expected if entry[1] != peer]
        self._expected.append((ticket, peer, generation))
        for known, connection in list(self._unknown):
            if hmac.compare_digest(known, ticket):
                self._unknown.remove((known, connection))
                self._claim(known, connection)

    def call(self, peer: str, generation: int, ticket: bytes, port: int) -> None:
        """Connect to a peer's door."""
        self._calling[peer] = self._run(self._call(peer, generation, ticket, port))

    def forget(self, peer: str) -> None:
        """Take no connection any more with a life of a peer that has ended, whoever of us was making it."""
        self._expected = [entry for entry in self._expected if entry[1] != peer]
        calling = self._calling.pop(peer, None)
        if calling is not None:
            calling.cancel()

    async def _call(self, peer: str, generation: int, ticket: bytes, port: int) -> None:
        connection = keep_from_forks(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        connection.setblocking(False)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._loop.sock_connect(connection, (_LOOPBACK, port))
                await self._loop.sock_sendall(connection, ticket)
        except asyncio.CancelledError:
            connection.close()
            raise
        except Exception as error:  # whatever it is: who waits for this connection must not wait for ever
            connection.close()
            self._on_failed(peer, generation, f"it cannot be called: {error or 'no answer'}")
        else:
            self._on_connected(peer, connection, generation)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
            keep_from_forks(connection)
        except OSError as error:
            if error.errno in _EXHAUSTED:
                # Callers go on waiting, and the loop would wake us for them without end.
                self._loop.remove_reader(self._listener.fileno())
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self._listen)
            return  # else the caller has changed its mind
        connection.setblocking(False)
        self._run(self._read_ticket(connection))

    async def _read_ticket(self, connection: socket.socket) -> None:
        ticket = b""
        try:
            async with asyncio.timeout(_STRANGER_SECONDS):
                while len(ticket) < TICKET_SIZE:
                    data = await self._loop.sock_recv(connection, TICKET_SIZE - len(ticket))
                    if not data:
                        raise ConnectionResetError
                    ticket += data
        except OSError:
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise
        else:
            self._claim(ticket, connection)

    def _claim(self, ticket: bytes, connection: socket.socket) -> None:
        for entry in self._expected:
            known, peer, generation = entry
            if hmac.compare_digest(known, ticket):
                self._expected.remove(entry)
                self._on_connected(peer, connection, generation)
                return
        self._unknown.append((ticket, connection))
        if len(self._unknown) > _MOST_UNKNOWN:
            self._unknown.pop(0)[1].close()
        # A loop that was held up may have a word about the ticket to read, which the grace lets it do first.
        self._loop.call_later(_STRANGER_SECONDS, self._loop.call_later, _GRACE_SECONDS, self._send_away, connection)

    def _send_away(self, connection: socket.socket) -> None:
        for entry in self._unknown:
            if entry[1] is connection:
                self._unknown.remove(entry)
                connection.close()
                return

    def _run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
