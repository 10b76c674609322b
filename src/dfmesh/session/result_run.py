"""Results that came together, as they came: a list of values, of which items are made when somebody reads them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import repeat
from typing import Any

import msgspec

from dfmesh.engine.frame_run import FrameRun, Frames
from dfmesh.session.results import ResultItem


class ResultRun(msgspec.Struct, frozen=True, gc=False):
    """Results of one Yield, of one message or part of one.

    Attributes:
        place: Name that the Yield gave them.
        frames: Their frames.
        values: As many values.
        site: Site that sent them.
        node: Id of the Yield.
    """

    place: str
    frames: Frames
    values: list[Any]
    site: str
    node: str

    @classmethod
    def of_one(cls, item: ResultItem) -> ResultRun:
        """Give an item that is alone."""
        return cls(item.place, (item.frame,), [item.value], item.site, item.node)

    def __len__(self) -> int:
        return len(self.values)

    def items(self) -> list[ResultItem]:
        """Give them one by one."""
        place, site, node = repeat(self.place), repeat(self.site), repeat(self.node)
        return list(map(ResultItem, place, self.frames, self.values, site, node))

    def part(self, start: int, stop: int) -> ResultRun:
        """Give those from one position to another."""
        if start <= 0 and stop >= len(self.values):
            return self
        start = max(start, 0)
        return ResultRun(self.place, self.frames[start:stop], self.values[start:stop], self.site, self.node)

    def without(self, positions: Collection[int]) -> ResultRun:
        """Leave some out, by their positions."""
        kept = [position for position in range(len(self.values)) if position not in positions]
        frames, values = [self.frames[position] for position in kept], [self.values[position] for position in kept]
        return ResultRun(self.place, frames, values, self.site, self.node)

    def record(self) -> tuple[Any, ...]:
        """Give what `from_record` makes the same of, of plain values and those that are in there."""
        frames = self.frames
        run = (frames.around, frames.first, frames.count) if type(frames) is FrameRun else None
        return self.place, run, () if run else tuple(frames), self.values, self.site, self.node

    @classmethod
    def from_record(cls, record: tuple[Any, ...]) -> ResultRun:
        """Give back the results of a record."""
        place, run, frames, values, site, node = record
        return cls(place, FrameRun(*run) if run else frames, values, site, node)
