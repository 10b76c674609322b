"""A site process with a runner that does what the tests of the target tell it: no engine, no configuration."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import Any

import msgspec

from dfmesh.engine.message_parts import Failure, Payload
from dfmesh.engine.messages import (
    FailureReport,
    JobStarted,
    ScopeEnded,
    SiteLost,
    StartJob,
    TokenPackage,
    YieldPackage,
)
from dfmesh.targets.local import site_process


class StubRunner:
    """Commands come as `StartJob(job, net)` with a JSON list in `net`: name and arguments."""

    def __init__(self, federation: str, site: str, homesite: str, carrier: Any, call_log: Any) -> None:
        if os.path.basename(federation) == f"broken-{site}.dfm.yaml":
            raise ValueError("this federation file is broken")
        self.site = site
        self.homesite = homesite
        self.carrier = carrier
        self.call_log = call_log
        self.client = ""
        self.seen: dict[str, int] = {}
        self.disorder = 0
        self.kept: list[Any] = []
        self.for_client: list[Any] = []

    def receive(self, peer: str, message: Any) -> None:
        if peer.startswith("client:"):
            self.client = peer
        match message:
            case StartJob():
                name, *arguments = msgspec.json.decode(message.net)
                getattr(self, f"do_{name}")(peer, message.job, *arguments)
            case TokenPackage():
                self.token(peer, message)
            case SiteLost():
                self.tell(peer, f"lost {message.site}: {message.reason} {message.running}")
            case JobStarted() | ScopeEnded() | FailureReport() | YieldPackage():
                self.pass_on(message)

    def token(self, peer: str, message: TokenPackage) -> None:
        seen = self.seen.get(peer, 0)
        self.disorder += message.route != seen
        self.seen[peer] = seen + 1
        if message.payload is not None and message.payload.buffers:
            self.kept.append(message.payload)
        if message.skipped:  # the last one
            self.answer(message.job, f"{self.site} got {seen + 1} from {peer}, {self.disorder} out of order")

    def answer(self, job: str, text: str) -> None:
        failure = Failure(self.site, "", "", (), "", "answer", text)
        if self.site == self.homesite:
            self.pass_on(FailureReport(job, failure))
        else:
            self.carrier.send(self.homesite, FailureReport(job, failure))

    def pass_on(self, message: Any) -> None:
        """To the client, as soon as we know one."""
        self.for_client.append(message)
        if self.client:
            for message in self.for_client:
                self.carrier.send(self.client, message)
            self.for_client.clear()

    def tell(self, peer: str, text: str) -> None:
        self.answer(peer, text)

    def do_echo(self, peer: str, job: str) -> None:
        self.pass_on(JobStarted(job))

    def do_via(self, peer: str, job: str, to: str, *command: Any) -> None:
        self.carrier.send(to, StartJob(job, msgspec.json.encode(command)))

    def do_flood(self, peer: str, job: str, to: str, count: int, size: int = 20) -> None:
        payload = Payload(b"x" * size)
        for index in range(count):
            self.carrier.send(to, TokenPackage(job, index, (0, index), payload, skipped=index == count - 1))

    def do_arrays(self, peer: str, job: str, to: str, count: int, size: int) -> None:
        import numpy as np

        array = np.arange(size, dtype=np.uint8)
        for index in range(count):
            payload = self.carrier.pack(array)
            self.carrier.send(to, TokenPackage(job, index, (0, index), payload, skipped=index == count - 1))

    def do_drop(self, peer: str, job: str) -> None:
        self.kept.clear()
        self.answer(job, "dropped")

    def do_sums(self, peer: str, job: str) -> None:
        values = [self.carrier.unpack(payload) for payload in self.kept]
        self.answer(job, f"{len(values)} {sum(int(v.sum(dtype='u8')) for v in values)} {values[0].flags.writeable}")

    def do_memory(self, peer: str, job: str) -> None:
        self.answer(job, f"{self.carrier.shared_bytes} {self.carrier.shared_in_use}")

    def do_yield(self, peer: str, job: str, size: int) -> None:
        import numpy as np

        payload = self.carrier.pack(np.arange(size, dtype=np.uint8))
        self.carrier.send(self.homesite, YieldPackage(job, "yield", (0,), "n", self.site, payload))

    def do_self(self, peer: str, job: str) -> None:
        size = self.carrier.send(self.site, TokenPackage(job, self.seen.get(self.site, 0), (size0 := 0,), skipped=True))
        assert size == size0

    def do_calls(self, peer: str, job: str) -> None:
        self.call_log.ended(self.call_log.started("other", 1, (0,)))
        self.call_log.started(job, 7, (0, 3))
        self.answer(job, "called")

    def do_print(self, peer: str, job: str, text: str) -> None:
        print(text)
        subprocess.run(["echo", "from a child"], check=True)
        self.answer(job, "printed")

    def do_exit(self, peer: str, job: str, code: int) -> None:
        print("about to leave", file=sys.stderr)
        sys.stderr.flush()
        os._exit(code)

    def do_signal(self, peer: str, job: str, number: int) -> None:
        os.kill(os.getpid(), number)

    def do_garbage(self, peer: str, job: str, to: str) -> None:
        self.carrier._links[to]._append(b"\xff" * 100)

    def do_forge(self, peer: str, job: str, to: str) -> None:
        self.carrier.send(to, SiteLost("", "a", "forged", ()))

    def do_hang_loop(self, peer: str, job: str) -> None:
        self.answer(job, "hanging")
        asyncio.get_running_loop().call_later(0.05, time.sleep, 1000)

    def do_hang_hard(self, peer: str, job: str) -> None:
        """Never let go of the interpreter's lock, as a C extension may, and have a child process."""
        subprocess.Popen(["sleep", "1000"])
        self.answer(job, "hanging")
        asyncio.get_running_loop().call_later(0.05, sum, range(10**12))

    def client_lost(self, peer: str) -> None:
        self.answer(peer, "client lost")

    async def close(self) -> None:
        pass


if __name__ == "__main__":
    site_process.main(sys.argv[1:], lambda: StubRunner)
