"""The streams that the calls of one job are fed with."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dfmesh.engine.call_limits import Permit
from dfmesh.engine.live_input import LiveInput
from dfmesh.engine.message_parts import Failure

ENDED = Failure("", "", "", (), "", "Cancelled", "the call has ended")
"""What who still reads a stream is told when its call is given up."""


class LiveInputs:
    """By call and number of the input."""

    def __init__(
        self, taken: Callable[[int, int, int], None], waiting: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Begin with none.

        Args:
            taken: Gets call, number of the input and how many further items were taken of it.
            waiting: Entered by a thread while it waits for an item.
        """
        self._taken = taken
        self._waiting = waiting
        self._inputs: dict[int, dict[int, LiveInput]] = {}

    def __bool__(self) -> bool:
        return bool(self._inputs)

    def __contains__(self, call: int) -> bool:
        return call in self._inputs

    def open(self, call: int, numbers: tuple[int, ...]) -> None:
        """Begin the streams of a call."""

        def make(number: int) -> LiveInput:
            return LiveInput(lambda count: self._taken(call, number, count), self._waiting)

        self._inputs[call] = {number: make(number) for number in numbers}

    def of(self, call: int) -> dict[int, LiveInput]:
        """Give the streams of a call, by number; empty if it is fed with none."""
        return self._inputs.get(call, {})

    def put(self, call: int, number: int, value: Any) -> None:
        """Add an item, if the call still goes on."""
        if call in self._inputs:
            self._inputs[call][number].put(value)

    def end(self, call: int, number: int, failure: Failure | None) -> None:
        """Add no more items."""
        if call in self._inputs:
            self._inputs[call][number].end(failure)

    def let_wait(self, call: int, permit: Permit) -> None:
        """Have async readers of a call's streams give back a permit while they wait."""
        for stream in self.of(call).values():
            stream.permit = permit

    def is_consumed(self, call: int) -> bool:
        """Whether a call has begun to read one of its streams, so that it cannot be repeated."""
        return any(stream.consumed for stream in self.of(call).values())

    def end_consumed(self, call: int) -> None:
        """End the streams that a stopped call has begun to read: its thread may wait for an item."""
        for stream in self.of(call).values():
            if stream.consumed:
                stream.end(ENDED)

    def forget(self, call: int) -> None:
        """Drop the streams of a call that is over."""
        self._inputs.pop(call, None)

    def close(self) -> None:
        """End all; nothing is told any more."""
        self._taken = _untold
        if self._inputs:
            for stream in [stream for streams in self._inputs.values() for stream in streams.values()]:
                stream.end(ENDED)


def _untold(_call: int, _number: int, _count: int) -> None:
    pass


__all__ = ["ENDED", "LiveInputs"]
