"""A client in its own process, to be killed. No `__main__` guard, on purpose."""

import asyncio
import os
import sys
import threading

from stub_federation import STUB, Config, Stubs

from dfmesh.targets.local.runner import LocalFederationRunner

how, path = sys.argv[1:]


async def main() -> None:
    runner = LocalFederationRunner(Config(path, "abc"), "a", program=STUB)  # type: ignore[arg-type]
    stubs = Stubs(runner)
    await runner.start(stubs.got.put_nowait, stubs.lost.put_nowait)
    print(*runner.processes.values(), flush=True)
    if how == "fork" and os.fork() == 0:
        threading.Event().wait(20)
    if how == "busy":
        stubs.tell("flood", "b", 300_000, to="c")
        stubs.tell("arrays", "b", 20, 2**22, to="c")
    if how == "hang":
        await stubs.ask("hang_hard", to="b")
        await stubs.ask("hang_loop", to="c")
    if how == "leave":
        return
    if how == "raise":
        raise ValueError("the user's script fails")
    if how == "interrupt":
        try:
            await asyncio.Event().wait()
        finally:
            await runner.close()
    print("waiting", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
