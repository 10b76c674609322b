"""The results of a job as they come, for any number of readers on any thread or event loop."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from dfmesh.netir import Frame
from dfmesh.session.bell import Bell
from dfmesh.session.result_run import ResultRun
from dfmesh.session.result_store import ResultStore
from dfmesh.session.results import ResultItem

AT_ONCE = 1000
"""Results that a reader takes at once, so that those that wait on disk do not all come back into memory."""


class ResultLog:
    """Results in order of arrival, and the news that wakes whoever waits.

    Attributes:
        store: All results so far.
        finished_frames: How many top-level frames, counted from the first, are complete without a gap.
        frames: How many are complete.
        closed: Whether nothing more will come.
    """

    def __init__(self, *, keep: bool = True) -> None:
        """Start empty.

        Args:
            keep: Whether results stay when a reader has taken them.
        """
        self.store = ResultStore()
        self._keep = keep
        self.finished_frames = 0
        self.frames = 0
        self.closed = False
        self._finished_early: set[int] = set()
        self._lock = threading.RLock()
        self._listeners: list[Callable[[], None]] = []

    def add(self, items: Sequence[ResultItem]) -> None:
        """Append results, as `add_run` does."""
        for item in items:
            self.add_run(ResultRun.of_one(item))

    def add_run(self, run: ResultRun) -> None:
        """Append results that have come together.

        Raises:
            ValueEncodingError: one cannot be written to disk.
            OSError: the disk is full.
        """
        with self._lock:
            try:
                self.store.add(run)
            finally:
                self._tell()

    def read(self, start: int, place: str | None = None) -> tuple[list[ResultItem], int]:
        """Give the results from a position on, about `AT_ONCE`, and the position behind them.

        Args:
            start: The position.
            place: Give those of this place only, and pass over the others, which stay; None for all.
        """
        with self._lock:
            stop = self.store.boundary(min(len(self.store), start + AT_ONCE))
            runs = self.store.runs(start, stop)
            if not self._keep:
                self.store.forget(start, stop, place)
        items: list[ResultItem] = []
        for run in runs:
            if place is None or run.place == place:
                items += run.items()
        return items, stop

    def all(self) -> list[ResultItem]:
        """Give all results that are still kept."""
        with self._lock:
            return self.store.slice(0, len(self.store))

    def frame_finished(self, frame: Frame) -> None:
        """Note that all results of a top-level frame have come."""
        with self._lock:
            self.frames += 1
            self._finished_early.add(frame[0])
            while self.finished_frames in self._finished_early:
                self._finished_early.discard(self.finished_frames)
                self.finished_frames += 1
            self._tell()

    def close(self) -> None:
        """Note that nothing more will come."""
        with self._lock:
            self.closed = True
            self._tell()

    def _tell(self) -> None:
        if self._listeners:
            listeners, self._listeners = self._listeners, []
            for listener in listeners:
                listener()

    def wait_beyond(self, seen: tuple[int, int], timeout: float | None = None) -> bool:
        """Block until there is more than a reader has seen; False after the time-out.

        Args:
            seen: Results and finished frames that the reader has seen.
            timeout: Seconds to wait at most; None to wait for ever.
        """
        return self._wait(lambda: self._news(seen), timeout)

    def wait_for_frames(self, count: int, timeout: float) -> bool:
        """Block until so many top-level frames are complete, or nothing more will come; False after the time-out.

        Args:
            count: Top-level frames, whichever.
            timeout: Seconds to wait at most.
        """
        return self._wait(lambda: self.closed or self.frames >= count, timeout)

    def _wait(self, come: Callable[[], bool], timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            bell = Bell()
            with self._lock:
                if come():
                    return True
                self._listeners.append(bell.ring)
            if not bell.wait(deadline):
                with self._lock:
                    if bell.ring in self._listeners:
                        self._listeners.remove(bell.ring)
                    return come()

    def call_beyond(self, seen: tuple[int, int], listener: Callable[[], None]) -> None:
        """Call a function, on any thread, as soon as there is more than a reader has seen."""
        with self._lock:
            if not self._news(seen):
                self._listeners.append(listener)
                return
        listener()

    def _news(self, seen: tuple[int, int]) -> bool:
        return self.closed or (len(self.store), self.finished_frames) != seen


class Reader:
    """One reader's way through a log.

    In frame order, an item is given as soon as nothing that belongs before it can come any more: all of a parameter
    set that is complete, and of one that runs, items of a place whose frames follow one another without a gap.
    """

    def __init__(
        self, log: ResultLog, place: str | None, *, ordered: bool, order: dict[str, int], sources: dict[str, int]
    ) -> None:
        """Start at the first result.

        Args:
            log: The results.
            place: The place to read; None for all.
            ordered: Whether to give them in frame order.
            order: Position of each Yield in the pipeline.
            sources: How many Yields send to each place.
        """
        self._log = log
        self._place = place
        self._ordered = ordered
        self._order = order
        self._sources = sources
        self._position = 0
        self._frames = 0
        self._held: list[tuple[Frame, int, int, ResultItem]] = []
        self._next: dict[str, Frame] = {}

    @property
    def seen(self) -> tuple[int, int]:
        """What to wait beyond."""
        return self._position, self._frames

    @property
    def done(self) -> bool:
        """Whether everything has been given."""
        return self._log.closed and self._position == len(self._log.store) and not self._held

    def take(self) -> Iterator[ResultItem]:
        """Give what can be given now."""
        closed = self._log.closed
        self._frames = self._log.finished_frames
        wanted, self._position = self._log.read(self._position, self._place)
        closed = closed and self._position == len(self._log.store)
        if not self._ordered:
            yield from wanted
            return
        for item in wanted:
            heapq.heappush(self._held, (item.frame, self._order.get(item.node, 0), id(item), item))
        while self._held and (closed or self._may_go(self._held[0][3])):
            item = heapq.heappop(self._held)[3]
            self._next[item.place] = (*item.frame[:-1], item.frame[-1] + 1)
            yield item

    def _may_go(self, item: ResultItem) -> bool:
        top = item.frame[0]
        if top < self._frames:
            return True
        if top > self._frames or self._place is None or self._sources.get(item.place) != 1 or len(item.frame) > 2:
            return False
        return len(item.frame) == 1 or item.frame == self._next.get(item.place, (top, 0)) or item.frame == (top, 0)
