"""The floor: what two bare processes do with a Unix domain socket and msgspec, without any framework.

There is no client beside site a, nothing is checked, no failure is handled. The ruler sends *one message at a time*:
each is written with a call of its own and read with calls of its own, with up to `ITEM_WINDOW` of them unanswered. The
*batched* floor writes and reads as many messages at once as there are. Arrays are copied once, in one process, into
memory that was faulted in before.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from dfmesh.cli.bench import operations
from dfmesh.cli.bench.floor_messages import ONE_AT_A_TIME, RECEIVES, SENDS, Message
from dfmesh.cli.bench.floor_peer import READY, operated
from dfmesh.cli.bench.measures import check
from dfmesh.cli.bench.system import ARRAY_WINDOW, ITEM_WINDOW, SITES, Client, System

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STOP_SECONDS = 10.0


class Floor(System):
    """Two processes: this one, which is client and site a, and site b."""

    name: ClassVar[str] = "floor"
    import_statement: ClassVar[str] = "import msgspec, socket"

    def __init__(self, way: str = ONE_AT_A_TIME) -> None:
        """Prepare.

        Args:
            way: How messages are sent and received: `ONE_AT_A_TIME` or `BATCHED`.
        """
        self._way = way
        self._send = SENDS[way]
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            directory = starting.enter_context(tempfile.TemporaryDirectory(prefix="dfmesh-floor-"))
            self._path = str(Path(directory) / "b.sock")
            self._peer = starting.enter_context(_peer_process(self._path, self._way))
            starting.callback(_stop, self._peer)
            if self._peer.stdout is None or self._peer.stdout.readline().strip() != READY:
                raise RuntimeError("the other process of the floor did not start")
            self._open = starting.pop_all()
        self._connection = self._connect()
        self._replies = RECEIVES[self._way](self._connection)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _connect(self) -> socket.socket:
        connection = self._open.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.connect(self._path)
        return connection

    def first_results(self) -> list[int]:
        """Run one operation at the only other process, four times."""
        return [self.call(number) for number in range(len(SITES))]

    def call(self, number: int) -> int:
        """Send a message and wait for its answer."""
        self._send(self._connection, (Message(number, number),))
        return next(self._replies)[0].value

    def client(self) -> Client:
        """Open one more connection; answers come in the order of the calls."""
        connection = self._connect()
        replies = itertools.chain.from_iterable(RECEIVES[self._way](connection))

        def submit(number: int) -> int:
            self._send(connection, (Message(number, number),))
            return number

        def take(number: int) -> None:
            check(next(replies).value, number, "a call")

        return Client(submit, take)

    def items(self, count: int) -> int:
        """Send the items of a list, with at most a window of them unanswered."""
        elements = operations.numbers(count)
        total = sent = answered = 0
        while answered < count:
            stop = min(count, answered + ITEM_WINDOW)
            if stop > sent:
                self._send(self._connection, [Message(number, elements[number]) for number in range(sent, stop)])
                sent = stop
            for message in next(self._replies):
                total += message.value
                answered += 1
        return total

    def arrays(self, size: int, count: int) -> list[float]:
        """Copy arrays one after the other into as many targets as may be open at a time, as a pool would.

        Nobody looks at the copies: the ruler is the copying alone.
        """
        targets = _faulted_in(size, min(count, ARRAY_WINDOW))
        for number in range(count):
            targets[number % len(targets)][:] = operations.array(size, number)
        return list(_probes(size, count))

    def chains(self, hops: int, count: int) -> list[int]:
        """Pass messages to and fro, with an operation at every arrival."""
        self._send(self._connection, [Message(number, number, hops) for number in range(count)])
        found = [-1] * count
        left = count
        while left:
            answers = [operated(message) for message in next(self._replies)]
            onwards = [answer for answer in answers if answer.hops > 0]
            for answer in answers:
                if answer.hops <= 0:
                    found[answer.number] = answer.value
                    left -= 1
            if onwards:
                self._send(self._connection, onwards)
        return found

    def site_processes(self) -> dict[str, int]:
        """Give the other process."""
        return {"b": self._peer.pid}


@cache
def _faulted_in(size: int, count: int) -> list[NDArray[np.float64]]:
    """Give arrays whose memory the system has already provided; made once, so that making them is not measured."""
    import numpy as np

    return [np.ones(size // 8) for _ in range(count)]


@cache
def _probes(size: int, count: int) -> tuple[float, ...]:
    return tuple(operations.probes(size, count))


def _peer_process(path: str, way: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dfmesh.cli.bench.floor_peer", path, way]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own


def _stop(peer: subprocess.Popen[str]) -> None:
    """End the process by closing its standard input, or else by force."""
    if peer.stdin is not None:
        peer.stdin.close()
    try:
        peer.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        peer.kill()
        peer.wait()
