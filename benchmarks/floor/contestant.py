"""Client and site a of the floor: `python -m floor.contestant KIND PARAMETERS`."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from arrays import float_array, probes
from sampling import (
    ARRAY_WINDOW,
    ITEM_WINDOW,
    Client,
    check,
    emit,
    emit_latencies,
    order_from_command_line,
    pipelined_rate,
    timed_calls,
)

from floor.wire import Message, batches, receive_one, send

Connect = Callable[[str], socket.socket]


@contextmanager
def peer_process() -> Iterator[Connect]:
    """Start site b; gives a function that opens one more connection to it, for `calls` or for `arrays`."""
    with tempfile.TemporaryDirectory(prefix="floor-") as directory:
        path = str(Path(directory) / "b.sock")
        peer = subprocess.Popen([sys.executable, "-m", "floor.peer", path], stdout=subprocess.PIPE)
        try:
            if peer.stdout is None or not peer.stdout.readline():
                sys.exit("the floor's site b did not start")
            yield lambda purpose: connect(path, purpose)
        finally:
            peer.kill()
            peer.wait()


def connect(path: str, purpose: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    send(connection, Message(0, purpose))
    return connection


def round_trip(connection: socket.socket) -> Callable[[int], None]:
    """One job: a call of one operation, and its result."""
    replies = batches(connection)

    def call(number: int) -> None:
        send(connection, Message(number, number))
        check(next(replies)[0].value, number, "a call")

    return call


def measure_latency(connect_to: Connect, seconds: float) -> None:
    call = round_trip(connect_to("calls"))
    timed_calls(call, seconds=0.1)
    durations = timed_calls(call, seconds)
    emit_latencies("job", durations)
    emit("first_result_p50", sorted(durations)[len(durations) // 2])


def measure_parallel(connect_to: Connect, seconds: float) -> None:
    emit("jobs_per_second", pipelined_rate(lambda _: pipelined_client(connect_to("calls")), seconds))


def pipelined_client(connection: socket.socket) -> Client:
    """A client thread with its own connection; results come back in the order of the calls."""
    replies = (message for found in batches(connection) for message in found)

    def submit(number: int) -> int:
        send(connection, Message(number, number))
        return number

    def take(number: int) -> None:
        check(next(replies).value, number, "a call")

    return Client(submit, take)


def run_items(connection: socket.socket, count: int) -> float:
    """Send the items of a list one by one, at most a window of them unanswered; seconds until the last result."""
    replies = batches(connection)
    begin = time.perf_counter()
    items = list(range(count))
    total = sent = answered = 0
    while answered < count:
        while sent < count and sent - answered < ITEM_WINDOW:
            send(connection, Message(sent, items[sent]))
            sent += 1
        for message in next(replies):
            total += message.value
            answered += 1
    elapsed = time.perf_counter() - begin
    check(total, count * (count - 1) // 2, "the items")
    return elapsed


def measure_items(connect_to: Connect, seconds: float, count: int) -> None:
    connection = connect_to("calls")
    run_items(connection, min(count, 1_000))
    durations = timed_calls(lambda _: run_items(connection, count), seconds, at_least=1)
    emit("items_per_second", count * len(durations) / sum(durations))


def run_arrays(connection: socket.socket, size: int, count: int) -> None:
    """Send so many arrays, at most a window of them unanswered, and check the probes."""
    found: list[float] = []
    for number in range(count + ARRAY_WINDOW):
        if number < count:
            send(connection, Message(number, size))
            connection.sendall(float_array(size, number).data.cast("B"))
        if number >= ARRAY_WINDOW and (reply := receive_one(connection)):
            found.append(reply.value)
    check(found, probes(size, count), "the arrays")


def measure_arrays(connect_to: Connect, seconds: float, size: int, count: int) -> None:
    connection = connect_to("arrays")
    probes(size, count)
    run_arrays(connection, size, count)
    durations = timed_calls(lambda _: run_arrays(connection, size, count), seconds)
    emit("bytes_per_second", size * count * len(durations) / sum(durations))


def measure_memcpy(seconds: float, size: int, count: int) -> None:
    """Plain copies of one array after the other, all of them faulted in, into one target as a pool would."""
    sources = [float_array(size, index) for index in range(count)]
    target = np.ones(size // 8)

    def copy_all(_: int) -> None:
        for source in sources:
            np.copyto(target, source)

    durations = timed_calls(copy_all, seconds)
    emit("bytes_per_second", size * count * len(durations) / sum(durations))


def measure_cold() -> None:
    begin = time.perf_counter()
    with peer_process() as connect_to:
        round_trip(connect_to("calls"))(0)
        emit("connect_first_result", time.perf_counter() - begin)


def main() -> None:
    kind, parameters = order_from_command_line()
    if kind == "cold":
        measure_cold()
    elif kind == "memcpy":
        measure_memcpy(**parameters)
    else:
        measures: dict[str, Callable[..., None]] = {
            "latency": measure_latency,
            "parallel": measure_parallel,
            "items": measure_items,
            "arrays": measure_arrays,
        }
        with peer_process() as connect_to:
            measures[kind](connect_to, **parameters)


if __name__ == "__main__":
    main()
