"""What goes on in a predicted run: frames, loops, and what is gathered from them."""

from __future__ import annotations

from typing import Any

from dfmesh.session.prediction.plan import Reader, Scope, Step


class Frame:
    """One frame of a scope, at all sites.

    Attributes:
        scope: The scope.
        parent: Frame of the enclosing scope; None for the root.
        run: Loop that opened it; None for the root.
        index: Number in that loop.
        number: Number of the parameter set.
        missing: Tokens that each step still needs.
        left: Things still to be done at each taking-part site.
        open: Taking-part sites that are not known to be done.
        skipped: Bits of the steps that will skip.
        arrived: Tokens that came for deeper scopes, each whether it is a skip, or the frames that wait for them. None
            before there is one.
        gatherings: What is gathered here. None before something is.
    """

    __slots__ = (
        "arrived",
        "gatherings",
        "index",
        "left",
        "missing",
        "number",
        "open",
        "parent",
        "run",
        "scope",
        "skipped",
    )

    def __init__(self, scope: Scope, parent: Frame | None, run: LoopRun | None, index: int, number: int) -> None:
        self.scope = scope
        self.parent = parent
        self.run = run
        self.index = index
        self.number = number
        self.missing = scope.missing.copy()
        self.left = scope.left.copy()
        self.open = len(self.left)
        self.skipped = 0
        self.arrived: dict[Reader, Any] | None = None  # Most of millions of frames have neither.
        self.gatherings: dict[Step, Gathering] | None = None

    def tokens(self) -> dict[Reader, Any]:
        """Give `arrived`."""
        if self.arrived is None:
            self.arrived = {}
        return self.arrived

    def leave(self, step: Step) -> bool:
        """Forget what a step has gathered; False if that has been done."""
        return self.gatherings is not None and self.gatherings.pop(step, None) is not None


class LoopRun:
    """A loop in one frame.

    Attributes:
        step: The loop.
        frame: The frame that it is in.
        count: How many iterations there will be.
        opened: How many have been opened.
        open: How many of them are open.
        done: How many each taking-part site is done with.
        told: Which taking-part sites know the count.
        over: Whether all have been opened and told.
        opening: As in the engine's `LoopRun`.
    """

    __slots__ = ("count", "done", "frame", "open", "opened", "opening", "over", "step", "told")

    def __init__(self, step: Step, frame: Frame, count: int, participants: int) -> None:
        self.step = step
        self.frame = frame
        self.count = count
        self.opened = 0
        self.open = 0
        self.done = [0] * participants
        self.told = [False] * participants
        self.over = False
        self.opening = False


class Gathering:
    """What a collect or reduce has got so far in one frame; the attributes mean what they mean in the engine."""

    __slots__ = ("busy", "came", "count", "counted", "inputs", "next", "skipped", "tokens", "value")

    def __init__(self) -> None:
        self.inputs = False
        self.skipped = False
        self.came = 0
        self.count: int | None = None
        self.tokens: dict[int, tuple[bool, Frame]] = {}
        self.next = 0
        self.busy = False
        self.value = False
        self.counted: set[int] = set()
