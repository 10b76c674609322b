"""A message that goes out on the thread that has it, when nothing is before it."""

from __future__ import annotations

import asyncio
import socket
import threading

import numpy as np
from link_ends import End, token, until, with_ends

from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import TokenPackage
from dfmesh.targets.local.shared import SHARE_FROM


def idle(end: End) -> bool:
    return not end.link._scheduled


def test_it_is_sent_and_told_of_before() -> None:
    async def test(a: End, b: End) -> None:
        await until(lambda: idle(a))
        before: list[int] = []
        assert await asyncio.to_thread(a.link.send_at_once, token(0), lambda: before.append(len(b.got)))
        assert before == [0]
        await until(lambda: len(b.got) == 1)
        a.link.send(token(1))
        await until(lambda: len(b.got) == 2)
        assert [message.route for message in b.got] == [0, 1]

    with_ends(test)


def test_it_is_not_when_something_is_before_it_or_it_cannot_be() -> None:
    async def test(a: End, b: End) -> None:
        def before() -> None:
            raise AssertionError("nothing is sent")

        await until(lambda: idle(a))
        assert not a.link.send_at_once(token(0, np.zeros(2 * SHARE_FROM, np.uint8)), before)
        assert not a.link.send_at_once(TokenPackage("job", 0, (2**70,), None), before), "`send` says why"
        a.link.send(token(1))
        assert not a.link.send_at_once(token(2), before)
        await until(lambda: len(b.got) == 1)
        a.link.detach()
        assert not a.link.send_at_once(token(3), before), "there is no connection"

    with_ends(test)


def test_what_the_system_does_not_take_at_once_goes_before_all_that_comes_later() -> None:
    async def test(a: End, b: End) -> None:
        await until(lambda: idle(a))
        large = TokenPackage("job", 0, (0,), Payload(bytes(16 * 2**20)))
        assert a.link.send_at_once(large, lambda: None)
        assert not a.link.send_at_once(token(1), lambda: None)
        a.link.send(token(1))
        await until(lambda: len(b.got) == 2)
        assert [message.route for message in b.got] == [0, 1]
        assert a.link.outbox_bytes == 0

    with_ends(test)


def test_a_peer_that_is_gone_breaks_the_connection_as_always() -> None:
    async def run() -> None:
        a = End("a", "b", share=False)
        left, right = socket.socketpair()
        a.link.attach(left)
        right.close()
        assert a.link.send_at_once(token(0), lambda: None), "nobody is to send it once more"
        await until(lambda: bool(a.broken))

    asyncio.run(run())


def test_many_threads_and_the_event_loop_send_whole_messages() -> None:
    async def test(a: End, b: End) -> None:
        left = [0] * 4

        def send(number: int) -> None:
            for index in range(500):
                message = TokenPackage(str(number), index, (0,), Payload(bytes(index)))
                if not a.link.send_at_once(message, lambda: None):
                    left[number] += 1

        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        count = 0
        while any(thread.is_alive() for thread in threads):
            a.link.send(TokenPackage("loop", count, (0,), Payload(bytes(count % 5000))))
            count += 1
            await asyncio.sleep(0)
        await until(lambda: len(b.got) == count + 2000 - sum(left))
        for name in ("loop", "0", "1", "2", "3"):
            routes = [message.route for message in b.got if message.job == name]
            assert routes == sorted(set(routes)), "in order, and none twice"
        assert not b.broken

    with_ends(test)
