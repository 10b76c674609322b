"""Frames that follow one another, as one thing: what a loop opens together, and what goes on together from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Annotated, overload

import msgspec

from dfmesh.netir import Frame

MOST_FRAMES = 2**62
"""Frames of a run; more than this has no length that Python can tell."""


class FrameRun(msgspec.Struct, frozen=True, gc=False):
    """The frames `(*around, first)`, `(*around, first + 1)`, ..., read as a sequence of them.

    Attributes:
        around: What they have in common.
        first: Last number of the first one.
        count: How many there are. From a peer it may be any number: it is to be held against what came with it before
            the frames are gone through.
    """

    around: Frame
    first: Annotated[int, msgspec.Meta(ge=0)]
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_FRAMES)]

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Frame]:
        return zip(*map(repeat, self.around), range(self.first, self.first + self.count))  # noqa: B905 - some are endless

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> Frames: ...
    def __getitem__(self, index: int | slice) -> Frame | Frames:
        """Give one frame, or those of a slice without a step."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.count)
            return FrameRun(self.around, self.first + start, stop - start) if start < stop else ()
        if not -self.count <= index < self.count:
            raise IndexError(index)
        return (*self.around, self.first + index % self.count)


Frames = FrameRun | Sequence[Frame]
"""Frames in order, one after the other or not."""


def runs_of(frames: Frames) -> list[FrameRun]:
    """Give frames as runs; those that are shorter than any of a loop are left out."""
    if type(frames) is FrameRun:
        return [frames]
    runs: list[FrameRun] = []
    around: Frame = ()
    first = stop = 0
    for frame in frames:
        if not frame:
            continue
        if frame[-1] == stop > first and frame[:-1] == around:
            stop += 1
            continue
        if stop > first:
            runs.append(FrameRun(around, first, stop - first))
        around, first, stop = frame[:-1], frame[-1], frame[-1] + 1
    if stop > first:
        runs.append(FrameRun(around, first, stop - first))
    return runs


def depths_of(frames: Frames) -> set[int]:
    """Say how long frames are, without going through those of a run."""
    return {len(frames.around) + 1} if type(frames) is FrameRun else set(map(len, frames))
