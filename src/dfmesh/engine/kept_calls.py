"""What calls gave that must not run twice, kept so that a job can be begun again without running them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dfmesh import values
from dfmesh.engine.attempts import runs_once
from dfmesh.engine.message_parts import Failure
from dfmesh.netir import Frame, Reduce, Transition

MAX_KEPT = 10_000
"""How many results are kept of one job at one site."""

MAX_KEPT_BYTES = 64 * 2**20
"""How large they may be together."""


class Kept(NamedTuple):
    """How a call ended.

    Attributes:
        value: What it returned, if it did not fail.
        failure: How it failed; None if it did not.
        passed_on: Whether that is the failure of a stream that it was fed with.
    """

    value: Any
    failure: Failure | None = None
    passed_on: bool = False


_Key = tuple[int, Frame, int]
"""Transition and frame, and which call of these it is (a Reduce makes several)."""


class KeptCalls:
    """Ended calls of one job at one site that must not run again, by top-level frame, over all attempts.

    A frame in which something cannot be repeated keeps the reason instead.
    """

    def __init__(self) -> None:
        self._frames: dict[int, dict[_Key, Kept]] = {}
        self._sizes: dict[int, int] = {}
        self._count = self._size = 0
        self._reasons: dict[int, Failure] = {}

    @property
    def unrepeatable(self) -> tuple[Failure, ...]:
        """Why the job cannot be begun again; empty if it can."""
        return tuple(self._reasons.values())

    def find(self, key: _Key) -> Kept | None:
        """Give how a call ended in an earlier attempt; None if it has not been made."""
        return self._frames.get(key[1][0], {}).get(key)

    def keep(self, key: _Key, kept: Kept, too_much: Failure) -> None:
        """Keep how a call ended, or why not since there is no room for more."""
        frame = key[1][0]
        if frame in self._reasons:
            return
        size = 0 if kept.failure is not None else values.size_of(kept.value)
        if self._count >= MAX_KEPT or self._size + size > MAX_KEPT_BYTES:
            self.give_up(too_much)
            return
        self._frames.setdefault(frame, {})[key] = kept
        self._sizes[frame] = self._sizes.get(frame, 0) + size
        self._count += 1
        self._size += size

    def give_up(self, reason: Failure) -> None:
        """Note that a frame cannot be repeated."""
        frame = reason.frame[0]
        self.forget(frame)
        self._reasons[frame] = reason

    def forget(self, frame: int) -> None:
        """Drop what is kept of a top-level frame: it is finished."""
        self._count -= len(self._frames.pop(frame, ()))
        self._size -= self._sizes.pop(frame, 0)
        self._reasons.pop(frame, None)


class OnceCalls:
    """The calls of one attempt that must not run again.

    Attributes:
        positions: Transitions that make such calls, by their positions.
    """

    def __init__(self, site: str, transitions: Iterable[Transition], kept: KeptCalls) -> None:
        """Begin with none.

        Args:
            site: Where they run.
            transitions: All that the site has, by position.
            kept: What is kept of earlier attempts.
        """
        self.positions = {position: item for position, item in enumerate(transitions) if runs_once(item)}
        self._site = site
        self._kept = kept
        self._running: dict[int, tuple[_Key, Transition, bool]] = {}
        self._folds: dict[int, dict[tuple[int, Frame], int]] = {}

    @property
    def running(self) -> bool:
        """Whether any goes on."""
        return bool(self._running)

    @property
    def unrepeatable(self) -> tuple[Failure, ...]:
        """Why the job cannot be begun again; empty if it can."""
        return self._kept.unrepeatable

    def begin(self, call: int, position: int, frame: Frame, *, fed: bool) -> Kept | None:
        """Note that a call is wanted.

        Args:
            call: Its number.
            position: Position of its transition, one of `positions`.
            frame: Its frame.
            fed: Whether it is fed with a stream.

        Returns:
            How it ended in an earlier attempt, so that it is not to be made; None if it is.
        """
        transition = self.positions[position]
        key = (transition.id, frame, self._number(transition, frame))
        kept = self._kept.find(key)
        if kept is None:
            self._running[call] = (key, transition, fed)
        return kept

    def _number(self, transition: Transition, frame: Frame) -> int:
        if not isinstance(transition.action, Reduce):
            return 0
        folds = self._folds.setdefault(frame[0], {})
        number = folds.get((transition.id, frame), 0)
        folds[transition.id, frame] = number + 1
        return number

    def ended(self, call: int, kept: Kept) -> None:
        """Note how a call ended."""
        running = self._running.pop(call, None)
        if running is not None:
            key, transition, _ = running
            what = f"results that would have to be kept are more than {MAX_KEPT:,} or {MAX_KEPT_BYTES >> 20} MiB"
            self._kept.keep(key, kept, self._reason(transition, key[1], what))

    def streams(self, call: int) -> None:
        """Note that a call has returned a generator: what it gives is not kept."""
        running = self._running.pop(call, None)
        if running is not None:
            key, transition, _ = running
            self._kept.give_up(self._reason(transition, key[1], "it is a generator that has begun"))

    def leave(self) -> bool:
        """The attempt is being ended.

        Returns:
            Whether nothing has to be waited for: nothing runs, or the job cannot be begun again anyway.
        """
        for key, transition, fed in self._running.values():
            if fed:
                self._kept.give_up(self._reason(transition, key[1], "it takes a stream that it had begun to take"))
        return not self.running or bool(self.unrepeatable)

    def forget(self, frame: int) -> None:
        """Drop what is kept of a top-level frame: it is finished."""
        self._folds.pop(frame, None)
        self._kept.forget(frame)

    def _reason(self, transition: Transition, frame: Frame, why: str) -> Failure:
        what = f"the job cannot be begun again, since this must not run twice and {why}"
        name, node, location = transition.name, transition.node, transition.location
        return Failure(self._site, name, node, frame, location, "CannotRepeat", what)
