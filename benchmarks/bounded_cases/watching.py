"""Watches the resident memory of every process of a federation, and counters, over time."""

from __future__ import annotations

import csv
import os
import statistics
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from bounded_cases.counting import Counter
from dfmesh.cli.bench.mesh import SITE_MODULE
from dfmesh.cli.bench.resources import command_line, private_bytes, processes_of_run, resident_bytes

MEGABYTE = 1 << 20
LIMIT_BYTES = 64 * MEGABYTE
CLIENT = "client"
WARM_UP_SHARE = 0.15
"""Part of a run in which pools, caches and libraries may fill; what is resident then is what it is compared with."""


def role(pid: int) -> str:
    """What a process is: the client, a site by its name, or else its program."""
    if pid == os.getpid():
        return CLIENT
    arguments = command_line(pid)
    if SITE_MODULE in arguments:
        return f"site {arguments[arguments.index(SITE_MODULE) + 2]}"
    return " ".join(Path(word).name for word in arguments[:3] if not word.startswith("-"))


class Watch:
    """Samples from a thread of its own, as long as the context is open.

    Attributes:
        memory: By process, `(seconds since the begin, resident bytes)`.
        counts: By counter, `(seconds since the begin, number)`.
        marks: What happened when.
    """

    def __init__(self, interval: float, counters: Mapping[str, str] | None = None) -> None:
        """Prepare.

        Args:
            interval: Seconds between samples.
            counters: Name to file of each counter.
        """
        self.memory: dict[str, list[tuple[float, int]]] = {}
        self.private: dict[str, list[tuple[float, int]]] = {}
        self.counts: dict[str, list[tuple[float, int]]] = {}
        self.marks: list[tuple[float, str]] = []
        self._interval = interval
        self._counters = dict(counters or {})
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._begin = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._sample()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    def mark(self, text: str) -> None:
        """Note that something happens now."""
        self.marks.append((self.seconds, text))

    def _run(self) -> None:
        while not self._done.is_set():
            self._sample()
            self._done.wait(self._interval)

    def _sample(self) -> None:
        now = self.seconds
        for pid in processes_of_run():
            size = resident_bytes(pid)
            if size:
                name = role(pid)
                self.memory.setdefault(name, []).append((now, size))
                self.private.setdefault(name, []).append((now, private_bytes(pid)))
        for name, path in self._counters.items():
            self.counts.setdefault(name, []).append((now, Counter.read(path)))

    def rise(self, process: str) -> int:
        """By how many bytes a process has risen above what it held at the end of the warm-up, at most."""
        samples = self.memory[process]
        first, last = samples[0][0], samples[-1][0]
        warm = first + WARM_UP_SHARE * (last - first)
        before = [size for at, size in samples if at <= warm]
        after = [size for at, size in samples if at > warm]
        return max(after, default=before[-1]) - int(statistics.median(before[-3:]))

    def slope(self, process: str) -> float:
        """Bytes per second by which a process grows in the second half of the run, between medians of its tenths."""
        samples = self.memory[process]
        half = samples[len(samples) // 2 :]
        tenth = max(1, len(half) // 10)
        begin, end = half[:tenth], half[-tenth:]
        seconds = end[-1][0] - begin[0][0]
        grown = statistics.median(size for _, size in end) - statistics.median(size for _, size in begin)
        return grown / seconds if seconds else 0.0

    def write(self, path: Path) -> None:
        """Write all samples as CSV: seconds, kind, name, value."""
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["seconds", "kind", "name", "value"])
            for kind, series in (("resident", self.memory), ("private", self.private), ("count", self.counts)):
                for name, samples in series.items():
                    rows.writerows((f"{at:.3f}", kind, name, value) for at, value in samples)
            rows.writerows((f"{at:.3f}", "mark", text, "") for at, text in self.marks)
