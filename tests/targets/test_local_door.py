"""Strangers at the door of target `local` over TCP: they are sent away, and cost nothing."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from typing import Any

import pytest

from dfmesh.targets.local import door as door_module
from dfmesh.targets.local.door import TICKET_SIZE, Door

TICKET = bytes(range(TICKET_SIZE))


class Full:
    """A listener of a process that has no descriptor left, until told otherwise."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.calls = 0
        self.full = True

    def accept(self) -> Any:
        self.calls += 1
        if self.full:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self.listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.listener, name)


def test_no_descriptor_left_is_waited_for_without_spinning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_PAUSE_SECONDS", 0.2)

    async def test() -> None:
        came: asyncio.Queue[str] = asyncio.Queue()
        door = Door(lambda peer, connection, generation: (connection.close(), came.put_nowait(peer)), pytest.fail)
        door._listener = full = Full(door._listener)  # type: ignore[assignment]
        door.expect("us", 1, TICKET)
        with socket.create_connection(("127.0.0.1", door.port)) as peer:
            peer.send(TICKET)
            await asyncio.sleep(0.5)
            assert 1 <= full.calls <= 4
            full.full = False
            assert await asyncio.wait_for(came.get(), 10) == "us"
        full.full = True
        with socket.create_connection(("127.0.0.1", door.port)):
            await asyncio.sleep(0.1)
            door.close()  # while it pauses
        await asyncio.sleep(0.3)

    asyncio.run(test(), debug=True)


@pytest.mark.parametrize("sent", [b"", b"x", bytes(TICKET_SIZE)], ids=["nothing", "a byte", "another ticket"])
def test_who_has_no_ticket_is_sent_away(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(door_module, "_STRANGER_SECONDS", 0.2)

    async def test() -> None:
        door = Door(lambda *_: pytest.fail("a stranger"), pytest.fail)
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(sent)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        assert door._unknown == []
        writer.close()
        door.close()

    asyncio.run(test())


def test_who_is_announced_later_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_STRANGER_SECONDS", 0.3)

    async def test() -> None:
        came: asyncio.Queue[socket.socket] = asyncio.Queue()
        door = Door(lambda peer, connection, generation: came.put_nowait(connection), pytest.fail)
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(TICKET)
        while not door._unknown:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        door.expect("us", 1, TICKET)
        with await asyncio.wait_for(came.get(), 10) as connection:
            await asyncio.sleep(0.6)
            writer.write(b"!")
            connection.setblocking(True)
            assert await asyncio.to_thread(connection.recv, 1) == b"!"  # it is not closed as a stranger
        assert await reader.read() == b""
        writer.close()
        door.close()

    asyncio.run(test())


def test_a_connection_of_a_peer_that_has_died_is_not_taken_for_one_of_its_next_life() -> None:
    """It waits in the system's queue, or for its ticket to be read, while we are told of the loss."""

    async def test() -> None:
        came: list[int] = []
        door = Door(lambda _peer, connection, life: (connection.close(), came.append(life)), pytest.fail)
        door.expect("us", 1, TICKET)
        with socket.create_connection(("127.0.0.1", door.port)) as old:
            old.send(TICKET)
        door.forget("us")
        while not (door._unknown or came):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        assert came == []
        door.close()

    asyncio.run(test(), debug=True)


def test_a_call_to_a_peer_that_has_died_is_given_up() -> None:
    async def test() -> None:
        happened: list[str] = []
        door = Door(lambda *_: happened.append("answered"), lambda *_: happened.append("failed"))
        with socket.create_server(("127.0.0.1", 0)) as listener:  # Its system takes calls for it.
            door.call("us", 1, TICKET, listener.getsockname()[1])
            door.forget("us")
            while door._tasks:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        assert happened == []
        door.close()

    asyncio.run(test(), debug=True)
