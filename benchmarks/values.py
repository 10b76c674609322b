"""Speed of the value codec and of shared memory, beside their floors in the same run.

The floors are plain MessagePack for values, and one copy into memory that was faulted in before for arrays.

python benchmarks/values.py
"""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from dfmesh import values
from dfmesh.engine.messages import AnyMessage, TokenPackage
from dfmesh.targets import payloads
from dfmesh.targets.local.link import Link
from dfmesh.targets.local.shared import SegmentPool, available
from dfmesh.targets.wire import Codec

_ROUNDS = 5
_SECONDS = 0.05
_WARM_UP = 3


def seconds(action: Callable[[], Any]) -> float:
    """Give the best time of one call, in seconds."""
    timer = timeit.Timer(action)
    once = max(timer.timeit(1), 1e-8)
    number = max(1, int(_SECONDS / once))
    return min(timer.repeat(_ROUNDS, number)) / number


VALUES: dict[str, tuple[Any, Any]] = {
    "int": (12345, None),
    "float": (1.5, None),
    "str": ("hello world", None),
    "bytes": (b"hello world", None),
    "list of 10 ints": (list(range(10)), None),
    "dict of 5 fields": ({"a": 1, "b": "x", "c": 2.5, "d": None, "e": True}, None),
    "nested dict": ({"a": [1, 2], "b": {"c": 1}}, None),
    "20 rows": ([{"a": i, "b": str(i)} for i in range(20)], None),
    "1,000 rows": ([{"a": i, "b": str(i), "c": 2.5} for i in range(1000)], None),
    "list of 10,000 floats": ([float(i) for i in range(10_000)], None),
    "tuple of 3": ((1, 2.5, "x"), [1, 2.5, "x"]),
    "dict with a tuple": ({"a": (1, 2), "b": [1, 2, 3]}, {"a": [1, 2], "b": [1, 2, 3]}),
    "1,000 tuples of 2": ([(i, 2.5) for i in range(1000)], [[i, 2.5] for i in range(1000)]),
    "set of 10 ints": (set(range(10)), list(range(10))),
    "datetime (UTC)": (dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC), "2020-01-02T03:00:00Z"),
    "array of 10 doubles": (np.arange(10.0), [float(i) for i in range(10)]),
}


def time_values() -> None:
    """Print nanoseconds for typical values and how many times plain MessagePack (of the nearest value) that is."""
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode
    print(f"{'value':24}{'pack ns':>10}{'x':>6}{'unpack ns':>11}{'x':>6}{'to_bytes':>10}{'from_bytes':>11}")
    for name, (value, nearest) in VALUES.items():
        nearest = value if nearest is None else nearest
        plain = encode(nearest)
        floor_in, floor_out = seconds(lambda v=nearest: encode(v)), seconds(lambda d=plain: decode(d))
        head, buffers = values.pack(value)
        data = values.to_bytes(value)
        times = [
            seconds(lambda v=value: values.pack(v)),
            seconds(lambda h=head, b=buffers: values.unpack(h, b)),
            seconds(lambda v=value: values.to_bytes(v)),
            seconds(lambda d=data: values.from_bytes(d)),
        ]
        pack, unpack, to_bytes, from_bytes = (1e9 * time for time in times)
        ratios = times[0] / floor_in, times[1] / floor_out
        print(
            f"{name:24}{pack:10,.0f}{ratios[0]:6.1f}{unpack:11,.0f}{ratios[1]:6.1f}{to_bytes:10,.0f}{from_bytes:11,.0f}"
        )


def time_buffers() -> None:
    """Print GB/s for large values and how many times as long as one memcpy of the same bytes they take."""
    rows = 4_000_000
    large = {
        "array, C": np.arange(32.0 * 1024 * 1024 / 8),
        "array, transposed": np.ones((1024, 4096)).T,
        "array, every other": np.arange(64.0 * 1024 * 1024 / 8)[::2],
        "Arrow table": pa.table({"a": np.arange(float(rows)), "s": ["abcdefgh"] * rows}),
        "bytes": bytes(32 * 1024 * 1024),
    }
    titles = f"{'MB':>6}{'pack us':>10}{'unpack us':>11}{'to_bytes':>10}{'x memcpy':>10}{'from_bytes us':>14}"
    print(f"\n{'large value':24}{titles}")
    for name, value in large.items():
        size = values.size_of(value)
        source = bytes(size)
        target = bytearray(size)
        memcpy = seconds(lambda t=target, s=source: t.__setitem__(slice(None), s))
        packed, data = values.pack(value), values.to_bytes(value)
        pack, unpack = seconds(lambda v=value: values.pack(v)), seconds(lambda p=packed: values.unpack(*p))
        joined, split = seconds(lambda v=value: values.to_bytes(v)), seconds(lambda d=data: values.from_bytes(d))
        rate = f"{size / joined / 1e9:.1f} GB/s"
        line = f"{name:24}{size / 1e6:6.0f}{1e6 * pack:10,.1f}{1e6 * unpack:11,.1f}{rate:>10}{joined / memcpy:10.2f}"
        print(f"{line}{1e6 * split:14,.1f}")


class Sender:
    """A link to a receiver in the same process, which drops each array when it has looked at its ends."""

    def __init__(self) -> None:
        self.pool = SegmentPool(lambda segment: None)
        self._arrived = asyncio.Event()
        left, right = socket.socketpair()
        self._link = Link("b", Codec(AnyMessage), self._receive, self._broken, pool=self.pool)
        self._link.attach(left)
        self._other = Link("a", Codec(AnyMessage), self._receive, self._broken)
        self._other.attach(right)

    def _receive(self, peer: str, message: Any) -> None:
        array = payloads.unpack(message.payload)
        if array[0] != array[-1]:
            raise ValueError("another array arrived")
        self._arrived.set()

    def _broken(self, link: Link, reason: str, to_blame: bool) -> None:
        raise RuntimeError(reason)

    async def seconds(self, array: Any) -> float:
        """Send an array and wait until it is there."""
        self._arrived.clear()
        begin = time.perf_counter()
        self._link.send(TokenPackage("job", 0, (0,), payloads.pack(array)))
        await self._arrived.wait()
        return time.perf_counter() - begin

    def close(self) -> None:
        """Close both ends."""
        self._link.detach()
        self._other.detach()
        self.pool.close()


async def time_links() -> None:
    """Print, for arrays that go over a link, by turns with a copy of the same bytes, GB/s, and the ratio of medians."""
    titles = f"{'GB/s':>8}{'x copy':>8}{'made there':>13}{'x copy':>8}"
    print(f"\n{'array over a link':24}{'copy GB/s':>10}{titles}")
    sender = Sender()
    for megabytes in (1, 4, 16, 64, 256):
        source, target = np.ones(megabytes << 17), np.ones(megabytes << 17)
        times: list[tuple[float, float, float]] = []
        for turn in range(_WARM_UP + max(5, 512 // megabytes)):
            await asyncio.sleep(0.001)  # What was sent before is given back now.
            begin = time.perf_counter()
            target[:] = source
            copied = time.perf_counter() - begin
            made = sender.pool.new_array(source.shape, source.dtype)
            if made is None:
                raise MemoryError("the pool has no room")
            made[:: len(made) - 1] = 1  # Its ends; what is between them is of no interest here.
            taken = copied, await sender.seconds(source), await sender.seconds(made)
            del made
            if turn >= _WARM_UP:
                times.append(taken)
        floor, sent, there = (statistics.median(column) for column in zip(*times, strict=True))
        size = source.nbytes / 1e9
        line = f"{f'{megabytes} MB':24}{size / floor:10.1f}{size / sent:8.1f}{floor / sent:8.2f}"
        print(f"{line}{1e6 * there:10.0f} us{floor / there:8.1f}")
    sender.close()


if __name__ == "__main__":
    time_values()
    time_buffers()
    if available():
        asyncio.run(time_links())
