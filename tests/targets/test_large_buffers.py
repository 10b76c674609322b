"""Buffers that are copied beside the event loop: order, memory, what goes wrong meanwhile."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_ends import End, needs_memory_files, resident_shared_bytes, token, until, with_ends

from dfmesh.cli.bench import measures, resources
from dfmesh.cli.bench.mesh import Mesh
from dfmesh.targets.local import mapping
from dfmesh.targets.local.mapping import Mapping
from dfmesh.targets.local.shared import COPIED_AHEAD_FROM, COPIED_AT_ONCE, SHARE_FROM

pytestmark = needs_memory_files

MEGABYTE = 2**20
LARGE = 40 * MEGABYTE
assert LARGE > 4 * COPIED_AT_ONCE


NOISE = np.random.default_rng(1).integers(0, 255, LARGE + 100, dtype=np.uint8)


def patterned(size: int, seed: int) -> Any:
    """Give an array that is another one for each seed below 100."""
    return NOISE[seed : seed + size]


async def all_free(end: End) -> None:
    gc.collect()
    await until(lambda: end.pool is not None and end.pool.in_use == 0)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What is copied beside the event loop begins when this is set."""
    opened, provide = threading.Event(), Mapping.provide

    def wait(self: Mapping, start: int, stop: int) -> None:
        assert opened.wait(20)
        provide(self, start, stop)

    monkeypatch.setattr(Mapping, "provide", wait)
    return opened


def test_while_a_large_buffer_is_copied_all_goes_on_and_nothing_overtakes_it(gate: threading.Event) -> None:
    async def test(a: End, b: End) -> None:
        data = patterned(LARGE, 1)
        a.link.send(token(0))
        size = a.link.send(token(1, data))
        a.link.send(token(2, data[:100]))
        a.link.send(token(3, data[: 2 * MEGABYTE]))
        for index in range(5):
            b.link.send(token(index))
            await until(lambda index=index: len(a.got) == index + 1)  # type: ignore[misc]
        assert [m.route for m in b.got] == [0]
        assert a.link.outbox_bytes > 0
        gate.set()
        await until(lambda: len(b.got) == 4)
        assert size > LARGE
        assert [m.route for m in b.got] == [0, 1, 2, 3]
        view = b.array(1)
        assert (view == data).all()
        assert not view.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
        assert a.link.outbox_bytes == 0

    with_ends(test)


def test_shared_memory_counts_for_neither_side_when_nothing_there_uses_it() -> None:
    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        data = patterned(LARGE, 2)
        for turn in range(3):
            a.link.send(token(turn, data))
            await until(lambda: len(b.got) == 1)
            assert resident_shared_bytes() == 0, "neither what wrote it nor who has not read it yet has it mapped"
            assert b.array()[::4096].sum() == data[::4096].sum()
            assert (resident_shared_bytes() or 0) >= LARGE
            b.got.clear()
            await all_free(a)
            assert resident_shared_bytes() == 0
        assert a.pool.size == LARGE, "the memory is kept to be used again"
        a.pool.trim()
        await until(lambda: resident_shared_bytes() is None)

    with_ends(test)


@pytest.mark.parametrize("huge", [True, False])
def test_buffers_of_all_sizes_given_back_in_any_order(huge: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not huge:
        monkeypatch.setattr(mapping, "has_huge_pages", lambda: False)
    sizes = st.sampled_from([0, 100, 300_000, MEGABYTE, 3 * MEGABYTE + 1]) | st.integers(
        COPIED_AT_ONCE, 5 * COPIED_AT_ONCE
    )

    @settings(max_examples=12, deadline=None)
    @given(st.lists(st.tuples(st.lists(sizes, max_size=3), st.integers(0, 5)), max_size=8))
    def check(steps: list[tuple[list[int], int]]) -> None:
        async def test(a: End, b: End) -> None:
            assert a.pool is not None
            held: list[tuple[int, Any]] = []
            sent: dict[int, list[Any]] = {}
            for index, (parts, position) in enumerate(steps):
                sent[index] = [patterned(size, index) for size in parts]
                a.link.send(token(index, *sent[index]))
                if index % 3 == 2:
                    await until(lambda index=index: len(b.got) == index + 1)  # type: ignore[misc]
                held += [(message.route, message) for message in b.got[len(held) :] if message is not None]
                if position < len(held):
                    route, message = held[position]
                    if message is not None:
                        same(message, sent[route])
                        held[position] = (route, None)
                        b.got[route] = None
                    del message
            await until(lambda: len(b.got) == len(steps))
            for message in filter(None, b.got):
                same(message, sent[message.route])
            message = None
            held.clear()
            b.got.clear()
            await all_free(a)
            assert a.broken == b.broken == []
            a.pool.trim()
            assert a.pool.size == 0
            await until(lambda: not b.link._returning.mapped._segments)

        with_ends(test, limit=200 * MEGABYTE)

    check()


def same(message: Any, parts: list[Any]) -> None:
    found = [np.frombuffer(buffer.view, dtype=np.uint8) for buffer in message.payload.buffers]
    assert [len(part) for part in found] == [len(part) for part in parts]
    assert all((got == part).all() for got, part in zip(found, parts, strict=True))


def test_what_goes_to_several_peers_is_copied_once_also_while_it_is_being_copied() -> None:
    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        c, d = End("c", "d", pool=a.pool), End("d", "c")
        left, right = socket.socketpair()
        c.link.attach(left)
        d.link.attach(right)
        data = patterned(LARGE, 3)
        message = token(0, data)
        a.link.send(message)
        c.link.send(message)
        a.link.send(message)
        await until(lambda: len(b.got) == 2 and len(d.got) == 1)
        assert a.pool.placed == 1
        assert (b.array(0) == data).all()
        assert (d.array(0) == data).all()
        c.link.detach()
        d.link.detach()

    with_ends(test)


def test_a_peer_that_dies_while_its_buffer_is_copied_costs_nothing(gate: threading.Event) -> None:
    async def test(a: End, b: End) -> None:
        data = patterned(LARGE, 4)
        for life in range(3):
            gate.clear()
            message = token(life, data)
            a.link.send(message)
            b.link.detach()
            await until(lambda: a.broken != [])
            assert a.pool is not None
            assert a.pool.in_use > 0, "it is not used for something else before the copy has ended"
            gate.set()
            copying = message.payload.buffers[0].place.copying
            await until(lambda copying=copying: copying.over)  # type: ignore[misc]
            del message, copying
            await all_free(a)
            a.broken.clear()
            a.link.detach()
            left, right = socket.socketpair()
            a.link.attach(left)
            b.link.attach(right)
            a.link.send(token(10 + life, data))
            await until(lambda: b.got != [])
            assert b.got[0].route == 10 + life
            assert (b.array() == data).all()
            b.got.clear()
            await all_free(a)

    with_ends(test)


def test_what_waits_for_a_copy_waits_for_the_connection_too() -> None:
    async def test(a: End, b: End) -> None:
        a.link.detach()
        data = patterned(LARGE, 5)
        message = token(0, data)
        a.link.send(message)
        a.link.send(token(1))
        copying = message.payload.buffers[0].place.copying
        await until(lambda: copying.over)
        b.link.detach()
        left, right = socket.socketpair()
        a.link.attach(left)
        b.link.attach(right)
        await until(lambda: len(b.got) == 2)
        assert (b.array(0) == data).all()

    with_ends(test)


def test_without_memory_for_the_copy_a_buffer_travels_in_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Mapping, start: int, stop: int) -> None:
        raise MemoryError

    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        data = patterned(LARGE, 6)
        message = token(1, data[:MEGABYTE], data)
        size = a.link.send(token(0)) + a.link.send(message) + a.link.send(token(2))
        await until(lambda: len(b.got) == 3)
        size += a.link.send(message)
        await until(lambda: len(b.got) == 4)
        assert b.broken == []
        assert [m.route for m in b.got] == [0, 1, 2, 1]
        for found in (b.got[1], b.got[3]):
            same(found, [data[:MEGABYTE], data])
        assert b.link.bytes_received == size
        assert a.link.outbox_bytes == 0
        del message, found
        b.got.clear()
        await all_free(a)

    monkeypatch.setattr(Mapping, "provide", refuse)
    with_ends(test)


def test_a_mapping_lives_as_long_as_its_last_view() -> None:
    descriptor = os.memfd_create("dfmesh")
    try:
        os.ftruncate(descriptor, 3 * MEGABYTE)
        writable = Mapping(descriptor, 3 * MEGABYTE, writable=True)
        view = Mapping(descriptor, 3 * MEGABYTE, writable=False).view[5:10]
        writable.view[5:10] = b"hello"
        del writable
        assert resident_shared_bytes() is not None
        assert bytes(view) == b"hello"
        assert view.readonly
        del view
        assert resident_shared_bytes() is None
        with pytest.raises(OSError, match="memory"):
            Mapping(descriptor, 2**60, writable=False)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("size", [MEGABYTE, LARGE])
def test_an_array_made_for_it_is_sent_without_a_copy(size: int) -> None:
    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        array = a.pool.new_array((2, size // 16), np.dtype(float))
        assert array is not None
        array[:] = np.arange(size // 8).reshape(2, -1)
        part = array[1, 10:]
        a.link.send(token(0, array))
        a.link.send(token(1, part[: SHARE_FROM // 8]))
        a.link.send(token(2, array[:, ::2].copy()))
        await until(lambda: len(b.got) == 3)
        assert a.pool.placed == 2, "the array, and the one copy of something else"
        assert (b.array(0).view(float) == np.arange(size // 8)).all()
        assert (b.array(1).view(float) == part[: SHARE_FROM // 8]).all()
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
        same(b.got[2], [array[:, ::2].copy().view(np.uint8).ravel()])
        del array
        b.got[0] = b.got[2] = None
        gc.collect()
        await asyncio.sleep(0.01)
        assert a.pool.in_use >= size, "a view of it lives here, and one at the receiver"
        expected = part[: SHARE_FROM // 8].copy()
        del part
        assert a.pool.in_use >= size
        assert (b.array(1).view(float) == expected).all()
        b.got.clear()
        await all_free(a)

    with_ends(test)


def test_new_arrays_are_made_on_any_thread_while_others_are_sent() -> None:
    async def test(a: End, b: End) -> None:
        pool = a.pool
        assert pool is not None
        loop = asyncio.get_running_loop()
        made: asyncio.Queue[Any] = asyncio.Queue()

        def make(seed: int) -> None:
            for turn in range(20):
                size = [MEGABYTE, 3 * MEGABYTE, 2 * COPIED_AT_ONCE][(seed + turn) % 3]
                array = pool.new_array((size,), np.dtype(np.uint8))
                assert array is not None
                array[:] = patterned(size, seed)
                loop.call_soon_threadsafe(made.put_nowait, (seed, array))

        threads = [threading.Thread(target=make, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for index in range(60):
            seed, array = await made.get()
            a.link.send(token(seed, array, patterned(MEGABYTE, seed)))
            size = len(array)
            del array
            if index % 4 == 3:
                await until(lambda index=index: len(b.got) == index + 1)  # type: ignore[misc]
                same(b.got[-1], [patterned(size, seed), patterned(MEGABYTE, seed)])
                for position in range(index - 2):
                    b.got[position] = None
        await until(lambda: len(b.got) == 60)
        for message in filter(None, b.got):
            assert (
                np.frombuffer(message.payload.buffers[1].view, np.uint8) == patterned(MEGABYTE, message.route)
            ).all()
        message = None
        for thread in threads:
            thread.join()
        b.got.clear()
        await all_free(a)

    with_ends(test)


def test_who_is_given_shared_memory_cannot_write_to_it() -> None:
    async def test(a: End, b: End) -> None:
        a.link.send(token(0, patterned(MEGABYTE, 1)))
        await until(lambda: len(b.got) == 1)
        (segment,) = b.link._returning.mapped._segments.values()
        with pytest.raises(OSError, match="permitted"):
            Mapping(segment.descriptor, segment.size, writable=True)
        with pytest.raises(OSError, match="permitted"):
            os.pwrite(segment.descriptor, b"x", 0)

    with_ends(test)


@pytest.mark.skipif(not resources.available(), reason="needs Linux's /proc")
def test_arrays_of_any_size_cost_their_own_memory_and_little_more() -> None:
    with Mesh() as mesh:
        for size in (200 * MEGABYTE, 200 * MEGABYTE, 300 * MEGABYTE, 100 * MEGABYTE):
            found = measures.array_memory(mesh, size)
            assert found["sender_beyond_value"] < 64 * MEGABYTE
            assert found["receiver_beyond_value"] < 64 * MEGABYTE


@pytest.mark.parametrize("size", [COPIED_AHEAD_FROM - 8, COPIED_AHEAD_FROM + 7, COPIED_AT_ONCE, COPIED_AT_ONCE + 8])
def test_what_was_copied_where_it_was_made_is_sent_as_it_is(size: int) -> None:
    async def test(a: End, b: End) -> None:
        assert a.pool is not None
        array = (
            np.arange(size // 8, dtype=float).reshape(2, -1) if size % 16 == 0 else np.arange(size // 8, dtype=float)
        )
        copy = await asyncio.to_thread(a.pool.copy_of, array)
        if not COPIED_AHEAD_FROM <= array.nbytes <= COPIED_AT_ONCE:
            assert copy is None
            return
        assert (copy.shape, copy.dtype, copy.flags.writeable) == (array.shape, array.dtype, False)
        for turn in range(2):
            a.link.send(token(turn, copy[:]))
            await until(lambda turn=turn: len(b.got) == turn + 1)  # type: ignore[misc]
        assert a.pool.copied == 0
        del copy
        assert all((b.array(turn).view(float) == array.ravel()).all() for turn in range(2))
        assert a.pool.in_use >= array.nbytes, "the receiver still has it"
        b.got.clear()
        await all_free(a)

    with_ends(test)
