"""The client's event loop at the interpreter's exit."""

from __future__ import annotations

import asyncio
import threading

from dfmesh.session.loop_thread import LoopThread


async def small() -> int:
    await asyncio.sleep(0)
    return 3


def test_nothing_runs_on_its_thread_after_its_end_and_what_is_done_then_is_done() -> None:
    before = threading.active_count()
    loop = LoopThread()
    assert loop.start(small()).result(60) == 3
    loop.end()
    assert threading.active_count() == before
    assert loop.start(small()).result(0) == 3
    assert not loop.is_current()
    loop.loop.close()
