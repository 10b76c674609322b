"""Two links in one process that are the two ends of one connection."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dfmesh.engine.message_parts import Payload
from dfmesh.engine.messages import AnyMessage, TokenPackage
from dfmesh.targets.local.link import Link
from dfmesh.targets.local.shared import SegmentPool, available
from dfmesh.targets.wire import Attachment, Codec

needs_memory_files = pytest.mark.skipif(not available(), reason="this system has no sealed memory files")


class End:
    """A link and what happened at it."""

    def __init__(self, name: str, peer: str, limit: int | None = None, share: bool = True, pool: Any = None) -> None:
        self.name = name
        self.got: list[Any] = []
        self.broken: list[str] = []
        self.pool = pool or (SegmentPool(self.retire, limit=limit) if share and available() else None)
        self.link = Link(
            peer,
            Codec(AnyMessage),
            lambda peer, message: self.got.append(message),
            lambda link, reason, to_blame: self.broken.append(reason),
            pool=self.pool,
            on_forgotten=self.retire,
        )

    def retire(self, segment: Any) -> None:
        self.link.forget(segment)

    def array(self, index: int = -1) -> Any:
        return np.frombuffer(self.got[index].payload.buffers[0].view, dtype=np.uint8)


def token(index: int, *data: Any) -> TokenPackage:
    attachments = tuple(Attachment(memoryview(part).cast("B")) for part in data)
    return TokenPackage("job", index, (0, index), Payload(b"head", attachments))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0)


def with_ends(test: Callable[[End, End], Awaitable[None]], *, tcp: bool = False, limit: int | None = None) -> None:
    async def run() -> None:
        a, b = End("a", "b", limit, not tcp), End("b", "a", limit, not tcp)
        left, right = tcp_pair() if tcp else socket.socketpair()
        a.link.attach(left)
        b.link.attach(right)
        await test(a, b)
        a.link.detach()
        b.link.detach()
        for end in (a, b):
            if end.pool is not None:
                end.pool.close()

    before = set(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else set()
    asyncio.run(run())
    gc.collect()
    if before:
        assert len(set(os.listdir("/proc/self/fd")) - before) == 0, "descriptors are left open"
        assert resident_shared_bytes() is None, "shared memory is left mapped"


def resident_shared_bytes() -> int | None:
    """Add up the shared memory of links that counts as memory of this process; None if none is mapped."""
    total, mapped, ours = 0, False, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            ours = "memfd:dfmesh" in line
            mapped = mapped or ours
        elif ours and name == "Rss:":
            total += 1024 * int(rest[0])
    return total if mapped else None


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        left = socket.create_connection(server.getsockname())
        return left, server.accept()[0]
