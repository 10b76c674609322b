"""Figures of one transition at one site, for progress and for the costs of later runs."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any

from dfmesh import values
from dfmesh.engine.message_parts import Failure, OperationReport, SendReport
from dfmesh.netir import Transition

_SIZED_ALWAYS = 8
"""Values whose size is looked at from the first one on; of the later ones a sample will do."""

_SAMPLE_MASK = 63

_SMALL_TYPES = frozenset({type(None), bool, int, float})
_SMALL = values.size_of(0)


class Statistics:
    """What one transition has done so far.

    A call that begins before the first one has ended is *cold*: it may wait until the adapter's libraries are loaded,
    so its time says little about later ones and is kept apart.

    Attributes:
        running: Calls going on.
        done: Calls that ended with a value.
        failed: Calls that ended with an error.
        seconds: Time spent in calls, summed.
        bytes_out: Size of what was sent to other sites or the client.
        first_failure: The first one, as the client may have it.
    """

    __slots__ = (
        "_cold",
        "_cold_calls",
        "_cold_seconds",
        "_cold_squares",
        "_first_seconds",
        "_item_sizes",
        "_items",
        "_sends",
        "_sizes",
        "_squares",
        "bytes_out",
        "done",
        "failed",
        "first_failure",
        "running",
        "seconds",
    )

    def __init__(self) -> None:
        self.running = 0
        self.done = 0
        self.failed = 0
        self.seconds = 0.0
        self.bytes_out = 0
        self.first_failure: Failure | None = None
        self._cold: set[int] = set()
        self._cold_calls = 0
        self._cold_seconds = 0.0
        self._first_seconds = 0.0
        self._squares = 0.0
        self._cold_squares = 0.0
        self._items = 0
        self._sizes = [0, 0]
        self._item_sizes = [0, 0]
        self._sends: dict[int | None, list[int]] = {}

    def started(self, call: int) -> None:
        """A call begins."""
        self.running += 1
        if not self.done and not self.failed:
            self._cold.add(call)

    def all_started(self, first: int, count: int) -> None:
        """Calls begin, with numbers that follow one another."""
        self.running += count
        if not self.done and not self.failed:
            self._cold.update(range(first, first + count))

    def all_returned(self, calls: Sequence[int], values: list[Any], seconds: list[float]) -> None:
        """Calls have ended with values."""
        if self._cold:
            self._end_cold(calls, seconds)
        self._squares += sum(map(mul, seconds, seconds))
        done = self.done
        for position in range(min(len(values), max(_SIZED_ALWAYS - done, 0))):
            _sample(self._sizes, done + position, values[position])
        first = max(-done & _SAMPLE_MASK, _SIZED_ALWAYS - done)
        for position in range(first + (-(done + first) & _SAMPLE_MASK), len(values), _SAMPLE_MASK + 1):
            _sample(self._sizes, 0, values[position])
        self.running -= len(calls)
        self.seconds += sum(seconds)
        self.done += len(calls)

    def _end_cold(self, calls: Sequence[int], seconds: list[float]) -> None:
        """Count those that are cold."""
        before = len(self._cold)
        if not self.done and not self.failed:
            self._first_seconds = seconds[0]
        if not self._cold.issuperset(calls):
            seconds = [own for call, own in zip(calls, seconds, strict=True) if call in self._cold]
        self._cold_seconds += sum(seconds)
        self._cold_squares += sum(map(mul, seconds, seconds))
        self._cold.difference_update(calls)
        self._cold_calls += before - len(self._cold)

    def ended(self, call: int, seconds: float, *, failed: bool) -> None:
        """A call has ended; `seconds` are those not yet told by `item`."""
        if call in self._cold:
            self._cold.discard(call)
            if not self.done and not self.failed:
                self._first_seconds = seconds
            self._cold_calls += 1
            self._cold_seconds += seconds
            self._cold_squares += seconds * seconds
        self._squares += seconds * seconds
        self.running -= 1
        self.seconds += seconds
        if failed:
            self.failed += 1
        else:
            self.done += 1

    def returned(self, value: Any) -> None:
        """A call gave this value."""
        _sample(self._sizes, self.done, value)

    def items(self, values: list[Any], seconds: float) -> None:
        """A generator gave these items."""
        for value in values:
            _sample(self._item_sizes, self._items, value)
            self._items += 1
        self.seconds += seconds

    def sent(self, route: int | None, size: int, count: int = 1) -> None:
        """Tokens went, in one message, along a route to another site, or (None) results to the homesite."""
        self.bytes_out += size
        known = self._sends.get(route)
        if known is None:
            self._sends[route] = [count, size]
        else:
            known[0] += count
            known[1] += size

    def mean_size(self) -> float | None:
        """Estimate the bytes of one value; None if there was none."""
        counted, total = self._sizes
        if counted:
            return total / counted
        counted, total = self._item_sizes
        return total / counted * self._items / max(self.done, 1) if counted else None

    def report(self, ir: Transition, waiting: int, loading: float = 0.0) -> OperationReport:
        """Say how far the transition is.

        Args:
            ir: The transition.
            waiting: As `OperationReport.waiting`.
            loading: As `OperationReport.loading`.
        """
        return OperationReport(
            ir.node,
            ir.name,
            ir.location,
            waiting,
            self.running,
            self.done,
            self.failed,
            self.seconds,
            self.bytes_out,
            self._first_seconds,
            self._cold_calls,
            self._cold_seconds,
            self.mean_size(),
            self._items,
            loading,
            self._squares,
            self._cold_squares,
            self.first_failure,
        )

    def add_sends(self, ir: Transition, reports: list[SendReport]) -> None:
        """Add what was sent to the reports."""
        for route, (count, size) in self._sends.items():
            reports.append(SendReport(ir.id, route, count, size))


def _sample(sizes: list[int], seen: int, value: Any) -> None:
    if seen < _SIZED_ALWAYS or not seen & _SAMPLE_MASK:
        sizes[0] += 1
        sizes[1] += _SMALL if type(value) in _SMALL_TYPES else values.size_of(value)
