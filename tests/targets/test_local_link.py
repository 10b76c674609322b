"""Two ends of a connection in one process: order, pauses, shared memory, garbage."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
from array import array
from pathlib import Path

import numpy as np
import pytest
from link_ends import End, needs_memory_files, token, until, with_ends

from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, StartJob, TokenPackage
from dfmesh.targets.local import returning
from dfmesh.targets.local.shared import COPIED_AT_ONCE, SHARE_FROM
from dfmesh.targets.wire import FIRST_NOTICE, MESSAGE, Codec, to_bytes


def mapping_of(address: int) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(edge, 16) for edge in line.split()[0].split("-"))
        if first <= address < last:
            return line
    return ""


@pytest.mark.parametrize("tcp", [False, True])
def test_100_000_messages_with_pauses_arrive_once_and_in_order(tcp: bool) -> None:
    async def test(a: End, b: End) -> None:
        count, size, most = 100_000, 0, 0
        for index in range(count):
            size += a.link.send(token(index))
            if index % 20_000 == 0:
                await asyncio.sleep(0)
            most = max(most, a.link.outbox_bytes) if index % 1000 == 0 else most
        assert most > 100_000, "what the reader has not taken is in our outbox"
        await until(lambda: len(b.got) == count)
        assert [message.route for message in b.got] == list(range(count))
        assert b.link.bytes_received == size
        assert a.link.outbox_bytes == 0

    with_ends(test, tcp=tcp)


def test_a_patient_message_goes_with_the_next_one_or_soon_by_itself() -> None:
    async def test(a: End, b: End) -> None:
        await until(lambda: not a.link._scheduled)
        a.link.send(token(0), patient=True)
        await asyncio.sleep(0)
        assert a.link.outbox_bytes, "it waits"
        a.link.send(token(1))
        await until(lambda: len(b.got) == 2)
        a.link.send(token(2), patient=True)
        await until(lambda: len(b.got) == 3)
        assert [message.route for message in b.got] == [0, 1, 2]

    with_ends(test)


def test_a_reader_that_pauses_gets_everything_later() -> None:
    async def test(a: End, b: End) -> None:
        b.link._loop.remove_reader(b.link._socket.fileno())  # type: ignore[union-attr]
        blob = b"x" * 1000
        for index in range(20_000):
            a.link.send(TokenPackage("job", index, (0,), Payload(blob)))
            if index % 500 == 0:
                await asyncio.sleep(0)
        assert a.link.outbox_bytes > 10_000_000
        b.link._loop.add_reader(b.link._socket.fileno(), b.link._read)  # type: ignore[union-attr]
        await until(lambda: len(b.got) == 20_000)
        assert [message.route for message in b.got] == list(range(20_000))

    with_ends(test)


def test_what_is_sent_before_the_connection_arrives_after_it() -> None:
    async def run() -> None:
        a, b = End("a", "b"), End("b", "a")
        large = np.arange(2 * SHARE_FROM, dtype=np.uint8)
        sizes = [a.link.send(token(0)), a.link.send(token(1, large)), a.link.send(token(2))]
        assert all(sizes)
        left, right = socket.socketpair()
        b.link.attach(right)
        a.link.attach(left)
        await until(lambda: len(b.got) == 3)
        assert (b.array(1) == large).all()
        assert b.link.bytes_received == sum(sizes)
        a.link.detach()
        b.link.detach()

    asyncio.run(run())


@needs_memory_files
def test_large_buffers_are_shared_and_come_back_when_the_last_view_is_gone() -> None:
    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        data = np.random.default_rng(1).integers(0, 255, 3 * 2**20, dtype=np.uint8)
        size = a.link.send(token(0, data))
        assert size > data.nbytes
        await until(lambda: len(b.got) == 1)
        view = b.array()
        assert (view == data).all()
        assert not view.flags.writeable
        assert b.link.bytes_received == size
        address = view.__array_interface__["data"][0]
        assert "memfd:dfmesh" in mapping_of(address), "no copy was made at the receiver"
        b.got.clear()
        part = view[1000:2000].reshape(10, 100)
        del view
        gc.collect()
        await asyncio.sleep(0.01)
        assert a.pool.in_use > 0, "a view of a view still needs it"
        assert (part.ravel() == data[1000:2000]).all()
        del part
        await until(lambda: a.pool.in_use == 0)  # type: ignore[union-attr]
        memory = a.pool.size
        for index in range(30):
            a.link.send(token(index, data))
            await until(lambda: len(b.got) == 1)
            b.got.clear()
            await until(lambda: a.pool.in_use == 0)  # type: ignore[union-attr]
        assert a.pool.size == memory, "the memory is used again"
        a.pool.trim()
        assert a.pool.size == 0
        await until(lambda: not b.link._returning.mapped._segments)

    with_ends(test)


@needs_memory_files
def test_a_buffer_is_copied_once_for_many_messages_and_forwarded_without_a_copy() -> None:
    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        assert b.pool is not None
        message = token(0, np.full(2**20, 7, dtype=np.uint8))
        for _ in range(5):
            a.link.send(message)
        del message
        await until(lambda: len(b.got) == 5)
        assert a.pool.placed == 1
        b.link.send(b.got[0])  # as a homesite passes on a result
        await until(lambda: len(a.got) == 1)
        assert b.pool.placed == 0
        assert (a.array() == 7).all()
        b.got.clear()
        gc.collect()
        await asyncio.sleep(0.01)
        assert a.pool.in_use > 0, "the one it was forwarded to still has it"
        a.got.clear()
        await until(lambda: a.pool.in_use == 0)  # type: ignore[union-attr]

    with_ends(test)


@needs_memory_files
def test_without_room_in_the_pool_buffers_travel_in_the_stream() -> None:
    async def test(a: End, b: End) -> None:
        data = np.arange(40 * 2**20, dtype=np.uint8)
        sizes = [a.link.send(token(0, data)), a.link.send(token(1, data[: 2**20])), a.link.send(token(2, data))]
        await until(lambda: len(b.got) == 3)
        assert b.link.bytes_received == sum(sizes)
        assert all((b.array(index) == data[: len(b.array(index))]).all() for index in range(3))
        assert a.pool is not None
        assert a.pool.size == 32 * 2**20

    with_ends(test, limit=33 * 2**20)


@needs_memory_files
def test_the_pool_makes_room_for_other_sizes_while_messages_are_written() -> None:
    async def test(a: End, b: End) -> None:
        rng = np.random.default_rng(5)
        data = np.arange(60 * 2**20, dtype=np.uint8)
        for index in range(60):
            sizes = rng.choice([100, 2**18, 2**20, 5 * 2**20, 20 * 2**20, 40 * 2**20, 60 * 2**20], 2)
            a.link.send(token(index))
            a.link.send(token(index, *(data[:size] for size in sizes)))
            await until(lambda index=index: len(b.got) == 2 * (index + 1))  # type: ignore[misc]
            parts = [np.frombuffer(x.view, dtype=np.uint8) for x in b.got[-1].payload.buffers]
            assert all((part[-100:] == data[: len(part)][-100:]).all() for part in parts)
            b.got[-1] = b.got[-2]
            del parts
        assert b.broken == []
        assert a.pool is not None
        assert a.pool.size <= 100 * 2**20
        assert len(b.link._returning.mapped._segments) <= 4, "segments that were given up are forgotten"

    with_ends(test, limit=100 * 2**20)


@needs_memory_files
def test_a_receiver_that_dies_returns_its_memory() -> None:
    async def test(a: End, b: End) -> None:
        a.link.send(token(0, np.zeros(2**20, dtype=np.uint8)))
        await until(lambda: len(b.got) == 1)
        assert a.pool is not None
        assert a.pool.in_use > 0
        b.link.detach()
        await until(lambda: a.broken != [])
        assert a.pool.in_use == 0
        assert a.link.send(token(1)) == 0, "messages to a peer that is gone are dropped"
        view = b.array()
        assert (view == 0).all(), "its mapping stays valid until it drops it"

    with_ends(test)


def test_small_and_empty_buffers_travel_in_the_stream() -> None:
    async def test(a: End, b: End) -> None:
        a.link.send(token(0, b"", b"abc", bytes(100_000), b""))
        a.link.send(token(1))
        await until(lambda: len(b.got) == 2)
        assert [len(x.view) for x in b.got[0].payload.buffers] == [0, 3, 100_000, 0]
        if a.pool is not None:
            assert a.pool.placed == 0

    with_ends(test)


def test_a_new_connection_starts_afresh() -> None:
    async def test(a: End, b: End) -> None:
        large = np.arange(2**20, dtype=np.uint8)
        for life in range(3):
            a.link.send(token(life, large))
            await until(lambda life=life: len(b.got) == life + 1)  # type: ignore[misc]
            a.link.send(token(99, large))  # on its way when the peer dies
            b.link.detach()
            a.link.detach()
            a.link.send(token(77))  # for the next life
            left, right = socket.socketpair()
            b.got = [m for m in b.got if m.route != 99]
            a.link.attach(left)
            b.link.attach(right)
            await until(lambda: b.got[-1].route == 77)
            b.got.pop()
        assert [m.route for m in b.got] == [0, 1, 2]

    with_ends(test)


def test_what_has_arrived_from_a_dead_peer_is_delivered() -> None:
    async def test(a: End, b: End) -> None:
        for index in range(1000):
            a.link.send(token(index))
        a.link._flush()
        a.link._close()
        b.link.detach()
        assert len(b.got) == 1000
        assert b.broken == []

    with_ends(test)


garbage = [
    b"\xff" * 100,
    struct.pack("<IB", 3, MESSAGE) + b"abc",
    struct.pack("<IB", 12, FIRST_NOTICE) + struct.pack("<IQ", 1, 4096),  # a segment without a descriptor
    struct.pack("<IB", 3, FIRST_NOTICE) + b"abc",
    struct.pack("<IB", 12, FIRST_NOTICE + 1) + struct.pack("<IQ", 1, 0),  # gives back what it did not have
    struct.pack("<IB", 13, FIRST_NOTICE + 1)
    + struct.pack("<IQB", 1, 0, 0),  # a list of what is given back that is cut off
    struct.pack("<IB", 0, 9),
    b"\x01" + to_bytes(Codec(StartJob), StartJob("j", b"")),  # a stray byte
    to_bytes(Codec(StartJob), StartJob("j", b""))[:-1] + b"\xc1",
]


@pytest.mark.parametrize("data", garbage)
def test_garbage_closes_the_connection(data: bytes) -> None:
    async def test(a: End, b: End) -> None:
        a.link._append(data)
        await until(lambda: b.broken != [])
        assert "no message" in b.broken[0]
        assert not b.link.connected
        await until(lambda: a.broken != [])
        assert "closed" in a.broken[0] or "reset" in a.broken[0]

    with_ends(test)


@needs_memory_files
@pytest.mark.parametrize("kind", ["unsealed", "short", "pipe", "twice", "outside"])
def test_shared_memory_that_cannot_be_trusted_closes_the_connection(kind: str) -> None:
    import fcntl

    async def test(a: End, b: End) -> None:
        descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, 4096)
        if kind != "unsealed":
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        if kind == "pipe":
            os.close(descriptor)
            descriptor, other = os.pipe()
            os.close(other)
        data = struct.pack("<IB", 12, FIRST_NOTICE) + struct.pack("<IQ", 1, 8192 if kind == "short" else 4096)
        sender = a.link._socket
        assert sender is not None
        for _ in range(2 if kind == "twice" else 1):
            sender.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [descriptor]))])
        if kind == "outside":
            out = bytearray()
            codec = Codec(AnyMessage)
            codec.begin_frame(token(0, b"x"), out)
            from dfmesh.targets.wire import Spot

            codec.end_frame(out, 0, [Spot(1, 4000, 97)])
            sender.send(out)
        os.close(descriptor)
        await until(lambda: b.broken != [])
        assert b.got == []

    with_ends(test)


def test_views_may_be_dropped_in_any_thread() -> None:
    import threading

    async def test(a: End, b: End) -> None:
        for index in range(50):
            a.link.send(token(index, np.full(SHARE_FROM, index, dtype=np.uint8)))
        await until(lambda: len(b.got) == 50)
        shares = [b.got[i::4] for i in range(4)]
        b.got.clear()
        threads = [threading.Thread(target=share.clear) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if a.pool is not None:
            await until(lambda: a.pool.in_use == 0)  # type: ignore[union-attr]

    with_ends(test)


@needs_memory_files
def test_what_is_small_goes_back_with_the_next_message_and_what_is_large_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(returning, "PATIENCE", 1000.0)

    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        for index in range(10):
            a.link.send(token(index, np.full(SHARE_FROM, index, dtype=np.uint8)))
        await until(lambda: len(b.got) == 10)
        views = [b.array(index) for index in range(10)]
        b.got.clear()
        used = a.pool.in_use
        del views[::2]
        for _ in range(20):
            await asyncio.sleep(0)
        assert a.pool.in_use == used, "nobody is woken up for it"
        b.link.send(token(0))
        await until(lambda: len(a.got) == 1)
        assert a.pool.in_use == used // 2
        views.clear()
        a.link.send(token(1, np.zeros(COPIED_AT_ONCE + 1, dtype=np.uint8)))
        await until(lambda: len(b.got) == 1)
        b.got.clear()
        await until(lambda: a.pool.in_use == 0)  # type: ignore[union-attr]
        assert len(a.got) == 1

    with_ends(test)


@needs_memory_files
def test_what_the_receiver_keeps_for_ever_is_never_written_to_again() -> None:
    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        kept: dict[int, np.ndarray] = {}
        for index in range(120):
            a.link.send(token(index, np.full(2**20, index, dtype=np.uint8)))
            await until(lambda: len(b.got) == 1)
            if index % 2:
                kept[index] = b.array()[:: 1 + index]
            b.got.clear()
            assert a.pool.size <= 40 * 2**20
        assert a.pool.in_use == 32 * 2**20, "the others came in the byte stream"
        assert all((view == index).all() for index, view in kept.items())
        kept.clear()
        await until(lambda: a.pool.in_use == 0)  # type: ignore[union-attr]

    with_ends(test, limit=40 * 2**20)
